//! MuJoCo as the judge of a policy: the same task, with MuJoCo's own stepping.

use super::explained;
use crate::run::error::RunError;
use ostler_learn::config::{Config, Loaded};
use ostler_sim::config::EnvConfig;
use ostler_sim::physics::pool::Pool;
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::worlds::{Failure, MuJoCoWorlds};
use ostler_sim::task::limits;
use ostler_sim::{BatchEnv, Model};
use std::path::Path;
use std::sync::Arc;

/// `num_envs` environments that MuJoCo steps in `python` (or the one that is found),
/// and what tells why they stand still, once they do.
///
/// # Errors
/// There is no MuJoCo, it reads another robot, or the task has a mistake.
pub fn judged_env(
    loaded: &Loaded,
    config: &Config,
    model: &Arc<Model>,
    num_envs: usize,
    seed: u64,
    python: Option<&Path>,
) -> Result<(BatchEnv, Failure), RunError> {
    let env = EnvConfig { num_envs, ..config.env.clone() };
    let named = limits(model, &config.sim, &config.task);
    let sim = &named.map_err(|e| explained(loaded, e.into()))?;
    let pool = Arc::new(Pool::new(sim.thread_count())?);
    let mujoco = MuJoCo::start(python)?;
    let worlds = MuJoCoWorlds::new(mujoco, model, num_envs, sim)?;
    let failure = worlds.failure();
    let built =
        BatchEnv::with_physics(model.clone(), Box::new(worlds), pool, &env, &config.task, seed, 0);
    Ok((built.map_err(|e| explained(loaded, e))?, failure))
}
