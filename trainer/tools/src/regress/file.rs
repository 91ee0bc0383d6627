//! A regression file: the configuration, the budget and the expectations of a case.
//!
//! The keys are the fields below; `docs/regress.md` explains them. Mistakes are shown
//! with their lines, as in a run's configuration; `case` reads and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CaseFile {
    /// The case's name; the file's stem if not set.
    pub name: String,
    /// One line for `--list` and the summary.
    pub description: String,
    /// The run's configuration, relative to this file's folder.
    pub config: String,
    /// Values of the configuration that are replaced, as by `--set`.
    pub set: Vec<String>,
    /// Requirement on the machine.
    pub requires: Option<Requirement>,
    /// One run each.
    pub seeds: Vec<u64>,
    /// `[budget]`.
    pub budget: Budget,
    /// `[expect]`.
    pub expect: Expect,
    /// `[short]`: the case for `--short`.
    pub short: Option<ShortForm>,
}

/// `requires`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// An NVIDIA GPU.
    Cuda,
}

/// `[budget]`: how long each run trains; one of the first three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Iterations.
    pub iterations: Option<u64>,
    /// Environment steps, rounded up to whole iterations.
    pub env_steps: Option<u64>,
    /// Time: `"90s"`, `"5m"`.
    pub time: Option<String>,
    /// A run, and its evaluation, is killed after this time; 10 minutes, or 5 minutes
    /// more than `time`, if not set.
    pub limit: Option<String>,
}

/// Where a run's return comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnOf {
    /// `ostler eval` with the last checkpoint: mean actions, no noise.
    #[default]
    Evaluation,
    /// The last `Train/mean_reward`: the last 100 training episodes.
    Training,
}

/// `[expect]`: the conditions of a case. A crash, a NaN, a missing metric and an early end fail a
/// case without being named here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Least mean return over the seeds.
    pub return_at_least: Option<f64>,
    /// Where each seed's return comes from.
    pub return_of: ReturnOf,
    /// Episodes of the evaluation, 1 or more.
    pub episodes: u32,
    /// Of the interval of the mean over the seeds, within 0.5 and 1.
    pub confidence: f64,
    /// An interval that holds the threshold is no failure.
    pub allow_uncertain: bool,
    /// Least share of the baseline's steps per second.
    pub throughput_share: Option<f64>,
    /// Iterations at a run's start that do not count for throughput; a fifth if not set.
    pub warm_up: Option<u64>,
    /// Largest resident memory of a training process (MiB).
    pub peak_memory_mib: Option<f64>,
    /// Tags that may be NaN: exact, or with `*`.
    pub nan_allowed: Vec<String>,
    /// `[expect.metrics."TAG"]`: bounds of anything that is logged.
    pub metrics: BTreeMap<String, Bound>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            return_at_least: None,
            return_of: ReturnOf::default(),
            episodes: 100,
            confidence: 0.95,
            allow_uncertain: false,
            throughput_share: None,
            warm_up: None,
            peak_memory_mib: None,
            nan_allowed: Vec::new(),
            metrics: BTreeMap::new(),
        }
    }
}

/// The number, of a metric's values, that is bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Every value.
    #[default]
    Each,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// `[expect.metrics."TAG"]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bound {
    /// Least.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Iterations at a run's end that count; all if not set.
    pub last: Option<u64>,
    /// The bounded number.
    pub of: Aggregate,
    /// Stands for the tag in an iteration that does not have it; only for counters that
    /// are written when they count something.
    pub absent: Option<f64>,
}

/// `[short]`: inherits only the configuration and `set`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShortForm {
    /// As above.
    pub seeds: Vec<u64>,
    /// `[short.budget]`.
    pub budget: Budget,
    /// `[short.expect]`.
    pub expect: Expect,
}
