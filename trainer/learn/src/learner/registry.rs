//! The learners that there are. One more is a folder beside this file, a line in
//! `METHODS`, and its table in [`Config`].

use super::{ActorConfig, CriticConfig, Learner, TrainedPolicy, error::LearnError};
use super::{ars, off_policy, ppo};
use crate::config::Config;
use ostler_collector::peers::{Group, Place};
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use tch::Device;

/// Every learner; the first is the default of `runner.algorithm`.
static METHODS: [&dyn Method; 4] =
    [&ppo::PpoMethod, &off_policy::SacMethod, &off_policy::Td3Method, &ars::ArsMethod];

/// A learner as the rest of the program sees it.
pub trait Method: Sync {
    /// Its name for `runner.algorithm`, and that of its table.
    fn name(&self) -> &'static str;

    /// Whether it learns from a replay buffer.
    fn off_policy(&self) -> bool {
        false
    }

    /// Keys of its table that cannot be used. All tables are checked, whichever learns.
    fn validate(&self, config: &Config) -> Vec<ConfigError>;

    /// Errors in the other tables for this learner.
    fn check(&self, _config: &Config) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Errors of learning from rollouts of `samples` transitions.
    fn fits(&self, _config: &Config, _samples: usize) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Widths of the hidden layers of actor and critic.
    fn hidden<'a>(&self, config: &'a Config) -> [&'a [i64]; 2] {
        [&config.actor.hidden_dims, &config.critic.hidden_dims]
    }

    /// Memory for each row of a rollout beyond networks and samples (bytes).
    fn bytes_per_row(&self, _spec: &EnvSpec) -> u64 {
        0
    }

    /// Samples that a gradient step looks at.
    fn batch_rows(&self, config: &Config) -> usize;

    /// Of a gradient step on a host: samples whose activations are in memory at a time, and
    /// gradients beside the one that the step is along.
    fn working_set(&self, config: &Config) -> (usize, usize) {
        (self.batch_rows(config), 0)
    }

    /// Whether it learns with products in bfloat16 on a processor: `learner.precision`.
    fn half(&self) -> bool {
        false
    }

    /// Whether its policy can be recurrent: `actor.rnn_type`.
    fn recurrent(&self) -> bool {
        false
    }

    /// Whether it can leave out the agents that earlier versions of its policy move:
    /// `self_play.window`.
    fn self_play(&self) -> bool {
        false
    }

    /// How many threads are of use on a host, where this is not a matter of libtorch's.
    fn useful_threads(&self, _config: &Config) -> Option<usize> {
        None
    }

    /// Keys that make its steps shorter, for advice.
    fn slower(&self) -> &'static str;

    /// What keeps its values from running away, beside smaller rewards.
    fn calmer(&self) -> &'static str {
        self.slower()
    }

    /// What keeps its return from falling again.
    fn steadier(&self) -> &'static str {
        self.slower()
    }

    /// Keys, with their values, that say what the numbers mean which its networks give.
    fn meaning(&self, _config: &Config) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The key of which a larger value has it explore more.
    fn exploring(&self) -> &'static str {
        "ppo.entropy_coef"
    }

    /// A setting of its own that has no effect in a run, in a sentence.
    fn in_vain(&self, _config: &Config) -> Option<String> {
        None
    }

    /// An iteration's learning in a few words, for `ostler check`.
    fn describe(&self, config: &Config) -> String;

    /// The learner.
    ///
    /// # Errors
    /// A key that cannot be used with this task, or memory does not suffice.
    fn build(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError>;

    /// Its policy alone, freshly initialised, to act with.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    fn policy(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn TrainedPolicy>, LearnError>;
}

/// Arguments for a learner.
#[derive(Debug, Clone, Copy)]
pub struct LearnerArgs<'a> {
    /// The run's configuration.
    pub config: &'a Config,
    /// The environments that it will learn from: of one policy's agents.
    pub spec: &'a EnvSpec,
    /// Keys every draw.
    pub seed: u64,
    /// Where it learns.
    pub device: Device,
    /// The processes that it learns with.
    pub group: &'a Group,
    /// Which rows of all processes' are this one's, where that does not follow from their
    /// environments.
    pub place: Option<Place>,
}

impl LearnerArgs<'_> {
    /// `[actor]`.
    pub fn actor(&self) -> &ActorConfig {
        &self.config.actor
    }

    /// `[critic]`.
    pub fn critic(&self) -> &CriticConfig {
        &self.config.critic
    }

    /// Which rows of all processes' are this one's.
    pub fn place(&self) -> Place {
        let of_envs = || self.group.place(self.config.env.num_envs, self.spec.rows());
        self.place.unwrap_or_else(of_envs)
    }

    /// Control steps of a rollout.
    pub fn steps(&self) -> usize {
        self.config.runner.num_steps_per_env
    }
}

/// All learners, the default first.
pub fn methods() -> impl Iterator<Item = Algorithm> {
    METHODS.into_iter().map(Algorithm)
}

/// `runner.algorithm`: one of the learners, by its name.
#[derive(Clone, Copy)]
pub struct Algorithm(&'static dyn Method);

impl std::ops::Deref for Algorithm {
    type Target = dyn Method;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self(METHODS[0])
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Algorithm {}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for Algorithm {
    fn schema_name() -> Cow<'static, str> {
        "Algorithm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = methods().map(|m| m.name()).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        methods().find(|m| m.name() == name).ok_or_else(|| {
            let names: Vec<String> = methods().map(|m| format!("`{}`", m.name())).collect();
            serde::de::Error::custom(format!(
                "unknown variant `{name}`, expected one of {}",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_each_has_a_table_of_defaults_that_can_be_used() {
        let config = Config::default();
        let all = toml::Value::try_from(&config).unwrap();
        let mut names: Vec<&str> = methods().map(|m| m.name()).collect();
        for method in methods() {
            assert!(all.get(method.name()).is_some(), "[{}]", method.name());
            assert!(method.validate(&config).is_empty(), "{}", method.name());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METHODS.len());
    }
}
