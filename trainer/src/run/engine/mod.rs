//! Environments, and their mistakes shown where they stand in the configuration.

pub(crate) mod kernel;
pub(crate) mod mujoco;

pub(crate) use kernel::{foresee, generic, one_env, settle, settle_here};
pub(crate) use mujoco::judged_env;

use crate::config::{Config, Loaded};
use crate::run::error::RunError;
use ostler_sim::config::EnvConfig;
use ostler_sim::env::EnvError;
use ostler_sim::{BatchEnv, Model};
use std::sync::Arc;

/// Builds environments; an error in the task is shown in its file.
pub(crate) fn build_env(
    loaded: &Loaded,
    config: &Config,
    model: &Arc<Model>,
    num_envs: usize,
    seed: u64,
) -> Result<BatchEnv, RunError> {
    let env = EnvConfig {
        num_envs,
        ..config.env.clone()
    };
    BatchEnv::new(model.clone(), &config.sim, &env, &config.task, seed)
        .map_err(|e| explained(loaded, e))
}

/// Why there are no environments, shown in the configuration where that has a place.
pub(crate) fn explained(loaded: &Loaded, e: EnvError) -> RunError {
    let shown = loaded.places.explain_env(e);
    shown.map_or_else(RunError::Env, RunError::from)
}
