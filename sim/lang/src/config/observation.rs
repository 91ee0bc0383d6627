//! `[[task.observation]]` and `[task.observations]`.

use super::values::one;
use super::{Delay, OneOrMany};
use crate::draw::DrawConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.observation]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationTerm {
    /// Name, unique in its group.
    pub name: String,
    /// Value: a scalar or vector.
    pub expr: String,
    /// Who sees it: `"policy"`, `"critic"`, or a group of another name.
    #[serde(default)]
    pub group: ObservationGroup,
    /// Multiplies the value.
    #[serde(default = "one")]
    pub scale: OneOrMany,
    /// Clip after scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Noise that is drawn anew in every step and added before scaling, in the value's unit.
    /// A single number is the half-width of uniform noise, or the standard deviation of normal
    /// noise; of a vector `[0.1, 0.1, 0.3]` gives each component one, `{ each = [0.1, 0.3] }` where
    /// there are two, for `[low, high]` is a range.
    #[serde(default)]
    pub noise: Spread,
    /// How noise that is given as a single number, or one for each component, is distributed.
    #[serde(default, skip_serializing_if = "NoiseKind::is_uniform")]
    pub noise_kind: NoiseKind,
    /// An error that is drawn where an episode begins and added in all of its steps, before
    /// scaling, in the value's unit; one for each component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<Spread>,
    /// Control steps by which it is seen late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Values of so many control steps are seen, the oldest first; 0 and 1: the present one.
    /// Without it as the group has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// How the critic sees a term of the policy; without it without noise, bias and delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<CriticCopy>,
    /// Agents that see it, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// How an observation's noise is distributed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoiseKind {
    /// Evenly from `-noise` to `noise`.
    #[default]
    Uniform,
    /// Normally, with mean 0 and standard deviation `noise`.
    Normal,
}

impl NoiseKind {
    /// Whether it is the default, which resolved configurations leave out.
    fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

/// Who sees an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum ObservationGroup {
    /// Actor and critic.
    #[default]
    Policy,
    /// Only the critic (privileged). The critic then sees policy terms, without
    /// noise, followed by these.
    Critic,
    /// Neither: a group of that name, which something else of a learner reads.
    Other(String),
}

impl From<String> for ObservationGroup {
    fn from(name: String) -> Self {
        match name.as_str() {
            "policy" => Self::Policy,
            "critic" => Self::Critic,
            _ => Self::Other(name),
        }
    }
}

impl From<ObservationGroup> for String {
    fn from(group: ObservationGroup) -> Self {
        match group {
            ObservationGroup::Policy => "policy".into(),
            ObservationGroup::Critic => "critic".into(),
            ObservationGroup::Other(name) => name,
        }
    }
}

/// Noise or a bias.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number, a range [low, high], a number for each component, { uniform = ... }, { normal = ... } or { draw = ... }"
)]
pub enum Spread {
    /// Half-width of uniform numbers, 0 or more.
    Size(f64),
    /// Uniform numbers.
    Range([f64; 2]),
    /// One for each component, in place of a single number; two are a range.
    Each(Vec<f64>),
    /// By the name of the distribution.
    Named(SpreadConfig),
}

/// `{ uniform = 0.5 }`, `{ uniform = [-0.1, 0.3] }`, `{ normal = 0.1 }`, `{ each = [0.1, 0.3] }` or
/// `{ draw = { ... } }`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpreadConfig {
    /// Half-width, or `[low, high]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uniform: Option<HalfOrRange>,
    /// Standard deviation; the mean is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<f64>,
    /// Of noise: a number for each component, in place of a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Vec<f64>>,
    /// Any distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawConfig>,
    /// Of a bias: when it is drawn, `"reset"` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<BiasWhen>,
}

/// When a bias is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BiasWhen {
    /// Where an episode begins.
    #[default]
    Reset,
    /// Once for every environment.
    Startup,
}

/// A half-width or `[low, high]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number or a range [low, high]")]
pub enum HalfOrRange {
    /// From minus this to this.
    Half(f64),
    /// From the one to the other.
    Range([f64; 2]),
}

impl Default for Spread {
    fn default() -> Self {
        Self::Size(0.0)
    }
}

impl From<f64> for Spread {
    fn from(size: f64) -> Self {
        Self::Size(size)
    }
}

/// `critic = { ... }` of a term of the policy: how the critic's rows have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CriticCopy {
    /// Whether it is in them at all.
    pub seen: bool,
    /// Noise of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Spread>,
    /// A bias of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias: Option<Spread>,
    /// A delay of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Values of so many control steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
}

impl Default for CriticCopy {
    fn default() -> Self {
        Self { seen: true, noise: None, bias: None, delay: None, history: None }
    }
}

/// `[task.observations.GROUP]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GroupOptions {
    /// `history` of terms that have none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// The order of values of several control steps.
    pub stack: Stack,
}

/// The order of a group's values of several control steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// Term after term, each with its values from the oldest to the present one.
    #[default]
    Term,
    /// Step after step, from the oldest to the present one, each with all terms.
    Time,
}
