//! `[[task.reset]]`: how a new episode starts.

mod targets;
mod term;

use super::pose::Pose;
use super::team::Team;
use crate::config::{ConfigError, ResetTerm};
use crate::model::{JointKind, Model};
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
    pub change: Change,
    pub chance: Chance,
    /// Pair of random words it takes.
    pub draw: u32,
    /// The coordinate is clipped to this.
    pub clip: [f32; 2],
}

/// What a draw does to a coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// Is added to it.
    Add,
    /// Is added to this value, which replaces it.
    Set(f32),
    /// Multiplies it.
    Scale,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ResetPlace {
    Position(usize),
    Velocity(usize),
    /// Turns the quaternion at this index of `qpos` about the world's z axis.
    Yaw(usize),
    /// Turns it about an axis (0 to 2) of its own.
    Turn(usize, usize),
    /// Draws it, all rotations alike.
    Rotation(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chance {
    None,
    Uniform([f32; 2]),
    /// Logarithms.
    Log([f32; 2]),
    Normal(f32),
    /// One of these.
    Choice(Vec<f32>),
}

const UNLIMITED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

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
                term::add(&mut all, model, term, (team, agent), &path, &mut draw)?;
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
            nplaceoption: tables.place_option.len(),
            nquat: self.quaternions.len(),
            ..Sizes::of(model)
        };
        crate::env::draw_pose(&tables, &sizes)
    }
}
