//! `[ars]`.

use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ars]`: augmented random search (Mania, Guy and Recht 2018). The policy is a matrix;
/// `actor.hidden_dims` and `[critic]` are not used. Half as many directions are tried in an
/// iteration as there are environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArsConfig {
    /// How far an update moves the matrix, above 0 (the paper's alpha).
    pub step_size: f64,
    /// Standard deviation of the directions' entries, above 0 (the paper's nu).
    pub noise: f64,
    /// Directions that count in an update, the best ones first; 0: all.
    pub top_directions: usize,
    /// Taken off every reward while learning: the reward for not falling, where there is
    /// one. With it, standing still is worth as much as walking.
    pub alive_bonus: f64,
}

impl Default for ArsConfig {
    fn default() -> Self {
        Self { step_size: 0.02, noise: 0.03, top_directions: 0, alive_bonus: 0.0 }
    }
}

impl ArsConfig {
    /// Errors of its keys, with paths such as `ars.noise`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (key, value) in [("step_size", self.step_size), ("noise", self.noise)] {
            if !(value.is_finite() && value > 0.0) {
                let why = format!("{value} cannot be used");
                errors.push(ConfigError::new(format!("ars.{key}"), why).help("a number above 0"));
            }
        }
        if !self.alive_bonus.is_finite() {
            let why = format!("{} cannot be used", self.alive_bonus);
            errors.push(ConfigError::new("ars.alive_bonus", why).help("a number"));
        }
        errors
    }
}
