//! `[[task.action]]`.

use super::values::{one, zero};
use super::{Delay, OneOrMany, Ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.action]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionTerm {
    /// Actuators driven, one output each: by name, in the order in which they are written; with a
    /// pattern (`*`) among them all in the model's order.
    pub actuators: Vec<String>,
    /// How an output becomes a control.
    #[serde(default)]
    pub kind: ActionKind,
    /// Multiplies the policy's output: one number for all, a list with one per actuator in their
    /// order, or by patterns of the names of actuators or their joints.
    #[serde(default = "one")]
    pub scale: OneOrMany,
    /// Added after scaling; likewise.
    #[serde(default = "zero")]
    pub offset: OneOrMany,
    /// Clip the policy's output to this range before scaling; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<Ranges>,
    /// For `kind = "discrete"`: one row of controls per choice, `[choices][actuators]`, in the
    /// order of the actuators; for `"binary"`: two rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Vec<f64>>,
    /// Gains for `kind = "position"` on motor actuators: stiffness (N/m or N m/rad); likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<OneOrMany>,
    /// Damping for `kind = "position"` on motor actuators (N s/m or N m s/rad); likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<OneOrMany>,
    /// Control steps by which the outputs reach their actuators late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// For `kind = "position"`: an observation of these joints' positions whose `bias` their
    /// encoders have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoders: Option<String>,
    /// Agents that have it, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// Meaning of an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// `ctrl = offset + scale * output`.
    #[default]
    Control,
    /// The same with outputs -1..1 mapped onto the actuator's control range.
    Normalized,
    /// A joint position target: `target = default pose + offset + scale * output`.
    /// Position actuators take the target; motors get a PD law with `stiffness` and
    /// `damping`, evaluated once per control step.
    Position,
    /// A target relative to the joint's position in which the control step begins:
    /// `target = position + offset + scale * output`, for position actuators.
    Relative,
    /// What is added to the control of the step before: `ctrl = ctrl + offset + scale * output`.
    Increment,
    /// The policy chooses one row of `choices`.
    Discrete,
    /// One output for all actuators: below 0 the first row of `choices`, else the second.
    Binary,
}
