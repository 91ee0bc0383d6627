//! ARS as one of the [learners](crate::learner::registry).

use super::{Ars, LinearPolicy};
use crate::config::Config;
use crate::learner::registry::{LearnerArgs, Method};
use crate::learner::{Learner, TrainedPolicy, error::LearnError};
use ostler_sim::config::ConfigError;
use ostler_sim::env::{ActionSpace, EnvSpec};

/// `runner.algorithm = "ars"`.
pub struct ArsMethod;

impl Method for ArsMethod {
    fn name(&self) -> &'static str {
        "ars"
    }

    fn validate(&self, config: &Config) -> Vec<ConfigError> {
        config.ars.validate()
    }

    fn check(&self, config: &Config) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        if !config.collector.reset_at_each_iter {
            let why = "\"ars\" compares whole episodes, each of a policy of its own";
            errors.push(ConfigError::new("collector.reset_at_each_iter", why).help(
                "reset_at_each_iter = true, and runner.num_steps_per_env as long as an episode",
            ));
        }
        if config.max_staleness() > 0 {
            let why = "\"ars\" compares policies of one iteration";
            errors.push(ConfigError::new("collector.max_staleness", why).help("0"));
        }
        if config.collector.init_random_steps > 0 {
            let why = "\"ars\" learns from what its own policies do, not from random actions";
            errors.push(ConfigError::new("collector.init_random_steps", why).help("0"));
        }
        errors
    }

    fn fits(&self, config: &Config, samples: usize) -> Vec<ConfigError> {
        let rows = samples / config.runner.num_steps_per_env.max(1);
        let worlds = rows / config.rows_of_a_policy(1).0.max(1);
        if worlds >= 2 {
            return Vec::new();
        }
        let why = format!("{worlds} environment tries no direction: it takes two for each");
        vec![ConfigError::new("env.num_envs", why).help("2 or more")]
    }

    fn hidden<'a>(&self, _: &'a Config) -> [&'a [i64]; 2] {
        [&[], &[]]
    }

    /// Its matrix, half a direction, and what both are made from.
    fn bytes_per_row(&self, spec: &EnvSpec) -> u64 {
        let (ActionSpace::Continuous(n) | ActionSpace::Discrete(n)) = spec.action;
        4 * 4 * (spec.obs.policy * n) as u64
    }

    fn batch_rows(&self, config: &Config) -> usize {
        config.env.num_envs
    }

    fn slower(&self) -> &'static str {
        "a lower ars.step_size"
    }

    fn describe(&self, config: &Config) -> String {
        let tried = config.env.num_envs / 2;
        match config.ars.top_directions {
            0 => format!("{tried} directions tried, {tried} of them counted"),
            top if top > tried => format!(
                "{tried} directions tried, all of them counted: ars.top_directions = {top} are \
                 more than two environments each give"
            ),
            top => format!("{tried} directions tried, {top} of them counted"),
        }
    }

    fn build(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerArgs { config, spec, seed, device, group, .. } = *plan;
        let of = (group, config.env.num_envs);
        Ok(Box::new(Ars::among(&config.ars, plan.actor(), spec, (seed, device), of)?))
    }

    fn policy(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn TrainedPolicy>, LearnError> {
        let ars = &plan.config.ars;
        let policy = LinearPolicy::new(ars, plan.actor(), plan.spec, plan.seed, plan.device)?;
        Ok(Box::new(policy))
    }
}
