//! Terms, outputs, controls and commands of a deployment.

use super::super::action::Law;
use super::super::late::Lag;
use super::super::observe::Error;
use super::super::{Task, command::Commands};
use crate::env::ActionSpace;
use crate::model::{Actuator, Dynamics, JointKind, Model, MotorLaw, SensorKind};
use crate::task::expr::ElementKind;

/// A drawn number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chance {
    /// Evenly from the one to the other.
    Uniform([f32; 2]),
    /// About 0, with this standard deviation.
    Normal(f32),
}

/// A delay in training, which a robot has by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Late {
    /// Least and most control steps.
    pub steps: [u32; 2],
    /// Control steps between draws; 0: once an episode.
    pub redraw: u32,
    /// Probability that a draw changes nothing.
    pub hold: f32,
}

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
    pub noise: Option<Chance>,
    /// Error in training that stays for an episode, before scaling.
    pub bias: Option<Chance>,
    /// Delay in training.
    pub delay: Option<Late>,
}

impl DeployedTerm {
    /// Place of the newest value in the policy's row.
    pub fn newest(&self) -> usize {
        self.first + (self.frames - 1) * self.stride
    }

    /// Control steps by which it is always seen late; none where chance decides, or it is not.
    pub(super) fn fixed_delay(&self) -> Option<usize> {
        let [least, most] = self.delay?.steps;
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
    /// Delay in training.
    pub delay: Option<Late>,
}

/// How a control follows from an output.
#[derive(Debug, Clone, PartialEq)]
pub enum Mapping {
    /// `offset + scale * output`.
    Affine {
        /// Factor.
        scale: f32,
        /// Added.
        offset: f32,
    },
    /// The output is the number of a choice.
    Choice(Vec<f32>),
    /// The first for outputs below 0, the second for all others.
    Binary([f32; 2]),
}

/// A control: what an actuator of the robot is told.
#[derive(Debug, Clone)]
pub struct Control {
    /// Number of the actuator in the model.
    pub actuator: usize,
    /// Its name.
    pub name: String,
    /// The joint that it drives, if it is one.
    pub joint: Option<String>,
    /// The output that decides it, of the agent's own.
    pub output: usize,
    /// How it follows.
    pub mapping: Mapping,
    /// Range that it is clipped to; infinite: none.
    pub range: [f32; 2],
    /// It is a target of the joint's position, times its gear.
    pub position: bool,
    /// Target per position of the joint.
    pub gear: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Stiffness (N/m, N m/rad) with which the joint follows a target, if it does.
    pub stiffness: Option<f64>,
    /// Damping (N s/m, N m s/rad) of the actuator, if it has some.
    pub damping: Option<f64>,
    /// Most force or torque at the joint, if it is limited.
    pub effort: Option<f64>,
    /// Physics steps by which it comes late in training.
    pub delay: [u32; 2],
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

fn chance(error: Error) -> Chance {
    match error {
        Error::Uniform(range) => Chance::Uniform(range),
        Error::Normal(sigma) => Chance::Normal(sigma),
    }
}

fn late(lag: Lag) -> Late {
    Late {
        steps: [lag.low, lag.high],
        redraw: lag.redraw,
        hold: lag.hold,
    }
}

/// What the agent's policy sees, in the order of its row.
pub fn terms(task: &Task, model: &Model, agent: usize) -> Vec<DeployedTerm> {
    let all = task.observations.terms.iter().enumerate();
    let mut own: Vec<DeployedTerm> = all
        .filter(|(_, t)| t.agent == agent)
        .filter_map(|(index, t)| {
            let (spot, sight) = (t.policy_at?, t.policy.as_ref()?);
            // Rows of all agents lie one behind the other.
            let first = spot.first - agent * task.observations.width.policy;
            let unit = match t.program.ty() {
                super::super::expr::Type::Bool => "-".to_string(),
                super::super::expr::Type::Num { unit, .. } => unit.clone(),
            };
            let elements = t.program.elements().iter();
            Some(DeployedTerm {
                index,
                name: t.name.clone(),
                expr: t.text.clone(),
                unit,
                elements: elements.map(|e| named(model, e.kind, e.index)).collect(),
                len: t.len(),
                scale: t.scale.clone(),
                clip: t.clip,
                first,
                frames: spot.frames,
                stride: spot.stride,
                noise: sight.noise.map(chance),
                bias: sight.bias.map(chance),
                delay: sight.lag.map(late),
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
pub fn outputs(task: &Task, model: &Model, agent: usize) -> Vec<Output> {
    let actions = &task.actions;
    let names = actions.names(model, &task.team);
    let own = actions.own[agent].clone();
    own.map(|k| {
        let lag = actions.late.iter().find(|(range, _)| range.contains(&k));
        let name = match actions.spaces[agent] {
            ActionSpace::Discrete(_) => "choice".to_string(),
            ActionSpace::Continuous(_) => names.get(k).cloned().unwrap_or_default(),
        };
        Output {
            name,
            clip: actions.clip[k],
            delay: lag.map(|(_, lag)| late(*lag)),
        }
    })
    .collect()
}

/// What follows from them.
pub fn controls(task: &Task, model: &Model, agent: usize) -> Vec<Control> {
    let own = &task.actions.own[agent];
    let drives = task.actions.drives.iter();
    drives
        .filter(|d| own.contains(&d.output))
        .map(|d| {
            let actuator = &model.actuators[d.actuator];
            let joint = actuator.joint().map(|j| &model.joints[j]);
            let (mapping, position) = match &d.law {
                Law::Affine {
                    scale,
                    offset,
                    position,
                } => {
                    let (scale, offset) = (*scale, *offset);
                    (Mapping::Affine { scale, offset }, *position)
                }
                Law::Choice(row) => (Mapping::Choice(row.clone()), false),
                Law::Binary(row) => (Mapping::Binary([row[0], row[1]]), false),
            };
            let gains = Gains::of(actuator);
            Control {
                actuator: d.actuator,
                name: actuator.name.clone(),
                joint: joint.map(|j| j.name.clone()),
                output: d.output - own.start,
                mapping,
                range: d.ctrlrange,
                position: position || gains.stiffness.is_some(),
                gear: actuator.gear[0],
                unit: match (gains.stiffness.is_some(), joint.map(|j| j.kind)) {
                    (true, Some(JointKind::Hinge)) => "rad",
                    (true, Some(JointKind::Slide)) => "m",
                    _ => "-",
                },
                stiffness: gains.stiffness,
                damping: gains.damping,
                effort: gains.effort,
                delay: actuator
                    .motor
                    .as_ref()
                    .map_or([0; 2], |m| [m.delay.min(m.most_delay), m.most_delay]),
            }
        })
        .collect()
}

/// Gains at the joint of an actuator whose control is a target.
struct Gains {
    stiffness: Option<f64>,
    damping: Option<f64>,
    effort: Option<f64>,
}

impl Gains {
    fn of(actuator: &Actuator) -> Self {
        let finite = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
        if let Some(motor) = &actuator.motor
            && let MotorLaw::Pd {
                stiffness,
                damping,
                limit,
            } = &motor.law
        {
            return Self {
                stiffness: Some(*stiffness),
                damping: Some(*damping),
                effort: finite(limit.effort),
            };
        }
        // Both the length and the moment arm have the gear in them.
        let gear = actuator.gear[0];
        let [kp, kd] = [-actuator.bias[1], -actuator.bias[2]].map(|k| k * gear * gear);
        let plain = matches!(actuator.dynamics, Dynamics::None | Dynamics::FilterExact);
        let servo = plain && actuator.muscle.is_none() && actuator.joint().is_some() && kp > 0.0;
        let effort = actuator.forcerange.map(|r| r[0].abs().max(r[1].abs()));
        Self {
            stiffness: servo.then_some(kp),
            damping: finite(kd),
            effort: effort.and_then(|e| finite(e * gear.abs())),
        }
    }
}

/// Actuators that hold the pose.
pub fn held(task: &Task, model: &Model) -> Vec<(String, f32)> {
    let held = task.actions.held.iter();
    held.map(|&(u, ctrl)| (model.actuators[u].name.clone(), ctrl))
        .collect()
}

/// Commands of the task.
pub fn commands(task: &Task) -> Vec<Command> {
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
pub fn is_instrument(kind: &SensorKind) -> bool {
    matches!(
        kind,
        SensorKind::Accelerometer(_)
            | SensorKind::Force(_)
            | SensorKind::Torque(_)
            | SensorKind::Touch(_)
    )
}

impl super::Deployment<'_> {
    /// Clipped outputs and controls for the policy's outputs `[A]`.
    pub fn act(&self, output: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let within = |x: f32, [low, high]: [f32; 2]| x.max(low).min(high);
        let outputs = self.outputs.iter().zip(output);
        let action: Vec<f32> = outputs.map(|(o, x)| within(*x, o.clip)).collect();
        let control = |c: &Control| {
            let x = action.get(c.output).copied().unwrap_or_default();
            let value = match &c.mapping {
                Mapping::Affine { scale, offset } => offset + scale * x,
                Mapping::Choice(row) => row.get(x as usize).copied().unwrap_or_default(),
                Mapping::Binary(row) => row[usize::from(x >= 0.0)],
            };
            within(value, c.range)
        };
        let controls = self.controls.iter().map(control).collect();
        (action, controls)
    }
}
