//! `target` of `[[task.reset]]`: which coordinates are meant.

use super::super::elements::Chosen;
use super::super::pose::{argument, listed};
use super::ResetPlace;
use super::value::unit;
use crate::config::ConfigError;
use ostler_base::names::nearest;
use ostler_base::names::select;
use ostler_lang::expr::{Definitions, Unit};
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

/// The coordinates that a target means.
pub(super) fn target(
    model: &Model,
    defined: &Definitions<'_>,
    target: &str,
    path: &str,
) -> Result<Target, ConfigError> {
    let function = target.split('(').next().unwrap_or_default().trim();
    let takes_name = !matches!(function, "qpos" | "qvel");
    if !TARGETS.contains(&function) {
        let help = nearest(function, TARGETS).map_or_else(
            || format!("targets are: {}", TARGETS.join(", ")),
            |n| format!("did you mean \"{n}\"?"),
        );
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
            let simple = model
                .joints
                .iter()
                .enumerate()
                .filter(|(_, j)| matches!(j.kind, JointKind::Hinge | JointKind::Slide))
                .map(|(i, j)| (i, j.name.as_str()));
            let known = |name: &str| simple.clone().any(|(_, n)| n == name);
            // A joint may be called as a list is written.
            let written = match known(name) {
                true => vec![name],
                false => listed(name),
            };
            let entries = written.iter().flat_map(|text| defined.entries(text, known));
            let found = entries.map(|pattern| {
                let found = select(&pattern, "hinge or slide joint", simple.clone(), path)?;
                Ok((pattern, found))
            });
            let found = Chosen::new(found, path).map_err(named)?;
            if found.all.is_empty() {
                return Err(named(ConfigError::new(path, "the list is empty")));
            }
            match function {
                "joint_pos" => Target::Joints(found),
                _ => Target::JointVelocities(found),
            }
        }
        "keyframe" => Target::Keyframes,
        _ => {
            let body = defined.body(model, name).map_err(|e| named(ConfigError::new(path, e)))?;
            let mut joints = model.bodies[body].joints.clone().map(|j| &model.joints[j]);
            let Some(free) = joints.find(|j| j.kind == JointKind::Free) else {
                return Err(named(
                    ConfigError::new(path, format!("body \"{name}\" has no free joint"))
                        .help("use joint_pos(...) and joint_vel(...) for jointed bodies"),
                ));
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
