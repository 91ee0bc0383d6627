//! `[[task.reset]]`: how a new episode starts.

mod fixed;
mod targets;
mod term;
mod value;

use super::command::Commands;
use super::pose::Pose;
use super::team::Team;
use super::term::Term;
use crate::config::{ConfigError, ResetTerm};
use ostler_engine::kernels::{self, NOWHERE};
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::draw::{Draw, row};
use ostler_lang::expr::{Program, Scope};
use ostler_model::JointKind;
pub(super) use value::StartExpr;

/// What an episode begins with.
#[derive(Debug, Clone, Default)]
pub(super) struct Begin {
    /// Generalised positions `(nq)`.
    pub qpos: Vec<f32>,
    /// Velocities `(nv)`.
    pub qvel: Vec<f32>,
    /// Activations `(na)`.
    pub act: Vec<f32>,
}

/// The compiled reset terms: a list of operations on single coordinates.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The pose in which episodes start, without chance `(nq)`.
    pub fixed: Vec<f32>,
    /// What the operations change.
    pub(super) start: Begin,
    pub(super) operations: Vec<Operation>,
    /// Expressions of the operations, in their order.
    pub(super) exprs: Vec<StartExpr>,
    /// First index in `qpos` of each quaternion.
    pub(super) quaternions: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub place: ResetPlace,
    pub change: Change,
    /// None without chance.
    pub draw: Option<Draw>,
    /// Pair of random words it takes.
    pub word: u32,
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
    /// Is added to this component of an expression, which replaces it.
    Part(usize),
    /// Multiplies it.
    Scale,
    /// Replaces it; without chance this value does.
    Drawn(f32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ResetPlace {
    Position(usize),
    Velocity(usize),
    Activation(usize),
    /// Turns the quaternion at this index of `qpos` about the world's z axis.
    Yaw(usize),
    /// Turns it about an axis (0 to 2) of its own.
    Turn(usize, usize),
    /// Draws it, all rotations alike.
    Rotation(usize),
}

impl Reset {
    /// Checks targets, sizes and expressions. `pose`: the pose before the terms, if not the
    /// initial pose; `params` are the values of those of `scope`, `step_dt` the control step (s).
    pub fn compile(
        scope: &Scope<'_>,
        terms: &[ResetTerm],
        pose: Option<&Pose>,
        (commands, params, step_dt): (&Commands, &[f32], f64),
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let model = scope.model;
        let mut all = Self {
            fixed: Vec::new(),
            start: Begin { qpos: Vec::new(), qvel: vec![0.0; model.nv], act: vec![0.0; model.na] },
            operations: Vec::new(),
            exprs: Vec::new(),
            quaternions: Vec::new(),
        };
        let begin = pose.map_or(&model.qpos0, |pose| &pose.qpos);
        all.start.qpos = begin.iter().map(|&q| q as f32).collect();
        if let Some(pose) = pose {
            all.start.act = pose.act.iter().map(|&x| x as f32).collect();
        }
        for joint in &model.joints {
            match joint.kind {
                JointKind::Free => all.quaternions.push(joint.qpos_adr + 3),
                JointKind::Ball => all.quaternions.push(joint.qpos_adr),
                JointKind::Slide | JointKind::Hinge => {}
            }
        }
        let mut draw = 0;
        // Where a motion is, is drawn: terms that read it are no part of the pose without chance.
        let motions = scope.defined.motion.is_some();
        let (mut calm, mut calm_draw) = (motions.then(|| all.clone()), 0);
        for (t, term) in terms.iter().enumerate() {
            let expr = term.expr.as_deref().unwrap_or_default();
            if team.agents_of(&[&term.target]) == [None] && team.agents_of(&[expr]) != [None] {
                let why = "the target is the world's, but its expression mentions {agent}";
                return Err(ConfigError::new(format!("task.reset[{t}].target"), why)
                    .help("name the agent's own part, such as pos({agent}), or use each(...)"));
            }
            for agent in team.agents_of(&[&term.target]) {
                let steered = !commands.courses.is_empty();
                let of = (team, agent);
                let before = all.exprs.len();
                term::add(&mut all, scope, (t, term), of, steered, &mut draw)?;
                let mut added = all.exprs[before..].iter();
                if let (Some(calm), false) = (&mut calm, added.any(StartExpr::reads_motion)) {
                    term::add(calm, scope, (t, term), of, steered, &mut calm_draw)?;
                }
            }
        }
        let drawn = [&commands.middles()[..], params];
        all.fixed = calm.as_ref().unwrap_or(&all).without_chance(scope, drawn, step_dt)?;
        let bad = all.fixed.iter().position(|q| !q.is_finite());
        if let (None, Some(i), Some(last)) = (pose, bad, all.exprs.last()) {
            let of = |op: &Operation| op.place == ResetPlace::Position(i);
            let own = all.exprs.iter().rev().find(|e| {
                let mut after = all.operations[e.place..].iter();
                after.any(|op| of(op) && matches!(op.change, Change::Part(_)))
            });
            let path = own.unwrap_or(last).term.path.clone();
            let why = "the pose of episodes without randomness, which the default pose is, would \
                       have a coordinate that is no number";
            return Err(ConfigError::new(path, why).help(
                "its draws and commands are then in the middle of their ranges; or \
                 task.default_pose = \"initial\" or \"keyframe(NAME)\"",
            ));
        }
        Ok(all)
    }

    /// Writes itself into the tables.
    pub(super) fn enter(&self, t: &mut Tables) {
        let Begin { qpos, qvel, act } = self.start.clone();
        (t.begin_qpos, t.begin_qvel, t.begin_act) = (qpos, qvel, act);
        t.quaternion = self.quaternions.iter().map(|&i| i as u32).collect();
        for op in &self.operations {
            let (target, index) = match op.place {
                ResetPlace::Position(i) => (kernels::PLACE_POSITION, i),
                ResetPlace::Velocity(i) => (kernels::PLACE_VELOCITY, i),
                ResetPlace::Activation(i) => (kernels::PLACE_ACTIVATION, i),
                ResetPlace::Yaw(i) => (kernels::PLACE_YAW, i),
                ResetPlace::Turn(i, 0) => (kernels::PLACE_TURN_X, i),
                ResetPlace::Turn(i, 1) => (kernels::PLACE_TURN_Y, i),
                ResetPlace::Turn(i, _) => (kernels::PLACE_TURN_Z, i),
                ResetPlace::Rotation(i) => (kernels::PLACE_ROTATION, i),
            };
            let (change, value, part) = match op.change {
                Change::Add => (kernels::CHANGE_ADD, 0.0, NOWHERE),
                Change::Set(value) => (kernels::CHANGE_SET, value, NOWHERE),
                Change::Part(part) => (kernels::CHANGE_SET, 0.0, part as u32),
                Change::Scale => (kernels::CHANGE_SCALE, 0.0, NOWHERE),
                Change::Drawn(value) => (kernels::CHANGE_DRAWN, value, NOWHERE),
            };
            t.place_target.push(target);
            t.place_index.push(index as u32);
            row(t, op.draw.as_ref());
            t.place_word.push(op.word);
            t.place_change.push(change);
            t.place_value.push(value);
            t.place_least.push(op.clip[0]);
            t.place_most.push(op.clip[1]);
            t.place_part.push(part);
        }
        for expr in &self.exprs {
            t.start_place.push(expr.place as u32);
            t.start_size.push(expr.term.program.units().len() as u32);
            t.start_reads.push(expr.reads);
        }
    }

    /// All expressions.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.exprs.iter().map(|e| &e.term)
    }

    /// Positions with every draw at nothing; expressions see commands and draws of their own
    /// in the middle of their ranges.
    fn without_chance(
        &self,
        scope: &Scope<'_>,
        [commands, params]: [&[f32]; 2],
        step_dt: f64,
    ) -> Result<Vec<f32>, ConfigError> {
        let model = scope.model;
        let mut tables = Tables::of(model);
        self.enter(&mut tables);
        tables.draw_chance.fill(kernels::CHANCE_NONE);
        let sizes = Sizes {
            nplace: self.operations.len(),
            ndraw: self.operations.len(),
            noption: tables.option.len(),
            nquat: self.quaternions.len(),
            nstart: self.exprs.len(),
            nstartvalue: self.widest(),
            ..Sizes::of(model)
        };
        let random = scope.start.map_or_else(Vec::new, |start| start.draws.middles());
        let drawn = [commands, &random, params];
        let exprs: Vec<&Program> = self.terms().map(|t| &t.program).collect();
        fixed::draw_pose(model, &tables, &sizes, &exprs, drawn, step_dt as f32)
            .map_err(|e| ConfigError::new("task.reset", e.to_string()))
    }

    /// Components of the widest expression.
    pub(super) fn widest(&self) -> usize {
        let each = self.terms().map(|t| t.program.units().len());
        each.max().unwrap_or(0)
    }
}
