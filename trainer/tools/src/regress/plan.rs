//! Runs and limits of a case, whole or short.

use super::file::Expect;
use serde::Serialize;
use std::time::Duration;

/// How long each run trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// So many iterations.
    Iterations(u64),
    /// So many environment steps, which are so many iterations.
    EnvSteps {
        /// Steps at least.
        steps: u64,
        /// Iterations.
        iterations: u64,
    },
    /// So long.
    Time(Duration),
}

/// More iterations than any time suffices for.
const ENDLESS: u64 = 1 << 40;

impl Length {
    /// `runner.max_iterations`.
    pub fn iterations(self) -> u64 {
        match self {
            Self::Iterations(n) | Self::EnvSteps { iterations: n, .. } => n,
            Self::Time(_) => ENDLESS,
        }
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Iterations(n) => write!(f, "{n} iterations"),
            Self::EnvSteps { steps, .. } => write!(f, "{steps} environment steps"),
            Self::Time(t) => write!(f, "{} s", t.as_secs_f64()),
        }
    }
}

/// One form of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CasePlan {
    /// One run each.
    pub seeds: Vec<u64>,
    /// How long each trains.
    pub amount: Length,
    /// A run, and its evaluation, is killed after this time.
    pub limit: Duration,
    /// Limits.
    pub expect: Expect,
}
