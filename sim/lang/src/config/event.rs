//! `[[task.event]]`: changes of the robot and pushes, by chance.

use super::OneOrMany;
use crate::draw::Distribution;
use ostler_engine::kernels;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.event]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventTerm {
    /// Name, unique.
    pub name: String,
    /// When it happens.
    pub when: EventTime,
    /// Time between two of an environment, for `when = "interval"` (s): a number, or a range
    /// from which every interval is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<Span>,
    /// The quantity that changes: `friction(PATTERN)[0]`, `mass(PATTERN)`, `vel(BODY)`, ...
    pub set: String,
    /// How the drawn number acts on the robot's own.
    #[serde(default)]
    pub operation: Operation,
    /// How it is distributed.
    #[serde(default)]
    pub distribution: Distribution,
    /// Where the numbers lie: `[low, high]`, or a pair for each component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<EventRange>,
    /// Of draws that have one: one number, or one per component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<OneOrMany>,
    /// Standard deviation of draws that have one: one number, or one per component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<OneOrMany>,
    /// Probability that a number is 1, else it is 0: one, or one per component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<OneOrMany>,
    /// Of choices: the numbers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<f64>,
    /// How likely each of the choices is, compared with the others; without it all alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// One draw for all elements that fit, instead of one each.
    #[serde(default)]
    pub shared: bool,
    /// Of forces and torques: how long they act (s); without it, or `inf`, until the next draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "a number, `inf` or a range [low, high]")]
    pub duration_s: Option<Span>,
}

/// When an event happens.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventTime {
    /// Once for every environment, before its first episode.
    Startup = kernels::EVENT_STARTUP,
    /// Where an episode begins.
    Reset = kernels::EVENT_RESET,
    /// Again and again within an episode; the clock starts with it.
    Interval = kernels::EVENT_INTERVAL,
}

/// How a drawn number acts on the robot's own (of velocities: on the present one).
#[repr(u32)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It replaces it.
    #[default]
    Abs = kernels::OPERATION_ABS,
    /// It is added.
    Add = kernels::OPERATION_ADD,
    /// It is a factor.
    Scale = kernels::OPERATION_SCALE,
}

/// A number, or a range from which it is drawn uniformly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number or a range [low, high]")]
pub enum Span {
    /// Always the same.
    One(f64),
    /// `[low, high]`.
    Range([f64; 2]),
}

impl Span {
    /// Least and greatest.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::One(x) => [x, x],
            Self::Range(ends) => ends,
        }
    }
}

/// Ranges of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected [low, high], a list of such pairs, or a table of pairs for pseudo_inertia"
)]
pub enum EventRange {
    /// The same for all components.
    One([f64; 2]),
    /// One for each component.
    Each(Vec<[f64; 2]>),
    /// Of `pseudo_inertia`.
    Pseudo(PseudoRange),
}

/// Ranges of the parameters of `pseudo_inertia`; those that are left out stay 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PseudoRange {
    /// Half the logarithm of the factor of mass and inertia.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<[f64; 2]>,
    /// Logarithms of the stretch along x, y and z: one range for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d: Option<[f64; 2]>,
    /// Shear in the planes xy, xz and yz: one range for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s: Option<[f64; 2]>,
    /// Shift of the centre of mass along x, y and z (m): one range for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<[f64; 2]>,
}
