//! `[[task.reset]]`: how a new episode starts.

use super::pose::{self, Pose, argument};
use super::team::{AgentIndex, Team};
use super::{number, range, select, spread};
use crate::config::{ConfigError, ResetTerm};
use crate::model::{JointKind, Model};
use crate::names::nearest;
use crate::state::{Sizes, Tables};

/// The compiled reset terms: a list of operations on single coordinates.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The pose in which episodes start, without chance `(nq)`.
    pub fixed: Vec<f32>,
    /// Generalised positions and velocities before the operations.
    pub(super) start: (Vec<f32>, Vec<f32>),
    pub(super) operations: Vec<Operation>,
    /// First index in `qpos` of each quaternion.
    pub(super) quaternions: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub place: ResetPlace,
    /// Replaces the value.
    pub set: Option<f32>,
    /// Is added.
    pub chance: Chance,
    /// Pair of random words it takes.
    pub draw: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ResetPlace {
    Position(usize),
    Velocity(usize),
    /// Turns the quaternion at this index of `qpos` about the world's z axis.
    Yaw(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Chance {
    None,
    Uniform([f32; 2]),
    Normal(f32),
}

const TARGETS: [&str; 9] = [
    "qpos",
    "qvel",
    "joint_pos",
    "joint_vel",
    "pos",
    "lin_vel",
    "ang_vel",
    "yaw",
    "keyframe",
];

impl Reset {
    /// Checks targets and sizes. `pose`: the pose before the terms, if not the initial pose.
    pub fn compile(
        model: &Model,
        terms: &[ResetTerm],
        pose: Option<&Pose>,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let mut all = Self {
            fixed: Vec::new(),
            start: (Vec::new(), vec![0.0; model.nv]),
            operations: Vec::new(),
            quaternions: Vec::new(),
        };
        let begin = pose.map_or(&model.qpos0, |pose| &pose.qpos);
        all.start.0 = begin.iter().map(|&q| q as f32).collect();
        for joint in &model.joints {
            match joint.kind {
                JointKind::Free => all.quaternions.push(joint.qpos_adr + 3),
                JointKind::Ball => all.quaternions.push(joint.qpos_adr),
                JointKind::Slide | JointKind::Hinge => {}
            }
        }
        let mut draw = 0;
        for (t, term) in terms.iter().enumerate() {
            for agent in team.agents_of(&[&term.target]) {
                let path = format!("task.reset[{t}]");
                all.term(model, term, team, agent, &path, &mut draw)?;
            }
        }
        all.fixed = all.without_chance(model);
        Ok(all)
    }

    /// Positions with every draw at nothing.
    fn without_chance(&self, model: &Model) -> Vec<f32> {
        let mut tables = Tables::default();
        super::tables::starts(&mut tables, self);
        tables.place_chance.fill(0);
        let sizes = Sizes {
            nplace: self.operations.len(),
            nquat: self.quaternions.len(),
            ..Sizes::of(model)
        };
        crate::env::draw_pose(&tables, &sizes)
    }

    fn term(
        &mut self,
        model: &Model,
        term: &ResetTerm,
        team: &Team,
        agent: AgentIndex,
        path: &str,
        draws: &mut u32,
    ) -> Result<(), ConfigError> {
        let target = team.fill(agent, &term.target);
        let places = places(model, &target, &format!("{path}.target"))
            .map_err(|e| team.blame(agent, &term.target, e))?;
        let chance = match (term.uniform, term.normal) {
            (Some(_), Some(_)) => {
                return Err(
                    ConfigError::new(path, "both `uniform` and `normal` are given")
                        .help("use two terms to add both"),
                );
            }
            (Some(pair), None) => Chance::Uniform(range(pair, &format!("{path}.uniform"))?),
            (None, Some(sigma)) if sigma < 0.0 => {
                return Err(ConfigError::new(
                    format!("{path}.normal"),
                    format!("{sigma} is negative"),
                ));
            }
            (None, Some(sigma)) => Chance::Normal(number(sigma, &format!("{path}.normal"))?),
            (None, None) => Chance::None,
        };
        let Some(places) = places else {
            let first = agent.unwrap_or(0) == 0;
            let done = self.keyframe(model, term, &target, path, first);
            return done.map_err(|e| team.blame(agent, &term.target, e));
        };
        if term.value.is_none() && matches!(chance, Chance::None) {
            return Err(
                ConfigError::new(path, "does nothing").help("give `uniform`, `normal` or `value`")
            );
        }
        let set = match &term.value {
            Some(v) => spread(v, places.len(), "coordinates", &format!("{path}.value"))?
                .into_iter()
                .map(Some)
                .collect(),
            None => vec![None; places.len()],
        };
        for (place, set) in places.into_iter().zip(set) {
            if matches!(place, ResetPlace::Yaw(_))
                && set.is_some()
                && !matches!(chance, Chance::None)
            {
                return Err(ConfigError::new(
                    path,
                    "yaw takes either `value` or a random angle, not both",
                ));
            }
            self.operations.push(Operation {
                place,
                set,
                chance,
                draw: *draws,
            });
            *draws += 1;
        }
        Ok(())
    }

    /// Expands `keyframe("name")` into one operation per coordinate. Where every agent has
    /// a keyframe of its own, those after the `first` leave alone what they do not move.
    fn keyframe(
        &mut self,
        model: &Model,
        term: &ResetTerm,
        target: &str,
        path: &str,
        first: bool,
    ) -> Result<(), ConfigError> {
        if term.uniform.is_some() || term.normal.is_some() || term.value.is_some() {
            return Err(ConfigError::new(path, "a keyframe takes no numbers")
                .help("add another reset term, such as target = \"qpos\", after it"));
        }
        let key = pose::keyframe(model, target, &format!("{path}.target"))?;
        let positions = pose::positions(model, key, first).into_iter();
        let velocities = pose::velocities(key, first).into_iter();
        let positions = positions.map(|i| (ResetPlace::Position(i), key.qpos[i]));
        let velocities = velocities.map(|i| (ResetPlace::Velocity(i), key.qvel[i]));
        for (place, value) in positions.chain(velocities) {
            let set = Some(number(value, &format!("{path}.target"))?);
            self.operations.push(Operation {
                place,
                set,
                chance: Chance::None,
                draw: 0,
            });
        }
        Ok(())
    }
}

/// The coordinates a target means; `None` for a keyframe.
fn places(model: &Model, target: &str, path: &str) -> Result<Option<Vec<ResetPlace>>, ConfigError> {
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
    let named = |e: ConfigError| ConfigError {
        span: target.find(name).map(|at| at..at + name.len()),
        ..e
    };
    let places = match function {
        "qpos" => (0..model.nq).map(ResetPlace::Position).collect(),
        "qvel" => (0..model.nv).map(ResetPlace::Velocity).collect(),
        "joint_pos" | "joint_vel" => {
            let simple = model
                .joints
                .iter()
                .enumerate()
                .filter(|(_, j)| matches!(j.kind, JointKind::Hinge | JointKind::Slide))
                .map(|(i, j)| (i, j.name.as_str()));
            let found = select(name, "hinge or slide joint", simple, path).map_err(named)?;
            let place = |i: usize| {
                let joint = &model.joints[i];
                if function == "joint_pos" {
                    ResetPlace::Position(joint.qpos_adr)
                } else {
                    ResetPlace::Velocity(joint.dof_adr)
                }
            };
            found.into_iter().map(place).collect()
        }
        "keyframe" => return Ok(None),
        _ => {
            let body = model
                .body(name)
                .map_err(|e| named(ConfigError::new(path, e.to_string())))?;
            let mut joints = model.bodies[body].joints.clone().map(|j| &model.joints[j]);
            let Some(free) = joints.find(|j| j.kind == JointKind::Free) else {
                return Err(named(
                    ConfigError::new(path, format!("body \"{name}\" has no free joint"))
                        .help("use joint_pos(...) and joint_vel(...) for jointed bodies"),
                ));
            };
            match function {
                "pos" => (0..3)
                    .map(|i| ResetPlace::Position(free.qpos_adr + i))
                    .collect(),
                "lin_vel" => (0..3)
                    .map(|i| ResetPlace::Velocity(free.dof_adr + i))
                    .collect(),
                "ang_vel" => (3..6)
                    .map(|i| ResetPlace::Velocity(free.dof_adr + i))
                    .collect(),
                _ => vec![ResetPlace::Yaw(free.qpos_adr + 3)],
            }
        }
    };
    Ok(Some(places))
}
