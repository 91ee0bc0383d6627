//! Actuators: their transmissions, and how control becomes force.

use super::context::Context;
use super::error::LowerError;
use super::soft::MIN_VALUE;
use super::spots::{FixedFrame, FixedFrames, movers, tree};
use super::tendons::Tendons;
use crate::kernels;
use crate::physics::native::tables::{RobotTables, UNLIMITED};
use ostler_model::rotation::dot;
use ostler_model::{Actuator, Dynamics, JointKind, Muscle, TendonKind, Transmission};

/// No limit on either side.
const FREE: [f64; 2] = [-UNLIMITED, UNLIMITED];

/// Writes actuators and the limits on their sum at each joint and tendon.
pub(super) fn write(
    c: &Context,
    tendons: &Tendons,
    spots: &mut FixedFrames,
    plan: &mut RobotTables,
) -> Result<(), LowerError> {
    plan.nu = c.model.nu();
    plan.na = c.model.na;
    plan.act_adr.push(0);
    for actuator in &c.model.actuators {
        let arms = arms(c, tendons, spots, plan, actuator);
        for arm in &arms.entries {
            plan.act_qpos.push(arm.qpos);
            plan.act_dof.push(arm.dof as i32);
            plan.act_coef.push(arm.coef);
            plan.act_moves.push(arm.moves);
        }
        if let Transmission::Body(b) = actuator.transmission {
            plan.stick_act.push(plan.act_arms.len() as i32);
            let own = |g: &i32| i32::from(c.model.geoms[*g as usize].body == b);
            let own: Vec<i32> = plan.cg_geom.iter().map(own).collect();
            plan.stick_geom.extend(own);
        }
        plan.act_arms.push(arms.kind);
        plan.act_int.extend(arms.ints);
        plan.act_int.push(0);
        plan.act_gear.extend(actuator.gear);
        plan.act_rod.push(match actuator.transmission {
            Transmission::SliderCrank { length, .. } => length,
            _ => 0.0,
        });
        plan.act_period.push(period(c, actuator));
        plan.act_adr.push(plan.act_dof.len() as i32);
        write_law(c, actuator, plan);
    }
    plan.nactj = plan.act_dof.len();
    plan.nstick = plan.stick_act.len();
    plan.dof_actlo = vec![-UNLIMITED; plan.nv];
    plan.dof_acthi = vec![UNLIMITED; plan.nv];
    for joint in c.model.joints.iter().filter(|_| c.flags.actuation) {
        if let (JointKind::Hinge | JointKind::Slide, Some([lo, hi])) =
            (joint.kind, joint.actfrcrange)
        {
            plan.dof_actlo[joint.dof_adr] = lo;
            plan.dof_acthi[joint.dof_adr] = hi;
        }
    }
    plan.share_adr.push(0);
    for (t, tendon) in c.model.tendons.iter().enumerate() {
        let Some([lo, hi]) = tendon.actfrcrange.filter(|_| c.flags.actuation) else {
            continue;
        };
        for (u, actuator) in c.model.actuators.iter().enumerate() {
            if actuator.transmission == Transmission::Tendon(t) {
                plan.share_act.push(u as i32);
            }
        }
        plan.share_adr.push(plan.share_act.len() as i32);
        plan.share_lo.push(lo);
        plan.share_hi.push(hi);
    }
    plan.nshare = plan.share_lo.len();
    Ok(())
}

/// A moment arm.
struct Arm {
    /// Position that it lengthens the actuator by, -1 none.
    qpos: i32,
    dof: usize,
    /// The arm itself, where it is constant.
    coef: f64,
    moves: i32,
}

struct Arms {
    kind: i32,
    ints: [i32; 3],
    entries: Vec<Arm>,
}

/// Degrees of freedom that an actuator pulls, and how to find its arms at them.
fn arms(
    c: &Context,
    tendons: &Tendons,
    spots: &mut FixedFrames,
    plan: &RobotTables,
    actuator: &Actuator,
) -> Arms {
    let gear = actuator.gear[0];
    let entry = |dof: usize| Arm { qpos: -1, dof, coef: 0.0, moves: 0 };
    match actuator.transmission {
        Transmission::Joint(j) | Transmission::JointInParent(j) => {
            let joint = &c.model.joints[j];
            let dofs = joint.dof_adr..joint.dof_adr + joint.kind.nv();
            let kind = match joint.kind {
                JointKind::Free => kernels::ARMS_FREE,
                JointKind::Ball => kernels::ARMS_BALL,
                JointKind::Hinge | JointKind::Slide => {
                    let mut arms = constant(vec![(j, gear)], c);
                    arms.ints[0] = 1 + joint.dof_adr as i32;
                    return arms;
                }
            };
            let parent = matches!(actuator.transmission, Transmission::JointInParent(_));
            Arms {
                kind,
                ints: [joint.qpos_adr as i32, i32::from(parent), 0],
                entries: dofs.map(entry).collect(),
            }
        }
        Transmission::Tendon(t) => {
            if let (TendonKind::Fixed(parts), false) =
                (&c.model.tendons[t].kind, tendons.spatial(t))
            {
                let scaled = parts.iter().map(|(j, x)| (*j, gear * x));
                return constant(scaled.collect(), c);
            }
            Arms {
                kind: kernels::ARMS_TENDON,
                ints: [t as i32, 0, 0],
                entries: tendons.row(t).iter().map(|(d, _)| entry(*d)).collect(),
            }
        }
        Transmission::Site { site, reference } => {
            let mut both = vec![FixedFrame::site(c, site)];
            both.extend(reference.map(|r| FixedFrame::site(c, r)));
            let mut movers = movers(c, &both);
            // A dof that moves both does not move one relative to the other.
            movers.retain(|m| m.1 != 3);
            between(kernels::ARMS_SITE, &both, movers, spots, plan)
        }
        Transmission::SliderCrank { crank, slider, .. } => {
            let both = [FixedFrame::site(c, crank), FixedFrame::site(c, slider)];
            let movers = movers(c, &both);
            between(kernels::ARMS_CRANK, &both, movers, spots, plan)
        }
        // Contacts say which.
        Transmission::Body(_) => {
            Arms { kind: kernels::ARMS_BODY, ints: [0; 3], entries: Vec::new() }
        }
    }
}

/// Constant arms at hinge and slide joints.
fn constant(parts: Vec<(usize, f64)>, c: &Context) -> Arms {
    let entry = |(joint, coef): (usize, f64)| {
        let joint = &c.model.joints[joint];
        Arm { qpos: joint.qpos_adr as i32, dof: joint.dof_adr, coef, moves: 0 }
    };
    Arms {
        kind: kernels::ARMS_CONSTANT,
        ints: [0; 3],
        entries: parts.into_iter().map(entry).collect(),
    }
}

/// Arms that follow from one or two spots.
fn between(
    kind: i32,
    both: &[FixedFrame],
    movers: Vec<(usize, i32)>,
    spots: &mut FixedFrames,
    plan: &RobotTables,
) -> Arms {
    let second = both.get(1).map_or(-1, |s| spots.index(*s));
    let entry = |(dof, moves)| Arm { qpos: -1, dof, coef: 0.0, moves };
    Arms {
        kind,
        ints: [spots.index(both[0]), second, tree(plan, both)],
        entries: movers.into_iter().map(entry).collect(),
    }
}

/// Setpoints of servos on rotations are taken modulo a turn: the turn in units of the
/// actuator's length, 0 for all others.
fn period(c: &Context, actuator: &Actuator) -> f64 {
    let servo = actuator.gain[1..] == [0.0; 2]
        && actuator.gain[0] == -actuator.bias[1]
        && actuator.gain[0] != 0.0
        && actuator.muscle.is_none()
        && matches!(actuator.dynamics, Dynamics::None | Dynamics::Integrator);
    let [x, y, z, a, b, g] = actuator.gear;
    let axis = match actuator.transmission {
        Transmission::Joint(j) | Transmission::JointInParent(j)
            if c.model.joints[j].kind == JointKind::Ball =>
        {
            [x, y, z]
        }
        Transmission::Site { reference: Some(_), .. } if [x, y, z] == [0.0; 3] => [a, b, g],
        _ => return 0.0,
    };
    if servo { std::f64::consts::TAU * dot(axis, axis).sqrt() } else { 0.0 }
}

/// Writes how control becomes force.
fn write_law(c: &Context, actuator: &Actuator, plan: &mut RobotTables) {
    // Without actuation nothing pulls, whatever the control, and activations rest.
    let on = c.flags.actuation;
    let part = |x: [f64; 3]| if on { x } else { [0.0; 3] };
    plan.act_gain.extend(part(actuator.gain));
    plan.act_bias.extend(part(actuator.bias));
    let clamped = actuator.ctrlrange.filter(|_| c.flags.clampctrl);
    let [lo, hi] = clamped.unwrap_or(FREE);
    plan.act_ctrllo.push(lo);
    plan.act_ctrlhi.push(hi);
    let [lo, hi] = actuator.forcerange.filter(|_| on).unwrap_or(FREE);
    plan.act_forcelo.push(lo);
    plan.act_forcehi.push(hi);
    let [lo, hi] = actuator.actrange.unwrap_or(FREE);
    plan.act_lo.push(lo);
    plan.act_hi.push(hi);
    let dynamics = match actuator.dynamics {
        Dynamics::None => kernels::DYN_NONE,
        Dynamics::Integrator => kernels::DYN_INTEGRATOR,
        Dynamics::Filter => kernels::DYN_FILTER,
        Dynamics::FilterExact => kernels::DYN_FILTER_EXACT,
        Dynamics::Muscle => kernels::DYN_MUSCLE,
        Dynamics::Current => kernels::DYN_CURRENT,
    };
    plan.act_dyn.push(if on { dynamics } else { kernels::DYN_NONE });
    let state = actuator.act_adr.filter(|_| on);
    plan.act_state.push(state.map_or(-1, |s| s as i32));
    plan.act_early.push(i32::from(actuator.actearly));
    // MuJoCo, Computation, "Activation dynamics": an exact filter decays by
    // exp(-step / tau) in a time step.
    let step = c.packer.timestep;
    let [first, second, third] = actuator.dynprm;
    let current = actuator.dynamics == Dynamics::Current;
    let filter = matches!(actuator.dynamics, Dynamics::Filter | Dynamics::FilterExact);
    let tau = if filter || current { first.max(MIN_VALUE) } else { first };
    plan.act_prm.extend(match current {
        true => [tau, 1.0 / second, if actuator.enabled { second } else { 0.0 }],
        false => [tau, second, third],
    });
    plan.act_step.push(match actuator.dynamics {
        // The activation of one that is switched off rests.
        _ if !actuator.enabled => 0.0,
        Dynamics::FilterExact | Dynamics::Current => -tau * (-step / tau).exp_m1(),
        _ => step,
    });
    let muscle = actuator.muscle.filter(|_| on);
    let [gain, bias] = [muscle.and_then(|m| m.gain), muscle.and_then(|m| m.bias)];
    plan.act_muscle.push(i32::from(gain.is_some()) + 2 * i32::from(bias.is_some()));
    plan.act_curve.extend(muscle.map_or([0.0; CURVE], |m| curves(&m)));
}

/// Numbers of a muscle's curves.
const CURVE: usize = kernels::MUSCLE as usize;

/// A muscle's curves as the kernels take them (`MUSCLE_*` of `actuator.cuh`).
fn curves(m: &Muscle) -> [f64; CURVE] {
    let [low, high] = m.lengthrange;
    let part = |x: f64| x.max(MIN_VALUE);
    // Optimal length, and peak force.
    let optimal = |p: [f64; 9]| (high - low) / part(p[1] - p[0]);
    let peak = |p: [f64; 9]| {
        if p[2] < 0.0 { p[3] / part(m.acc0) } else { p[2] }
    };
    let g = m.gain.unwrap_or([0.0; 9]);
    let b = m.bias.unwrap_or([0.0; 9]);
    let scale = |p: [f64; 9]| 1.0 / part(optimal(p));
    [
        g[0],
        low,
        scale(g),
        -peak(g),
        g[4],
        g[5],
        1.0 / part(optimal(g) * g[6]),
        g[8],
        b[0],
        scale(b),
        -peak(b),
        b[5],
        b[7],
    ]
}
