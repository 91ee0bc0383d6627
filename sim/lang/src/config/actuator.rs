//! `[[task.actuator]]`.

use super::{Delay, OneOrMany};
use ostler_model::Activation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.actuator]]`: what drives some joints. A joint that has an actuator in the robot's
/// file keeps its name and gets this law; one that has none gets an actuator of its own name.
/// The control is a target of the joint's position (m, rad), and the law is evaluated in every
/// physics step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActuatorTerm {
    /// Hinge and slide joints, by name or pattern with `*`.
    pub joints: Vec<String>,
    /// The law.
    #[serde(default)]
    pub model: ActuatorModel,
    /// Effort per error of the position (N/m or N m/rad): one number for all joints, a list with
    /// one per joint in the order of `joints`, or by patterns of their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<OneOrMany>,
    /// Effort against the velocity (N s/m or N m s/rad); likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<OneOrMany>,
    /// Most effort, either way (N or N m), `inf` for no limit; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "a number, `inf`, a list of such or a table of patterns of names")]
    pub effort_limit: Option<OneOrMany>,
    /// Effort that the motor has at rest and that falls with its speed (N or N m); likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation_effort: Option<OneOrMany>,
    /// Speed at which there is none of it any more (m/s or rad/s), `inf`: it does not fall; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "a number, `inf`, a list of such or a table of patterns of names")]
    pub velocity_limit: Option<OneOrMany>,
    /// Inertia of the rotor at the joint (kg or kg m^2), instead of the file's; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armature: Option<OneOrMany>,
    /// Dry friction of the joint (N or N m), instead of the file's; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<OneOrMany>,
    /// Physics steps by which controls arrive late; a range is drawn where an episode begins,
    /// once for all these joints. Of a table all times are physics steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// The network of `model = "mlp"` and `"lstm"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkConfig>,
}

/// The law of an actuator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActuatorModel {
    /// `stiffness * (target - q) - damping * dq/dt`: MuJoCo's position servo.
    #[default]
    Pd,
    /// The same, within what a DC motor can give at its speed.
    DcMotor,
    /// A network of earlier errors and velocities.
    Mlp,
    /// A long short-term memory of errors and velocities.
    Lstm,
}

impl ActuatorModel {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pd => "pd",
            Self::DcMotor => "dc_motor",
            Self::Mlp => "mlp",
            Self::Lstm => "lstm",
        }
    }
}

/// `network` of an actuator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// A safetensors file with PyTorch's names or an ONNX file, in the folder of the robot's file
    /// or below it.
    pub file: String,
    /// Of a safetensors file: what follows every fully connected layer but the last; softsign
    /// without it. An ONNX file says it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// `model = "mlp"`: physics steps back that it sees, 0 the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<u32>>,
    /// `model = "mlp"`: whether errors of the position or velocities come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<InputOrder>,
    /// Factor of errors of the position.
    #[serde(default = "one")]
    pub position_scale: f64,
    /// Factor of velocities.
    #[serde(default = "one")]
    pub velocity_scale: f64,
    /// Factor of the network's output.
    #[serde(default = "one")]
    pub effort_scale: f64,
}

/// Order of a network's inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputOrder {
    /// All errors of the position, then all velocities.
    #[default]
    PositionVelocity,
    /// The other way round.
    VelocityPosition,
}

fn one() -> f64 {
    1.0
}
