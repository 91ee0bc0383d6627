//! Numbers that MuJoCo's compiler derives from the initial pose: damping from damping
//! ratios, stiffness from `springdamper`, rest lengths and anchors.

use super::element::{At, Fault, Read};
use crate::arms;
use crate::rest::{MIN_VALUE, Rest, spring_pose};
use crate::simple::only_slides;
use crate::{Actuator, Model, Transmission};
use nalgebra::DVector;

/// A joint whose spring and damper are given by a time constant (s) and a damping
/// ratio.
pub(super) struct SpringDamper {
    pub joint: usize,
    pub timeconst: f64,
    pub dampratio: f64,
    pub at: At,
}

/// Stiffness and damping of joints with `springdamper`: those of a mass-spring-damper
/// with the joint's inertia in the initial pose (MuJoCo, XML reference,
/// body/joint/springdamper).
pub(super) fn spring_dampers(model: &mut Model, list: &[SpringDamper]) -> Read<()> {
    let Some(first) = list.first() else {
        return Ok(());
    };
    let rest = Rest::new(model, &model.qpos0);
    affordable(&rest, model.nv, first.at, "springdamper")?;
    let factor = rest.factor().ok_or_else(|| singular(first.at, "springdamper"))?;
    let inverse = factor.inverse();
    let mut found = Vec::new();
    for s in list {
        let joint = &model.joints[s.joint];
        let (start, n) = (joint.dof_adr, joint.kind.nv());
        let mut inverse = (start..start + n).map(|d| inverse[(d, d)]).sum::<f64>() / n as f64;
        // MuJoCo leaves the armature of such bodies out.
        if only_slides(model, joint.body) {
            inverse = 1.0 / model.bodies[joint.body].mass;
        }
        let inertia = 1.0 / inverse.max(MIN_VALUE);
        let time = s.timeconst * s.dampratio;
        found.push([
            inertia / (time * time).max(MIN_VALUE),
            2.0 * inertia / s.timeconst.max(MIN_VALUE),
        ]);
    }
    for (s, [stiffness, damping]) in list.iter().zip(found) {
        let joint = &mut model.joints[s.joint];
        (joint.stiffness, joint.damping) = (stiffness, damping);
    }
    Ok(())
}

/// Lengths of tendons in the initial pose, and where the file gives none those at
/// which their springs rest: the lengths in the joints' springs' rest pose.
pub(super) fn tendon_lengths(model: &mut Model) {
    if model.tendons.is_empty() {
        return;
    }
    let starts = arms::tendon_lengths(model, &model.qpos0);
    let relaxed = arms::tendon_lengths(model, &spring_pose(model));
    for (tendon, (start, relaxed)) in model.tendons.iter_mut().zip(starts.into_iter().zip(relaxed))
    {
        tendon.length0 = start;
        if tendon.springlength == [-1.0; 2] {
            tendon.springlength = [relaxed; 2];
        }
    }
}

/// Damping of servos that give a damping ratio, a positive `bias[2]`:
/// `kv = 2 ratio sqrt(kp m)`, where `m = 1 / (J M^-1 J')` is the inertia that the
/// actuator feels through its moment arms J (MuJoCo, XML reference,
/// actuator/position/dampratio).
pub(super) fn damping_ratios(model: &mut Model, at: At) -> Read<()> {
    let ratio = |a: &Actuator| a.gain[0] == -a.bias[1] && a.bias[2] > 0.0;
    let wanted = model.actuators.iter().filter(|a| ratio(a)).count();
    if wanted == 0 {
        return Ok(());
    }
    let rest = Rest::new(model, &model.qpos0);
    affordable(&rest, wanted, at, "dampratio")?;
    let factor = rest.factor().ok_or_else(|| singular(at, "dampratio"))?;
    let damping: Vec<f64> = model
        .actuators
        .iter()
        .map(|a| {
            if !ratio(a) {
                return 0.0;
            }
            let mut arms = DVector::zeros(model.nv);
            match a.transmission {
                Transmission::Joint(j) => arms[model.joints[j].dof_adr] = a.gear[0],
                Transmission::Tendon(t) => arms = rest.tendon_jacobian(t) * a.gear[0],
                _ => {}
            }
            let inverse = arms.dot(&factor.solve(&arms));
            2.0 * a.bias[2] * (a.gain[0] / inverse.max(MIN_VALUE)).sqrt()
        })
        .collect();
    for (actuator, kv) in model.actuators.iter_mut().zip(damping) {
        if ratio(actuator) {
            if !kv.is_finite() {
                let why = format!(
                    "actuator \"{}\": a damping ratio with stiffness {} has no meaning",
                    actuator.name, actuator.gain[0]
                );
                return Err(Fault::new(at, why));
            }
            actuator.bias[2] = -kv;
        }
    }
    Ok(())
}

/// Refuses robots for which the inverse of the inertia takes too long.
pub(super) fn affordable(rest: &Rest, solves: usize, at: At, what: &str) -> Read<()> {
    match rest.affordable(solves) {
        true => Ok(()),
        false => {
            let why = format!(
                "{what} needs the inertia of the whole model, which has too many bodies and \
                 degrees of freedom for that; write stiffness and damping as numbers"
            );
            Err(Fault::new(at, why))
        }
    }
}

/// The initial pose has a direction without inertia.
fn singular(at: At, what: &str) -> Fault {
    let why = format!("{what} needs a robot that has inertia in every direction it can move");
    Fault::new(at, why)
}
