//! Actuators as moment arms on hinge and slide joints.

use super::soft::MIN_VALUE;
use super::{Context, LowerError};
use crate::model::{Actuator, Dynamics, JointKind, TendonKind, Transmission};
use crate::physics::native::tables::{Plan, UNLIMITED};

/// No limit on either side.
const FREE: [f64; 2] = [-UNLIMITED, UNLIMITED];

/// Writes actuators and the limits on their sum at each joint.
pub(super) fn write(c: &Context, plan: &mut Plan) -> Result<(), LowerError> {
    plan.nu = c.model.nu();
    plan.na = c.model.na;
    plan.act_adr.push(0);
    for actuator in &c.model.actuators {
        for (joint, coefficient) in arms(c, actuator)? {
            let joint = &c.model.joints[joint];
            if !matches!(joint.kind, JointKind::Hinge | JointKind::Slide) {
                return Err(unsupported(actuator, "on a ball or free joint"));
            }
            plan.act_qpos.push(joint.qpos_adr as i32);
            plan.act_dof.push(joint.dof_adr as i32);
            plan.act_coef.push(coefficient);
        }
        plan.act_adr.push(plan.act_dof.len() as i32);
        write_law(c, actuator, plan)?;
    }
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
    Ok(())
}

/// Joints that an actuator lengthens with, and its moment arms at them.
fn arms(c: &Context, actuator: &Actuator) -> Result<Vec<(usize, f64)>, LowerError> {
    let gear = actuator.gear[0];
    match actuator.transmission {
        Transmission::Joint(joint) | Transmission::JointInParent(joint) => Ok(vec![(joint, gear)]),
        Transmission::Tendon(tendon) => {
            let tendon = &c.model.tendons[tendon];
            if c.flags.actuation && tendon.actfrcrange.is_some() {
                return Err(LowerError::new(
                    format!("actuatorfrcrange of tendon \"{}\"", tendon.name),
                    "limit the actuators on it by their own forcerange",
                ));
            }
            let TendonKind::Fixed(parts) = &tendon.kind;
            Ok(parts.iter().map(|(j, x)| (*j, gear * x)).collect())
        }
        Transmission::Site { .. } => Err(unsupported(actuator, "on a site")),
        Transmission::SliderCrank { .. } => Err(unsupported(actuator, "on a slider-crank")),
    }
}

fn unsupported(actuator: &Actuator, how: &str) -> LowerError {
    LowerError::new(
        format!("actuator \"{}\" {how}", actuator.name),
        "actuators drive hinge and slide joints and fixed tendons",
    )
}

/// Writes how control becomes force.
fn write_law(c: &Context, actuator: &Actuator, plan: &mut Plan) -> Result<(), LowerError> {
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
        Dynamics::None => 0,
        Dynamics::Integrator => 1,
        Dynamics::Filter => 2,
        Dynamics::FilterExact => 3,
        Dynamics::Muscle => {
            return Err(LowerError::new(
                format!("the muscle dynamics of actuator \"{}\"", actuator.name),
                "use dyntype integrator, filter or filterexact, or none",
            ));
        }
    };
    plan.act_dyn.push(if on { dynamics } else { 0 });
    let state = actuator.act_adr.filter(|_| on);
    plan.act_state.push(state.map_or(-1, |s| s as i32));
    plan.act_early.push(i32::from(actuator.actearly));
    // MuJoCo, Computation, "Activation dynamics": an exact filter decays by
    // exp(-step / tau) in a time step.
    let step = c.packer.timestep;
    let tau = actuator.dynprm[0].max(MIN_VALUE);
    plan.act_prm.push(tau);
    plan.act_step.push(match actuator.dynamics {
        Dynamics::FilterExact => -tau * (-step / tau).exp_m1(),
        _ => step,
    });
    Ok(())
}
