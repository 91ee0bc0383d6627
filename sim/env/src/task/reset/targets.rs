//! `target` of `[[task.reset]]`: which coordinates are meant.

use super::super::elements::Chosen;
use super::super::pose::argument;
use super::super::read::{Names, Parts, free_joint};
use super::ResetPlace;
use super::value::unit;
use crate::config::ConfigError;
use ostler_base::names::nearest;
use ostler_lang::expr::Unit;
use ostler_model::{JointKind, Model};

const TARGETS: [&str; 13] = [
    "qpos",
    "qvel",
    "joint_pos",
    "joint_vel",
    "pos",
    "quat",
    "rpy",
    "lin_vel",
    "ang_vel",
    "roll",
    "pitch",
    "yaw",
    "keyframe",
];

/// What a target means.
pub(super) enum Target {
    /// Coordinates.
    Places(Vec<ResetPlace>),
    /// Positions of these joints.
    Joints(Chosen),
    /// Velocities of these joints.
    JointVelocities(Chosen),
    /// The quaternion at this index of `qpos`.
    Quaternion(usize),
    /// The same by turns about x, y and z: roll, pitch and yaw.
    Rpy(usize),
    /// Keyframes, one of which is chosen.
    Keyframes,
}

impl Target {
    /// Units of the numbers that it takes; none of keyframes.
    pub(crate) fn units(&self, model: &Model) -> Option<Vec<Unit>> {
        let of = |place: ResetPlace| unit(model, &place);
        Some(match self {
            Self::Places(places) => places.iter().map(|p| unit(model, p)).collect(),
            Self::Joints(joints) => {
                let at = |&j: &usize| of(ResetPlace::Position(model.joints[j].qpos_adr));
                joints.all.iter().map(at).collect()
            }
            Self::JointVelocities(joints) => {
                let at = |&j: &usize| of(ResetPlace::Velocity(model.joints[j].dof_adr));
                joints.all.iter().map(at).collect()
            }
            Self::Quaternion(at) => vec![of(ResetPlace::Rotation(*at)); 4],
            Self::Rpy(at) => vec![of(ResetPlace::Yaw(*at)); 3],
            Self::Keyframes => return None,
        })
    }
}

/// What to write for a target that there is not: of those with a name, where one is `named`.
fn meant(function: &str, named: bool) -> String {
    let fits = |target: &str| !(named && matches!(target, "qpos" | "qvel"));
    let known = || TARGETS.into_iter().filter(|target| fits(target));
    // `vel` is not enough to tell which velocity.
    let ends = format!("_{function}");
    let longer: Vec<String> =
        known().filter(|t| t.ends_with(&ends)).map(|t| format!("\"{t}\"")).collect();
    if !function.is_empty() && !longer.is_empty() {
        return format!("did you mean {}?", longer.join(" or "));
    }
    match nearest(function, known()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("targets are: {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// The coordinates that a target means.
pub(super) fn target(
    model: &Model,
    names: Names<'_>,
    target: &str,
    path: &str,
) -> Result<Target, ConfigError> {
    let function = target.split('(').next().unwrap_or_default().trim();
    let takes_name = !matches!(function, "qpos" | "qvel");
    if !TARGETS.contains(&function) {
        let help = meant(function, argument(target).is_some());
        return Err(ConfigError {
            span: target.find(function).map(|at| at..at + function.len()),
            ..ConfigError::new(path, format!("no reset target \"{function}\"")).help(help)
        });
    }
    let name = match (takes_name, argument(target)) {
        (false, None) if target.trim() == function => "",
        (true, Some(name)) if !name.is_empty() => name,
        (false, _) => {
            return Err(ConfigError::new(path, format!("{function} takes no name"))
                .help(format!("write \"{function}\"")));
        }
        (true, _) => {
            return Err(ConfigError::new(path, format!("{function} needs a name"))
                .help(format!("write \"{function}(NAME)\"")));
        }
    };
    let named =
        |e: ConfigError| ConfigError { span: target.find(name).map(|at| at..at + name.len()), ..e };
    Ok(match function {
        "qpos" => Target::Places((0..model.nq).map(ResetPlace::Position).collect()),
        "qvel" => Target::Places((0..model.nv).map(ResetPlace::Velocity).collect()),
        "joint_pos" | "joint_vel" => {
            let found = names.several(name, &Parts::scalars(model), path).map_err(named)?;
            match function {
                "joint_pos" => Target::Joints(found),
                _ => Target::JointVelocities(found),
            }
        }
        "keyframe" => Target::Keyframes,
        _ => {
            let body = names.one(name, &Parts::floating(model), path).map_err(named)?;
            let Some(free) = free_joint(model, body).map(|j| &model.joints[j]) else {
                let why = format!("body \"{}\" has no free joint", model.bodies[body].name);
                let help = instead(model, body, function);
                return Err(named(ConfigError::new(path, why).help(help)));
            };
            let (q, v) = (free.qpos_adr, free.dof_adr);
            let places: Vec<ResetPlace> = match function {
                "pos" => (q..q + 3).map(ResetPlace::Position).collect(),
                "lin_vel" => (v..v + 3).map(ResetPlace::Velocity).collect(),
                "ang_vel" => (v + 3..v + 6).map(ResetPlace::Velocity).collect(),
                "roll" => vec![ResetPlace::Turn(q + 3, 0)],
                "pitch" => vec![ResetPlace::Turn(q + 3, 1)],
                "quat" => return Ok(Target::Quaternion(q + 3)),
                "rpy" => return Ok(Target::Rpy(q + 3)),
                _ => vec![ResetPlace::Yaw(q + 3)],
            };
            Target::Places(places)
        }
    })
}

/// How the place or velocity of a body without a free joint is set.
fn instead(model: &Model, body: usize, function: &str) -> String {
    let carrier = &model.bodies[model.bodies[body].weld];
    let joints = || carrier.joints.clone();
    if model.bodies[body].mocap {
        let why = "a mocap body stands where the robot's file has it; a place that is drawn is a";
        return format!("{why} [[task.command]], read as command.NAME");
    }
    if model.bodies[body].weld == 0 {
        return match model.bodies[body].parent {
            0 => "it stands where the robot's file has it: a <freejoint/> there would set it free",
            _ => "it is fixed to the world, and stands where the robot's file has it",
        }
        .into();
    }
    if joints().any(|j| model.joints[j].kind == JointKind::Free) {
        return format!("it is fixed to \"{}\": {function}({})", carrier.name, carrier.name);
    }
    let scalars = joints().filter(|j| model.joints[*j].is_scalar());
    let scalars: Vec<&str> = scalars.map(|j| model.joints[j].name.as_str()).collect();
    let set = if function.ends_with("vel") { "joint_vel" } else { "joint_pos" };
    match scalars.is_empty() {
        true => "it turns by a ball joint, which qpos, qvel and keyframe(NAME) set".into(),
        false => format!("it moves by {set}({})", scalars.join(", ")),
    }
}
