//! Environments, and their mistakes shown where they stand in the configuration.

pub(crate) mod kernel;
pub(crate) mod mujoco;

pub(crate) use kernel::{foresee, generic, one_env, settle, settle_here};
pub(crate) use mujoco::judged_env;

use crate::config::{Config, Loaded};
use crate::run::error::RunError;
use ostler_sim::config::{ConfigError, EnvConfig};
use ostler_sim::device::{CompileError, DeviceError};
use ostler_sim::env::EnvError;
use ostler_sim::physics::PhysicsError;
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
    match e {
        EnvError::Config(e) => loaded.places.explain(&e).into(),
        EnvError::Physics(e) => unsuitable(loaded, e),
        EnvError::Device(DeviceError::Compile(e)) => uncompilable(loaded, e),
        e => RunError::Env(e),
    }
}

/// A program for a device that does not compile, shown at the expression that it is in.
fn uncompilable(loaded: &Loaded, e: CompileError) -> RunError {
    match &e.place {
        Some((name, _)) => {
            let message = format!("does not compile for {}: {}", e.target, e.message);
            loaded
                .places
                .explain(&ConfigError::new(name, message))
                .into()
        }
        None => RunError::Env(EnvError::Device(DeviceError::Compile(e))),
    }
}

/// An engine or a kernel that cannot be used, shown where it was chosen.
fn unsuitable(loaded: &Loaded, e: PhysicsError) -> RunError {
    let error = match &e {
        PhysicsError::Unsupported { engine, .. } => {
            let other = match *engine {
                "native" => "rapier",
                _ => "native",
            };
            let help = format!("sim.backend = \"{other}\" is the other engine");
            ConfigError::new("sim.backend", e.to_string()).help(help)
        }
        PhysicsError::Kernel { name, why } => {
            let message = format!("\"{name}\" cannot be used: {why}");
            ConfigError::new("sim.kernel", message)
                .help("sim.kernel = \"auto\" takes the best there is, with other bits")
        }
        PhysicsError::Limit(error) => error.clone(),
        _ => return RunError::Env(e.into()),
    };
    loaded.places.explain(&error).into()
}
