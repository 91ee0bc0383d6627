//! Environments, and their mistakes shown where they stand in the configuration.

pub(crate) mod kernel;
pub(crate) mod mujoco;

pub use kernel::{foresee, one_env, settle, settle_here};
pub use mujoco::judged_env;

use crate::run::error::RunError;
use ostler_collector::env::Environments;
use ostler_learn::config::curriculum::raised;
use ostler_learn::config::{Config, Loaded};
use ostler_sim::config::EnvConfig;
use ostler_sim::config::file::Simulation;
use ostler_sim::env::mirror::{Reflection, Sides};
use ostler_sim::env::{Demonstrations, EnvError, EnvSpec};
use ostler_sim::model::mirror::Pairs;
use ostler_sim::{BatchEnv, Model};
use std::sync::Arc;

/// Builds environments of a batch, a robot's or others in their place: the number of the first, and
/// how many. Others than a robot's are no part of a larger batch. An error in the task is shown in
/// its file.
pub fn build_envs(
    loaded: &Loaded,
    config: &Config,
    model: &Arc<Model>,
    (first, num_envs): (usize, usize),
    seed: u64,
) -> Result<Box<dyn Environments>, RunError> {
    match &loaded.foreign {
        Some(foreign) => {
            let mut envs = foreign.make(num_envs, seed)?;
            match envs.set_first(first as u32) {
                true => Ok(envs),
                false => Err(RunError::Usage(
                    "these environments cannot be a part of a batch, as several processes need \
                     them: `Environments::set_first` says that they can (CustomEnvs has it); one \
                     process: --nproc 1"
                        .into(),
                )),
            }
        }
        None => Ok(Box::new(build_part(loaded, config, model, (first, num_envs), seed)?)),
    }
}

/// Builds a robot's environments; an error in the task is shown in its file.
pub fn build_env(
    loaded: &Loaded,
    config: &Config,
    model: &Arc<Model>,
    num_envs: usize,
    seed: u64,
) -> Result<BatchEnv, RunError> {
    build_part(loaded, config, model, (0, num_envs), seed)
}

/// The same for some of a larger batch: the number of the first, and how many.
fn build_part(
    loaded: &Loaded,
    config: &Config,
    model: &Arc<Model>,
    (first, num_envs): (usize, usize),
    seed: u64,
) -> Result<BatchEnv, RunError> {
    if loaded.foreign.is_some() {
        return Err(no_robot("this"));
    }
    let env = EnvConfig { num_envs, ..config.env.clone() };
    BatchEnv::shard(model.clone(), &config.sim, &env, &config.task, seed, first as u32)
        .map_err(|e| explained(loaded, e))
}

/// Why there are no environments, shown in the configuration where that has a place.
pub fn explained(loaded: &Loaded, e: EnvError) -> RunError {
    let shown = e.explained(&loaded.places);
    shown.map_or_else(RunError::Env, RunError::from)
}

/// Why something is refused to environments that are no robot's.
pub fn no_robot(what: &str) -> RunError {
    RunError::Usage(format!(
        "{what} needs a robot; these environments ([gymnasium], [custom]) have none: train, eval and plot take them"
    ))
}

/// The part of a configuration that environments are made of.
fn simulation(config: &Config) -> Simulation {
    Simulation {
        seed: config.seed,
        sim: config.sim.clone(),
        env: config.env.clone(),
        agents: config.agents.clone(),
        task: config.task.clone(),
    }
}

/// What `[amp]` compares a policy with: the task's reference motions as it would see them.
///
/// # Errors
/// The task has none, or a mistake; `[amp]` names a term that it has not.
pub fn demonstrations(
    loaded: &Loaded,
    model: &Arc<Model>,
    spec: &EnvSpec,
) -> Result<Option<Demonstrations>, RunError> {
    let amp = &loaded.config.amp;
    if !amp.is_on() {
        return Ok(None);
    }
    amp.columns(spec).map_err(|e| RunError::from(loaded.places.explain(&e)))?;
    let found = Demonstrations::of(&simulation(&loaded.config), model.clone());
    found.map(Some).map_err(|e| explained(loaded, e))
}

/// The reflection of a task that is to learn from it (`[symmetry]`); none of others.
///
/// # Errors
/// The robot or the task has none, with what is in the way, shown in its file.
pub fn reflection(loaded: &Loaded, model: &Arc<Model>) -> Result<Option<Reflection>, RunError> {
    let config = &loaded.config;
    let Some(symmetry) = &config.symmetry else { return Ok(None) };
    let mut simulation = simulation(config);
    // What is nothing at first has no effect on what is compared.
    simulation.task = raised(&simulation.task, &config.curriculum);
    let sides = Sides {
        axis: symmetry.plane.axis(),
        pairs: Pairs::new(symmetry.pairs.clone()),
        approximate: symmetry.approximate.clone(),
    };
    let found = Reflection::find(&simulation, model.clone(), &sides);
    found.map(Some).map_err(|e| explained(loaded, e))
}
