//! Terms, outputs and commands of a deployment.

use super::super::{Task, command::Commands};
use crate::spaces::ActionSpace;
use ostler_lang::draw::Draw;
use ostler_lang::expr::ElementKind;
use ostler_model::{Delay, Model, SensorKind};

/// An observation of the policy.
#[derive(Debug, Clone)]
pub struct DeployedTerm {
    /// Its place among the task's compiled terms.
    pub(super) index: usize,
    /// Its name.
    pub name: String,
    /// Its expression.
    pub expr: String,
    /// Its unit before scaling; `-` for none.
    pub unit: String,
    /// Parts of the robot that it depends on, in order of appearance.
    pub elements: Vec<String>,
    /// Numbers of a control step.
    pub len: usize,
    /// Factor of each.
    pub scale: Vec<f32>,
    /// Range of the scaled numbers.
    pub clip: Option<[f32; 2]>,
    /// First place in the policy's row: the oldest value.
    pub first: usize,
    /// Control steps whose values are in the row, the oldest first.
    pub frames: usize,
    /// Places from one control step to the next.
    pub stride: usize,
    /// Noise in training, before scaling, drawn in every step.
    pub noise: Option<Draw>,
    /// What each component's noise is multiplied with; empty: with nothing.
    pub noise_sizes: Vec<f32>,
    /// Error in training that stays for an episode, before scaling.
    pub bias: Option<Draw>,
    /// Delay in training, which a robot has by itself.
    pub delay: Option<Delay>,
}

impl DeployedTerm {
    /// Place of the newest value in the policy's row.
    pub fn newest(&self) -> usize {
        self.first + (self.frames - 1) * self.stride
    }

    /// Control steps by which it is always seen late; none where chance decides, or it is not.
    pub(super) fn fixed_delay(&self) -> Option<usize> {
        let Delay { least, most, .. } = self.delay?;
        (least == most && most > 0).then_some(most as usize)
    }
}

/// An output of the policy.
#[derive(Debug, Clone)]
pub struct Output {
    /// The actuator that it drives, or `choice`.
    pub name: String,
    /// Range that it is clipped to; infinite: none.
    pub clip: [f32; 2],
    /// Delay in training, which a robot has by itself.
    pub delay: Option<Delay>,
}

/// A command of the task.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// First of all commands' components.
    pub(super) first: usize,
    /// Components.
    pub len: usize,
    /// Unit; empty: none.
    pub unit: String,
    /// Least and greatest number of each in training; infinite where nothing limits it.
    pub range: Vec<[f32; 2]>,
}

/// What the agent's policy sees, in the order of its row.
pub(crate) fn terms(task: &Task, model: &Model, agent: usize) -> Vec<DeployedTerm> {
    let all = task.observations.terms.iter().enumerate();
    let mut own: Vec<DeployedTerm> = all
        .filter(|(_, t)| t.agent == agent)
        .filter_map(|(index, t)| {
            let (spot, sight) = (t.policy_at?, t.policy.as_ref()?);
            // Rows of all agents lie one behind the other.
            let first = spot.first - agent * task.observations.width.policy;
            let unit = match t.term.program.ty() {
                ostler_lang::expr::Type::Bool => "-".to_string(),
                ostler_lang::expr::Type::Num { unit, .. } => unit.clone(),
            };
            let elements = t.term.program.elements().iter();
            Some(DeployedTerm {
                index,
                name: t.term.name.clone(),
                expr: t.term.text.clone(),
                unit,
                elements: elements.map(|e| named(model, e.kind, e.index)).collect(),
                len: t.len(),
                scale: t.scale.clone(),
                clip: t.clip,
                first,
                frames: spot.frames,
                stride: spot.stride,
                noise: sight.noise.clone(),
                noise_sizes: sight.sizes.clone(),
                bias: sight.bias.clone(),
                delay: sight.lag,
            })
        })
        .collect();
    own.sort_by_key(|t| t.first);
    own
}

/// The name of a part of the robot.
fn named(model: &Model, kind: ElementKind, index: usize) -> String {
    let name = match kind {
        ElementKind::Body | ElementKind::Subtree => model.bodies.get(index).map(|b| &b.name),
        ElementKind::Joint => model.joints.get(index).map(|j| &j.name),
        ElementKind::Geom => model.geoms.get(index).map(|g| &g.name),
        ElementKind::Site => model.sites.get(index).map(|s| &s.name),
        ElementKind::Actuator => model.actuators.get(index).map(|a| &a.name),
        ElementKind::Sensor => model.sensors.get(index).map(|s| &s.name),
    };
    name.cloned().unwrap_or_else(|| format!("{kind:?} {index}"))
}

/// The agent's outputs.
pub(crate) fn outputs(task: &Task, model: &Model, agent: usize) -> Vec<Output> {
    let actions = &task.actions;
    let names = actions.names(model, &task.team);
    let own = actions.own[agent].clone();
    own.map(|k| {
        let lag = actions.late.iter().find(|(range, _)| range.contains(&k));
        let name = match actions.spaces[agent] {
            ActionSpace::Discrete(_) => "choice".to_string(),
            ActionSpace::Continuous(_) => names.get(k).cloned().unwrap_or_default(),
        };
        Output { name, clip: actions.clip[k], delay: lag.map(|(_, lag)| *lag) }
    })
    .collect()
}

/// Commands of the task.
pub(crate) fn commands(task: &Task) -> Vec<Command> {
    let Commands { scope, .. } = &task.commands;
    let ranges = task.commands.ranges();
    let mut first = 0;
    let mut all = Vec::with_capacity(scope.len());
    for (name, len, unit) in scope {
        all.push(Command {
            name: name.clone(),
            first,
            len: *len,
            unit: unit.clone(),
            range: ranges[first..first + len].to_vec(),
        });
        first += len;
    }
    all
}

/// Whether a robot has such a sensor, which no state computes.
pub(crate) fn is_instrument(kind: &SensorKind) -> bool {
    matches!(
        kind,
        SensorKind::Accelerometer(_)
            | SensorKind::Force(_)
            | SensorKind::Torque(_)
            | SensorKind::Touch(_)
    )
}
