//! `[[task.state]]` and `[[task.metric]]`: values of a task's own, numbers of its episodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.state]]`: a number or vector of every environment that may refer to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTerm {
    /// Name, read as `state.NAME`. With `{agent}` in it there is one of every agent, with
    /// the name of a list of `[task.names]` in braces one of every entry.
    pub name: String,
    /// Unit, such as `"m"`; without it that of `init` and `update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its value in the first state of an episode. A single number stands for all
    /// components of `update`.
    pub init: String,
    /// Its next value, computed once at the end of every control step: after rewards and
    /// terminations, before observations.
    pub update: String,
}

/// `[[task.metric]]`: a number of every episode that is logged and evaluated, never rewarded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricTerm {
    /// Name, logged as `Metrics/NAME`; one called `success` is shown first.
    pub name: String,
    /// Value after every step: a scalar (a boolean counts as 0 or 1).
    pub expr: String,
    /// Unit, such as `"m/s"`, which the value must be in; without it the value's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// How the values of an episode become one.
    #[serde(default)]
    pub over: Over,
    /// Agents that it is for, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// How a metric's values after the steps of an episode become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// The one after the last step.
    Last,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Their sum.
    Sum,
    /// 1 if the condition held after any step, else 0.
    Any,
}
