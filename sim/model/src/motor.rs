//! Motors: laws by which an actuator of a hinge or slide joint follows a target of its
//! position, beyond MuJoCo's. Once in every physics step the law makes the control of a
//! MuJoCo motor.

use super::{Field, Model};
use crate::kernels;
use std::collections::BTreeMap;

/// The law of an actuator whose control is a target of its joint's position (m, rad).
#[derive(Debug, Clone, PartialEq)]
pub struct Motor {
    /// What becomes of the target.
    pub law: MotorLaw,
    /// Physics steps by which controls arrive late.
    pub delay: Delay,
    /// Motors with the same number have one delay in an environment.
    pub group: usize,
}

/// By how many steps something is late, and when that is drawn: physics steps of actuators,
/// control steps of actions and observations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Delay {
    /// Least steps.
    pub least: u32,
    /// Most steps: where it is more, every environment has its own.
    pub most: u32,
    /// Steps between draws; 0: only where an episode begins.
    pub redraw: u32,
    /// Probability that a draw within an episode changes nothing.
    pub hold: f32,
}

impl Delay {
    /// For `ostler check`, when it is drawn: `, drawn every 2 steps but for a share of 0.3`; empty
    /// where it stays for an episode.
    pub fn drawn(&self) -> String {
        let hold = match self.hold > 0.0 {
            true => format!(" but for a share of {}", self.hold),
            false => String::new(),
        };
        match self.redraw {
            0 => String::new(),
            1 => format!(", drawn in every step{hold}"),
            n => format!(", drawn every {n} steps{hold}"),
        }
    }
}

/// A law from a target, a joint's position and its velocity to an effort.
#[derive(Debug, Clone, PartialEq)]
pub enum MotorLaw {
    /// MuJoCo's own, of the actuator's gain and bias: the motor only delays its control.
    MuJoCo,
    /// `stiffness (target - q) - damping dq/dt`, within the limit.
    Pd {
        /// Stiffness (N/m or N m/rad).
        stiffness: f64,
        /// Damping (N s/m or N m s/rad).
        damping: f64,
        /// Its limit.
        limit: EffortLimit,
    },
    /// A network ([`Model::networks`]) of the error `target - q` and of dq/dt.
    Network {
        /// Its number.
        network: usize,
        /// Its limit.
        limit: EffortLimit,
    },
}

/// Most effort of a motor. With a speed it falls linearly from `stall` at rest to 0 at that
/// speed, as a DC motor's does, and is never more than `effort`. Source: Isaac Lab, "Actuators".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EffortLimit {
    /// Most effort (N, N m); infinite: none.
    pub effort: f64,
    /// Effort at rest (N, N m) and the speed at which there is none (m/s, rad/s).
    pub fall: Option<[f64; 2]>,
}

impl MotorLaw {
    /// The limit of the law, if it is not MuJoCo's.
    pub fn limit(&self) -> Option<EffortLimit> {
        match self {
            Self::MuJoCo => None,
            Self::Pd { limit, .. } | Self::Network { limit, .. } => Some(*limit),
        }
    }
}

/// A network from errors and velocities of a joint to its effort.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The file's name, for messages.
    pub name: String,
    /// Factor of the error, before the network.
    pub position_scale: f64,
    /// Factor of the velocity, before the network.
    pub velocity_scale: f64,
    /// Factor of its output.
    pub effort_scale: f64,
    /// What it sees and remembers.
    pub kind: NetworkKind,
    /// Fully connected layers, in order; the last has one output.
    pub layers: Vec<Layer>,
}

/// What a network sees and remembers.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkKind {
    /// Errors and velocities of some steps.
    Mlp {
        /// Physics steps back, 0 the present one; of each the error and the velocity.
        steps: Vec<u32>,
        /// All velocities stand before all errors, instead of behind them.
        velocities_first: bool,
    },
    /// The present error and velocity, through layers of a long short-term memory before the
    /// others.
    Lstm {
        /// Weights `[4 width][inputs + width]` of each: of the inputs, then of its own outputs;
        /// sums of both biases. Gates in PyTorch's order: input, forget, cell, output.
        cells: Vec<Layer>,
        /// Outputs of each.
        width: usize,
    },
}

/// A fully connected layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Inputs.
    pub inputs: usize,
    /// Weights, a row of `inputs` for each output.
    pub weight: Vec<f64>,
    /// One for each output.
    pub bias: Vec<f64>,
    /// What follows it.
    pub then: Activation,
}

/// A function of every output of a layer.
#[repr(i32)]
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    #[default]
    Nothing = kernels::THEN_NOTHING,
    Relu = kernels::THEN_RELU,
    Elu = kernels::THEN_ELU,
    Tanh = kernels::THEN_TANH,
    Softsign = kernels::THEN_SOFTSIGN,
    Sigmoid = kernels::THEN_SIGMOID,
    Silu = kernels::THEN_SILU,
    LeakyRelu = kernels::THEN_LEAKY_RELU,
}

impl Network {
    /// Numbers that one motor remembers for it.
    pub fn memory(&self) -> usize {
        match &self.kind {
            NetworkKind::Mlp { steps, .. } => 2 * (1 + self.back_of(steps)),
            NetworkKind::Lstm { cells, width } => 2 * width * cells.len(),
        }
    }

    fn back_of(&self, steps: &[u32]) -> usize {
        steps.iter().copied().max().unwrap_or(0) as usize
    }

    /// Most steps back that it sees.
    pub fn back(&self) -> usize {
        match &self.kind {
            NetworkKind::Mlp { steps, .. } => self.back_of(steps),
            NetworkKind::Lstm { .. } => 0,
        }
    }

    /// Most inputs or outputs of a layer.
    pub fn widest(&self) -> usize {
        let cells = match &self.kind {
            NetworkKind::Mlp { .. } => &[][..],
            NetworkKind::Lstm { cells, .. } => cells,
        };
        let widths = cells.iter().chain(&self.layers);
        widths.map(|l| l.inputs.max(l.bias.len())).max().unwrap_or(0)
    }

    /// Multiplications of one evaluation.
    pub fn products(&self) -> usize {
        let cells = match &self.kind {
            NetworkKind::Mlp { .. } => &[][..],
            NetworkKind::Lstm { cells, .. } => cells,
        };
        cells.iter().chain(&self.layers).map(|l| l.weight.len()).sum()
    }
}

impl Model {
    /// A motor of every group whose delay is drawn anew within an episode, in their order.
    pub fn redrawn(&self) -> Vec<&Motor> {
        let motors = self.actuators.iter().filter_map(|a| a.motor.as_ref());
        let drawn = motors.filter(|m| m.delay.redraw > 0);
        let groups: BTreeMap<usize, &Motor> = drawn.map(|m| (m.group, m)).collect();
        groups.into_values().collect()
    }

    /// Numbers that one actuator remembers.
    pub fn memory_of(&self, actuator: usize) -> usize {
        let Some(motor) = &self.actuators[actuator].motor else {
            return 0;
        };
        let network = match motor.law {
            MotorLaw::Network { network, .. } => self.networks[network].memory(),
            MotorLaw::MuJoCo | MotorLaw::Pd { .. } => 0,
        };
        motor.delay.most as usize + network
    }

    /// Numbers that an environment's actuators remember: whether they have stepped, and what
    /// each needs.
    pub fn nmemory(&self) -> usize {
        let any = self.actuators.iter().any(|a| a.motor.is_some());
        let each = (0..self.nu()).map(|u| self.memory_of(u));
        usize::from(any) + each.sum::<usize>()
    }

    /// A number of a motor's law that takes the place of the actuator's field.
    pub(crate) fn motor_field(&self, field: Field, actuator: usize) -> Option<f64> {
        let motor = self.actuators.get(actuator)?.motor.as_ref()?;
        match (field, &motor.law) {
            (Field::Delay, _) => Some(f64::from(motor.delay.least)),
            (Field::Kp, MotorLaw::Pd { stiffness, .. }) => Some(*stiffness),
            (Field::Kd, MotorLaw::Pd { damping, .. }) => Some(*damping),
            (Field::Effort, law) => law.limit().map(|limit| limit.effort),
            _ => None,
        }
    }
}
