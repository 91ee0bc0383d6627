//! `[[task.command]]`.

use crate::draw::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.command]]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandTerm {
    /// Name, read as `command.NAME`.
    pub name: String,
    /// Numbers, or velocities of a robot.
    #[serde(default, skip_serializing_if = "CommandKind::is_default")]
    pub kind: CommandKind,
    /// One `[low, high]` per component: where numbers lie; normal and exponential ones are
    /// clipped to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<[f64; 2]>,
    /// How the components are distributed.
    #[serde(default, skip_serializing_if = "is_uniform")]
    pub distribution: Distribution,
    /// Means of components that have one, one each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// Standard deviations of components that have one, one each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// Probabilities that components are 1, one each; else they are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probability: Vec<f64>,
    /// Rows of components, of which one is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Vec<f64>>,
    /// How likely each of the choices is, compared with the others; without it all alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// Unit of the components, such as `"m/s"`; empty: any.
    #[serde(default)]
    pub unit: String,
    /// Time between draws (s); 0 or `inf`: only at reset. A range: drawn anew each time.
    #[serde(default)]
    #[schemars(title = "a number, `inf` or a range [low, high]")]
    pub resample_s: Resample,
    /// Condition that draws it anew at the end of a control step, and its time from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resample_when: Option<String>,
    /// Of velocities: the body whose velocity is meant; without it the one body with a free
    /// joint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// Range of the velocity along the body's x axis (m/s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lin_vel_x: Option<[f64; 2]>,
    /// Range of the velocity along the body's y axis (m/s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lin_vel_y: Option<[f64; 2]>,
    /// Range of the angular velocity about the body's z axis (rad/s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ang_vel_z: Option<[f64; 2]>,
    /// A heading that some environments are to turn to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<Heading>,
    /// Share of draws that are zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub standing: f64,
    /// Share of draws that go forward alone, at 0.3 m/s and more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forward: f64,
    /// Share of draws whose linear velocity keeps its direction in the world.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub world: f64,
    /// Linear velocities that are not greater than this are zero (m/s).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deadband: f64,
}

/// Meaning of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// Numbers.
    #[default]
    Values,
    /// Linear velocity (x, y) and angular velocity (z) of a body, in its own axes.
    Velocity,
}

impl CommandKind {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Seconds between draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected seconds, or a range [low, high] of them")]
pub enum Resample {
    /// Always so many; 0 or infinite: never.
    Every(f64),
    /// Drawn anew each time.
    Between([f64; 2]),
}

impl Default for Resample {
    fn default() -> Self {
        Self::Every(0.0)
    }
}

impl From<f64> for Resample {
    fn from(seconds: f64) -> Self {
        Self::Every(seconds)
    }
}

/// `heading = { ... }` of a velocity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Heading {
    /// Share of draws that turn to a heading; their angular velocity follows from it.
    pub share: f64,
    /// Angular velocity per error (1/s).
    pub stiffness: f64,
    /// Headings (rad).
    pub range: [f64; 2],
}

impl Default for Heading {
    fn default() -> Self {
        Self { share: 1.0, stiffness: 1.0, range: [-std::f64::consts::PI, std::f64::consts::PI] }
    }
}

fn is_uniform(distribution: &Distribution) -> bool {
    *distribution == Distribution::Uniform
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
