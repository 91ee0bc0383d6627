//! `[self_play]`.

use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[self_play]`: opponents from the run's own past (cf. Bansal et al., "Emergent complexity
/// via multi-agent competition", 2018). In a share of the environments one agent, in turn,
/// is moved by an earlier version of its policy; nothing is learnt from that agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelfPlayConfig {
    /// Earlier versions of a policy that are kept; 0: no self-play against the past.
    pub window: usize,
    /// Iterations from one version to the next, 1 or more.
    pub save_interval: u64,
    /// Share of the environments with an earlier version in them, above 0 and at most 1.
    pub share: f64,
}

impl Default for SelfPlayConfig {
    fn default() -> Self {
        Self { window: 0, save_interval: 50, share: 0.5 }
    }
}

/// A share of so many environments, to the nearest number.
pub(super) fn share_of(num_envs: usize, share: f64) -> usize {
    ((num_envs as f64 * share).round() as usize).min(num_envs)
}

/// Most versions: each acts by itself in every step.
const MOST: usize = 1000;

impl SelfPlayConfig {
    /// Whether any version is kept.
    pub fn is_on(&self) -> bool {
        self.window > 0
    }

    /// How many of so many environments have an earlier version in them; 0 where it is off.
    pub fn envs_with_past(&self, num_envs: usize) -> usize {
        match self.is_on() {
            true => share_of(num_envs, self.share),
            false => 0,
        }
    }

    /// Values that cannot be used, with paths such as `self_play.share`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: f64, allowed: &str| {
            if !ok {
                let path = format!("self_play.{key}");
                let why = format!("{value} cannot be used");
                errors.push(ConfigError::new(path, why).help(format!("allowed: {allowed}")));
            }
        };
        let window = self.window <= MOST;
        let allowed = format!("a whole number from 0 to {MOST}");
        check(window, "window", self.window as f64, &allowed);
        let interval = self.save_interval >= 1;
        let allowed = "a whole number of 1 or more";
        check(interval, "save_interval", self.save_interval as f64, allowed);
        let share = self.share > 0.0 && self.share <= 1.0;
        check(share, "share", self.share, "a number above 0, at most 1");
        errors
    }
}
