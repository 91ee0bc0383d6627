//! The law of `kind = "position"`: joint targets.

use super::super::pose::is_servo;
use super::Law;
use crate::config::ConfigError;
use crate::model::{Actuator, Dynamics, Joint, JointKind, Model};

/// The law of `kind = "position"`; `gains`: stiffness and damping, where they are given.
pub(super) fn position(
    model: &Model,
    actuator: &Actuator,
    [stiffness, damping]: [Option<f32>; 2],
    scale: f32,
    offset: f32,
    pose: &[f64],
    path: &str,
) -> Result<Law, ConfigError> {
    let scalar = |j: &&Joint| matches!(j.kind, JointKind::Hinge | JointKind::Slide);
    let joint = actuator.joint().map(|j| &model.joints[j]).filter(scalar);
    let Some(joint) = joint else {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!(
                "\"{}\" does not drive a hinge or slide joint",
                actuator.name
            ),
        ));
    };
    if !matches!(actuator.dynamics, Dynamics::None | Dynamics::FilterExact) {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!(
                "the control of \"{}\" is not a position: it has a state of its own",
                actuator.name
            ),
        )
        .help("use kind = \"control\""));
    }
    let gear = actuator.gear[0];
    // In single precision, as episodes start.
    let offset = f64::from(offset) + f64::from(pose[joint.qpos_adr] as f32);
    let motor =
        actuator.gain[0] != 0.0 && actuator.bias == [0.0; 3] && actuator.gain[1..] == [0.0; 2];
    let name = &actuator.name;
    if is_servo(actuator) {
        if stiffness.is_some() || damping.is_some() {
            return Err(ConfigError::new(
                format!("{path}.stiffness"),
                format!("\"{name}\" is a position actuator with gains of its own"),
            )
            .help("remove stiffness and damping here, or make it a motor in the robot file"));
        }
        // Its length is gear times the joint's position.
        return Ok(Law::Affine {
            scale: (gear * f64::from(scale)) as f32,
            offset: (gear * offset) as f32,
        });
    }
    if !motor || gear == 0.0 || actuator.dynamics != Dynamics::None {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!("\"{name}\" is neither a position actuator nor a motor"),
        ));
    }
    let Some(kp) = stiffness else {
        return Err(ConfigError::new(
            format!("{path}.stiffness"),
            format!("is needed: \"{name}\" is a motor"),
        )
        .help("stiffness = 20.0 and damping = 0.5, for example"));
    };
    let kd = damping.unwrap_or(0.0);
    for (key, value) in [("stiffness", kp), ("damping", kd)] {
        if value < 0.0 {
            return Err(ConfigError::new(
                format!("{path}.{key}"),
                format!("{value} is negative"),
            ));
        }
    }
    Ok(Law::Pd {
        scale,
        offset: offset as f32,
        kp,
        kd,
        gear: (gear * actuator.gain[0]) as f32,
        q: joint.qpos_adr,
        v: joint.dof_adr,
    })
}
