//! Controls of a deployment: what actuators are told, and the joints that they drive.

use super::super::Task;
use super::super::action::{Law, UNLIMITED, limits};
use super::Deployment;
use ostler_model::{Actuator, Dynamics, Model, MotorLaw, Transmission};

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

/// A hinge or slide joint of the robot.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployedJoint {
    /// Its name.
    pub name: String,
    /// Unit of its position: `rad` or `m`.
    pub unit: &'static str,
    /// Its place in MuJoCo's `qpos`.
    pub qpos: usize,
    /// Limits of its position, if it has some.
    pub range: Option<[f64; 2]>,
    /// Its position in the task's pose.
    pub pose: f64,
}

/// A control: what an actuator of the robot is told.
#[derive(Debug, Clone)]
pub struct Control {
    /// Number of the actuator in the model.
    pub actuator: usize,
    /// Its name.
    pub name: String,
    /// What it drives, in words: `joint knee`, `tendon split`.
    pub drives: String,
    /// The joint that it drives, if that is one hinge or slide joint.
    pub joint: Option<DeployedJoint>,
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
    /// What it is added to by the robot's program, and then clipped to these ends: the joint's
    /// position (times the gear), or the control before.
    pub added_to: Option<(&'static str, [f32; 2])>,
    /// Its unit.
    pub unit: &'static str,
    /// Stiffness (N/m, N m/rad) with which the joint or tendon follows a target, if it does.
    pub stiffness: Option<f64>,
    /// Damping (N s/m, N m s/rad) of the actuator, if it has some.
    pub damping: Option<f64>,
    /// Most force or torque at the joint or tendon, if it is limited.
    pub effort: Option<f64>,
    /// Physics steps by which it comes late in training.
    pub delay: [u32; 2],
}

/// What follows from them.
pub(super) fn controls(task: &Task, model: &Model, agent: usize) -> Vec<Control> {
    let own = &task.actions.own[agent];
    let drives = task.actions.drives.iter();
    drives
        .filter(|d| own.contains(&d.output))
        .map(|d| {
            let (mapping, position) = match &d.law {
                Law::Affine { scale, offset, position } => {
                    let (scale, offset) = (*scale, *offset);
                    (Mapping::Affine { scale, offset }, *position)
                }
                Law::Added { scale, offset, .. } => {
                    let (scale, offset) = (*scale, *offset);
                    (Mapping::Affine { scale, offset }, false)
                }
                Law::Choice(row) => (Mapping::Choice(row.clone()), false),
                Law::Binary(row) => (Mapping::Binary([row[0], row[1]]), false),
            };
            let control = control(task, model, d.actuator, mapping);
            let position = position || control.position;
            let added_to = match &d.law {
                Law::Added { to, .. } if to.control => Some("the control of the step before"),
                Law::Added { .. } => Some("the joint's position as the control step begins"),
                _ => None,
            };
            Control {
                output: d.output - own.start,
                range: if added_to.is_some() { UNLIMITED } else { d.ctrlrange },
                added_to: added_to.map(|to| (to, d.ctrlrange)),
                position: position && added_to.is_none(),
                unit: control.joint.as_ref().filter(|_| position).map_or("-", |j| j.unit),
                ..control
            }
        })
        .collect()
}

/// The control of an actuator that follows from output 0 by `mapping`.
pub(super) fn control(task: &Task, model: &Model, u: usize, mapping: Mapping) -> Control {
    let actuator = &model.actuators[u];
    let gains = Gains::of(actuator);
    let joint = actuator.joint().and_then(|j| joint(task, model, j));
    let position = joint.is_some() && gains.stiffness.is_some();
    Control {
        actuator: u,
        name: actuator.name.clone(),
        drives: match actuator.joint().map(|j| &model.joints[j]) {
            Some(own) if !own.is_scalar() => format!("{} {}", own.kind.word(), own.name),
            _ => model.target(actuator),
        },
        output: 0,
        mapping,
        range: limits(actuator),
        position,
        added_to: None,
        gear: actuator.gear[0],
        unit: joint.as_ref().filter(|_| position).map_or("-", |j| j.unit),
        joint,
        stiffness: gains.stiffness,
        damping: gains.damping,
        effort: gains.effort,
        delay: actuator.motor.as_ref().map_or([0; 2], |m| [m.delay.least, m.delay.most]),
    }
}

/// A joint, if it is a hinge or slide.
fn joint(task: &Task, model: &Model, j: usize) -> Option<DeployedJoint> {
    let joint = &model.joints[j];
    let unit = joint.kind.scalar_unit()?;
    Some(DeployedJoint {
        name: joint.name.clone(),
        unit,
        qpos: joint.qpos_adr,
        range: joint.range,
        pose: task.pose.qpos[joint.qpos_adr],
    })
}

/// All hinge and slide joints, in the model's order.
pub(super) fn joints(task: &Task, model: &Model) -> Vec<DeployedJoint> {
    let all = 0..model.joints.len();
    all.filter_map(|j| joint(task, model, j)).collect()
}

/// Gains at the joint or tendon of an actuator whose control is a target.
struct Gains {
    stiffness: Option<f64>,
    damping: Option<f64>,
    effort: Option<f64>,
}

impl Gains {
    fn of(actuator: &Actuator) -> Self {
        let finite = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
        if let Some(motor) = &actuator.motor
            && let MotorLaw::Pd { stiffness, damping, limit } = &motor.law
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
        let along =
            actuator.joint().is_some() || matches!(actuator.transmission, Transmission::Tendon(_));
        let servo = plain && actuator.muscle.is_none() && along && kp > 0.0;
        let effort = actuator.forcerange.map(|r| r[0].abs().max(r[1].abs()));
        Self {
            stiffness: servo.then_some(kp),
            damping: finite(kd),
            effort: effort.and_then(|e| finite(e * gear.abs())),
        }
    }
}

/// Actuators that hold the pose.
pub(super) fn held(task: &Task, model: &Model) -> Vec<(String, f32)> {
    let held = task.actions.held.iter();
    held.map(|&(u, ctrl)| (model.actuators[u].name.clone(), ctrl)).collect()
}

impl Deployment<'_> {
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
