//! `[symmetry]` beside the other tables.

use super::Config;
use crate::learner::SymmetryConfig;
use ostler_sim::config::ConfigError;

impl SymmetryConfig {
    /// Values that cannot be used, alone or beside the other tables.
    pub(super) fn validate(&self, config: &Config) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut refuse = |key: &str, why: &str, help: &str| {
            errors.push(ConfigError::new(key, why).help(help));
        };
        let algorithm = config.runner.algorithm;
        let mirror = self.mirror_loss;
        if !(mirror.is_finite() && mirror >= 0.0) {
            refuse(
                "symmetry.mirror_loss",
                &format!("{mirror} is no weight"),
                "a number, 0 or more",
            );
        }
        if !config.has_robot() {
            refuse("symmetry", "only a robot has sides", "a table [task], or leave it out");
        }
        if config.agents.is_some() || config.self_play.is_on() {
            let why = "reflections of several agents, or of opponents, are not learnt from";
            refuse("symmetry", why, "leave it out");
        }
        if algorithm.name() == "ars" {
            refuse("symmetry", "\"ars\" learns from no samples", "runner.algorithm = \"ppo\"");
        }
        if algorithm.off_policy() && !config.replay.transform.is_empty() {
            let why = "reflections are of transitions as they were stored, not as they are changed";
            refuse("replay.transform", why, "leave it or [symmetry] out");
        }
        if mirror > 0.0 && config.ppo.imitation.is_on() {
            let why = "a policy that imitates a teacher has that one's actions as its target";
            refuse("symmetry.mirror_loss", why, "0, with symmetry.augmentation = true");
        }
        if !self.augmentation && mirror == 0.0 {
            let why = "without augmentation and mirror loss it does nothing";
            refuse("symmetry.augmentation", why, "true, or symmetry.mirror_loss above 0");
        }
        errors
    }
}
