//! The law of `kind = "position"`: joint targets.

use super::{Law, Origin};
use crate::config::{ActionKind, ConfigError};
use crate::task::pose::Pose;
use ostler_model::{Actuator, Dynamics, Joint, JointKind, Model};

/// The law of `kind = "position"`; `scale` and `offset` of the output.
pub(super) fn position(
    model: &Model,
    actuator: &Actuator,
    [scale, offset]: [f32; 2],
    pose: &[f64],
    path: &str,
) -> Result<Law, ConfigError> {
    let joint = scalar_joint(model, actuator, path)?;
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
    if !actuator.is_servo() {
        return Err(no_servo(actuator, path));
    }
    // In single precision, as episodes start; its length is gear times the joint's position.
    let offset = f64::from(offset) + f64::from(pose[joint.qpos_adr] as f32);
    let gear = actuator.gear[0];
    Ok(Law::Affine {
        scale: (gear * f64::from(scale)) as f32,
        offset: (gear * offset) as f32,
        position: true,
    })
}

/// What outputs of kind `"relative"` or `"increment"` are added to.
pub(super) fn origin(
    model: &Model,
    (index, kind): (usize, ActionKind),
    pose: &Pose,
    path: &str,
) -> Result<Origin, ConfigError> {
    let actuator = &model.actuators[index];
    let servo = actuator.is_servo()
        && matches!(actuator.dynamics, Dynamics::None | Dynamics::FilterExact)
        && scalar_joint(model, actuator, path).is_ok();
    if kind == ActionKind::Relative && !servo {
        scalar_joint(model, actuator, path)?;
        let why = format!("\"{}\" is no position actuator of a joint", actuator.name);
        return Err(ConfigError::new(format!("{path}.kind"), why)
            .help("kind = \"increment\" adds to any control; [[task.actuator]] makes servos"));
    }
    let control = kind == ActionKind::Increment;
    match actuator.joint().filter(|_| servo) {
        Some(joint) => {
            let (qpos, gear) = (model.joints[joint].qpos_adr, actuator.gear[0] as f32);
            Ok(Origin { control, qpos: Some(qpos), gear })
        }
        None => {
            let first = pose.ctrl[index].unwrap_or_default() as f32;
            Ok(Origin { control, qpos: None, gear: first })
        }
    }
}

/// The hinge or slide joint that an actuator drives.
pub(super) fn scalar_joint<'m>(
    model: &'m Model,
    actuator: &Actuator,
    path: &str,
) -> Result<&'m Joint, ConfigError> {
    let scalar = |j: &&Joint| matches!(j.kind, JointKind::Hinge | JointKind::Slide);
    let joint = actuator.joint().map(|j| &model.joints[j]).filter(scalar);
    joint.ok_or_else(|| {
        ConfigError::new(
            format!("{path}.kind"),
            format!("\"{}\" does not drive a hinge or slide joint", actuator.name),
        )
    })
}

/// Why an actuator that is no servo, and gets no stiffness, takes no position.
pub(super) fn no_servo(actuator: &Actuator, path: &str) -> ConfigError {
    let name = &actuator.name;
    match is_motor(actuator) {
        true => ConfigError::new(
            format!("{path}.stiffness"),
            format!("is needed: \"{name}\" is a motor"),
        )
        .help("stiffness = 20.0 and damping = 0.5, for example"),
        false => ConfigError::new(
            format!("{path}.kind"),
            format!("\"{name}\" is neither a position actuator nor a motor"),
        ),
    }
}

/// Whether its force is in proportion to its control alone.
pub(super) fn is_motor(actuator: &Actuator) -> bool {
    let plain = actuator.gain[0] != 0.0 && actuator.gain[1..] == [0.0; 2];
    plain
        && actuator.bias == [0.0; 3]
        && actuator.gear[0] != 0.0
        && actuator.muscle.is_none()
        && actuator.dynamics == Dynamics::None
}
