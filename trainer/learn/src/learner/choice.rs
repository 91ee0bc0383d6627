//! The learner that a configuration asks for.

use super::error::LearnError;
use super::registry::LearnerArgs;
use super::self_play::SelfPlay;
use super::{Learner, TrainedPolicy, team};
use crate::config::Config;
use ostler_collector::peers::Group;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use tch::Device;

/// The learner that a configuration asks for; `spec`: of the environments that it will
/// learn from.
///
/// # Errors
/// A key that cannot be used with this task, or memory does not suffice.
pub fn build(
    config: &Config,
    spec: &EnvSpec,
    device: Device,
) -> Result<Box<dyn Learner>, LearnError> {
    let method = config.runner.algorithm;
    let group = &Group::current();
    if !group.is_alone() {
        in_one_process(config)?;
    }
    let plan = LearnerArgs { config, spec, seed: config.seed, device, group };
    let learner = |plan: &LearnerArgs<'_>| -> Result<Box<dyn Learner>, LearnError> {
        match config.self_play.is_on() {
            true => Ok(Box::new(SelfPlay::new(&*method, plan)?)),
            false => method.build(plan),
        }
    };
    if !is_team(config, spec)? {
        return learner(&plan);
    }
    let team = team::TeamLearner::new(spec, plan.steps(), device, |i, spec| {
        let seed = team::seed(config.seed, i);
        learner(&LearnerArgs { spec, seed, ..plan })
    })?;
    Ok(Box::new(team))
}

/// The policy of that learner alone, to act with: freshly initialised.
///
/// # Errors
/// As [`build`].
pub fn build_policy(
    config: &Config,
    spec: &EnvSpec,
    device: Device,
) -> Result<Box<dyn TrainedPolicy>, LearnError> {
    let method = config.runner.algorithm;
    let group = &Group::default();
    let plan = LearnerArgs { config, spec, seed: config.seed, device, group };
    if !is_team(config, spec)? {
        return method.policy(&plan);
    }
    let team: team::Team<Vec<Box<dyn TrainedPolicy>>> = team::Team::new(spec, |i, spec| {
        let seed = team::seed(config.seed, i);
        method.policy(&LearnerArgs { spec, seed, ..plan })
    })?;
    Ok(Box::new(team))
}

/// Refuses what several processes cannot learn together.
fn in_one_process(config: &Config) -> Result<(), ConfigError> {
    let refuse = |key: &str, why: &str, help: &str| {
        Err(ConfigError::new(key, why).help(format!("{help}, or one process: --nproc 1")))
    };
    if !config.runner.algorithm.shares() {
        let name = config.runner.algorithm.name();
        let why = format!("several processes cannot learn with \"{name}\" together");
        return refuse("runner.algorithm", &why, "\"ppo\"");
    }
    match config.self_play.is_on() {
        true => {
            refuse("self_play.window", "several processes cannot keep one past", "leave it out")
        }
        false => Ok(()),
    }
}

/// Whether several policies learn, which not every learner can.
fn is_team(config: &Config, spec: &EnvSpec) -> Result<bool, ConfigError> {
    match team::wanted(spec) {
        true if config.runner.algorithm.off_policy() => Err(off_policy_team()),
        wanted => Ok(wanted),
    }
}

/// Why these learners cannot have several policies.
pub fn off_policy_team() -> ConfigError {
    ConfigError::new("agents.policies", "SAC and TD3 learn one policy for all agents")
        .help("policies = \"shared\", or runner.algorithm = \"ppo\"")
}
