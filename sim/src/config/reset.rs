//! `[[task.reset]]`.

use super::{OneOrMany, Ranges};
use serde::{Deserialize, Serialize};

/// `[[task.reset]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetTerm {
    /// `qpos`, `qvel`, `joint_pos("pattern*")`, `joint_vel("pattern*")`,
    /// `pos(body)`, `quat(body)`, `rpy(body)`, `lin_vel(body)`, `ang_vel(body)` (bodies with a
    /// free joint), `roll(body)`, `pitch(body)`, `yaw(body)`, `keyframe("name")` or
    /// `keyframe([a, b])`.
    pub target: String,
    /// Uniform offset from the pose so far: `[low, high]`, one each, or by patterns of joints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uniform: Option<Ranges>,
    /// Offset whose logarithm is uniform; likewise, above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_uniform: Option<Ranges>,
    /// Standard deviation of a normal offset: one, one each, or by patterns of joints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<OneOrMany>,
    /// Uniform factor of the value so far; as `uniform`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Ranges>,
    /// Replaces the value instead of adding to it; as `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<OneOrMany>,
    /// Rows of values, of which one is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choice: Vec<Vec<f64>>,
    /// Share of the joints' ranges, about their middles: alone, positions are drawn evenly
    /// there; beside others, positions are clipped to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_limits: Option<f64>,
}
