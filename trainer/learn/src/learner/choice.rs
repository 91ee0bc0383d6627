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
    let plan = LearnerArgs { config, spec, seed: config.seed, device, group, place: None };
    let learner = |plan: &LearnerArgs<'_>| -> Result<Box<dyn Learner>, LearnError> {
        match config.self_play.is_on() {
            true => Ok(Box::new(SelfPlay::new(&*method, plan)?)),
            false => method.build(plan),
        }
    };
    if !team::wanted(spec) {
        return learner(&plan);
    }
    let team = team::TeamLearner::new(spec, plan.steps(), device, |i, spec| {
        let seed = team::seed(config.seed, i);
        let mut own = config.clone();
        own.replay.part(&spec.policy_names[0]);
        learner(&LearnerArgs { config: &own, spec, seed, ..plan })
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
    let plan = LearnerArgs { config, spec, seed: config.seed, device, group, place: None };
    if !team::wanted(spec) {
        return method.policy(&plan);
    }
    let team: team::Team<Vec<Box<dyn TrainedPolicy>>> = team::Team::new(spec, |i, spec| {
        let seed = team::seed(config.seed, i);
        method.policy(&LearnerArgs { spec, seed, ..plan })
    })?;
    Ok(Box::new(team))
}

/// Refuses the first of these that is so: what several processes cannot do together, each with
/// its key and what to write there.
///
/// # Errors
/// One is so.
pub fn alone_only(all: &[(bool, &str, &str)]) -> Result<(), ConfigError> {
    let Some((_, key, help)) = all.iter().find(|refused| refused.0) else {
        return Ok(());
    };
    let why = "several processes cannot train with it together";
    Err(ConfigError::new(*key, why).help(format!("{help}, or one process: --nproc 1")))
}
