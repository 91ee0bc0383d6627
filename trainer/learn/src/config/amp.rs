//! `[amp]` beside the other tables.

use super::Config;
use crate::learner::AmpConfig;
use ostler_sim::config::ConfigError;

impl AmpConfig {
    /// Values that cannot be used, alone or beside the other tables.
    pub(super) fn validate(&self, config: &Config) -> Vec<ConfigError> {
        let mut errors = self.errors();
        if !self.is_on() {
            return errors;
        }
        let mut refuse = |why: String, help: &str| {
            errors.push(ConfigError::new("amp.observations", why).help(help));
        };
        let method = config.runner.algorithm.name();
        if method != "ppo" {
            let why = format!("\"{method}\" learns from the task's own rewards alone");
            refuse(why, "[], or runner.algorithm = \"ppo\"");
        }
        if !config.has_robot() {
            let why = "only a robot has reference motions";
            refuse(why.into(), "a table [task], or leave [amp] out");
        }
        if config.agents.is_some() || config.self_play.is_on() {
            let why = "motions of several agents, or of opponents, are not compared";
            refuse(why.into(), "leave [amp] out");
        }
        errors
    }
}
