//! `[[task.reset]]` and `[task.start]`.

use super::{OneOrMany, Ranges};
use crate::draw::DrawConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.reset]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetTerm {
    /// `qpos`, `qvel`, `joint_pos("pattern*")`, `joint_pos([a, b])`, the same of `joint_vel`,
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
    /// Offset of any distribution, one for all coordinates, of which each has its own draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawConfig>,
    /// Uniform factor of the value so far; as `uniform`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Ranges>,
    /// An expression that replaces the value: one number for all, or one each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
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

/// `[task.start]`: what the start of an episode fulfils.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartConfig {
    /// Conditions on the whole start; where one of them does not hold, commands, positions and
    /// velocities are drawn again.
    pub until: Conditions,
    /// Draws of a start at most; the last one counts then.
    #[serde(default = "tries")]
    pub tries: u32,
}

/// One condition, or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a condition in quotes, or a list of them")]
pub enum Conditions {
    /// One.
    One(String),
    /// All of these.
    All(Vec<String>),
}

impl Default for Conditions {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl Conditions {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::All(all) => all,
        }
    }
}

/// As many as dm_control's `PropPlacer` takes for each prop.
fn tries() -> u32 {
    20
}
