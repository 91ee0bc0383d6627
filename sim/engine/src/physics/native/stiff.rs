//! Springs, servos and dampers that are too fast for the time step.
//!
//! A spring of stiffness `k` that meets the inertia `1 / w` oscillates with `sqrt(k w)` rad/s;
//! semi-implicit Euler of step `h` diverges where `k w h^2` is above 4, a damper `d` that is taken
//! at the step's beginning where `d w h` is above 2. Source: Hairer, Lubich, Wanner, Geometric
//! Numerical Integration, I.1.4. `w` is MuJoCo's `dof_invweight0`, of the initial pose.

use super::lower::inverse_weights;
use ostler_model::summary::short;
use ostler_model::{Integrator, JointKind, Model, MotorLaw};

/// `k w h^2` above which an oscillation has fewer than six steps.
const SPRING: f64 = 1.0;
/// `d w h` above which a step turns the velocity's sign.
const DAMPER: f64 = 1.0;
/// Joints that are named.
const NAMED: usize = 4;

/// What acts on a joint (N/m or N m/rad, and per velocity).
#[derive(Debug, Clone, Copy, Default)]
struct Drive {
    stiffness: f64,
    /// Of forces that are taken from the state in which a step begins.
    explicit_damping: f64,
}

/// A note on the joints whose springs or dampers are too fast for steps of `dt` (s), if there are
/// some.
pub(super) fn note(model: &Model, dt: f64, integrator: Integrator) -> Option<String> {
    let driven = model.joints.iter().enumerate().filter_map(|(j, joint)| {
        let drive = drive(model, j, integrator);
        let acts = drive.stiffness > 0.0 || drive.explicit_damping > 0.0;
        let single = matches!(joint.kind, JointKind::Hinge | JointKind::Slide);
        (acts && single).then_some((joint, drive))
    });
    let driven: Vec<_> = driven.collect();
    // Large robots' weights take a while: not for nothing.
    if driven.is_empty() {
        return None;
    }
    let weights = inverse_weights(model).ok()?.dof;
    let mut found: Vec<(f64, String)> = Vec::new();
    for (joint, drive) in driven {
        let weight = weights[joint.dof_adr];
        let spring = drive.stiffness * weight * dt * dt;
        let damper = drive.explicit_damping * weight * dt;
        if spring > SPRING {
            let steps = std::f64::consts::TAU / spring.sqrt();
            found.push((
                spring / SPRING,
                format!(
                    "{} (stiffness {}: an oscillation takes {steps:.1} steps)",
                    joint.name,
                    short(drive.stiffness)
                ),
            ));
        } else if damper > DAMPER {
            found.push((
                damper / DAMPER,
                format!(
                    "{} (damping {}: it takes {damper:.1} times the velocity in a step)",
                    joint.name,
                    short(drive.explicit_damping)
                ),
            ));
        }
    }
    if found.is_empty() {
        return None;
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = found.len().saturating_sub(NAMED);
    let mut names: Vec<String> = found.into_iter().take(NAMED).map(|f| f.1).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    Some(format!(
        "joints that are too stiff or too damped for time steps of {dt} s: {}; a smaller sim.dt, more armature or lower gains",
        names.join(", ")
    ))
}

fn drive(model: &Model, joint: usize, integrator: Integrator) -> Drive {
    let explicit = matches!(integrator, Integrator::Euler | Integrator::Rk4);
    let mut drive = Drive { stiffness: model.joints[joint].stiffness, ..Drive::default() };
    let own = model.actuators.iter().filter(|a| a.joint() == Some(joint));
    for actuator in own.filter(|a| a.enabled && a.muscle.is_none()) {
        match actuator.motor.as_ref().map(|m| &m.law) {
            // Evaluated once a step, whatever the integrator.
            Some(MotorLaw::Pd { stiffness, damping, .. }) => {
                drive.stiffness += stiffness;
                drive.explicit_damping += damping;
            }
            Some(MotorLaw::Network { .. }) => {}
            Some(MotorLaw::MuJoCo) | None => {
                let gear = actuator.gear[0] * actuator.gear[0];
                drive.stiffness -= actuator.bias[1].min(0.0) * gear;
                if explicit {
                    drive.explicit_damping -= actuator.bias[2].min(0.0) * gear;
                }
            }
        }
    }
    drive
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::mjcf;

    fn arm(kp: &str, kv: &str) -> Model {
        // About its end, 1 kg at 0.1 m: 0.01 kg m^2.
        let text = format!(
            r#"<mujoco><worldbody><body><joint name="elbow" axis="0 1 0"/>
            <geom type="sphere" size="0.0001" pos="0.1 0 0" mass="1"/></body></worldbody>
            <actuator><position joint="elbow" kp="{kp}" kv="{kv}"/></actuator></mujoco>"#
        );
        mjcf::parse(std::path::Path::new("arm.xml"), text).unwrap()
    }

    #[test]
    fn a_servo_that_is_too_stiff_for_the_step_is_named() {
        let euler = |kp, kv, dt| note(&arm(kp, kv), dt, Integrator::Euler);
        // k w h^2 = 400 / 0.01 * 0.005^2 = 1.
        assert_eq!(euler("390", "1", 0.005), None);
        let said = euler("1600", "1", 0.005).unwrap();
        assert!(said.contains("elbow (stiffness 1600: an oscillation takes 3.1 steps)"), "{said}");
        assert_eq!(euler("1600", "1", 0.002), None);
        assert!(euler("1", "0", 1.0).is_some());
    }

    #[test]
    fn damping_counts_where_the_integrator_takes_it_explicitly() {
        // d w h = 4 / 0.01 * 0.005 = 2.
        let said = note(&arm("10", "4"), 0.005, Integrator::Euler).unwrap();
        assert!(said.contains("elbow (damping 4: it takes 2.0 times"), "{said}");
        assert_eq!(note(&arm("10", "4"), 0.005, Integrator::ImplicitFast), None);
        assert_eq!(note(&arm("10", "1.9"), 0.005, Integrator::Euler), None);
    }
}
