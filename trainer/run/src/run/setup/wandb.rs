//! The run's twin at Weights & Biases, where `[log.wandb]` asks for one.

use crate::log::wandb::Wandb;
use crate::run::error::RunError;
use crate::run::store::dir::RunDir;
use ostler_learn::config::{ALLOW_NATIVE, Config, may_run_code};
use std::path::Path;

/// Settles the Python that is started, for a configuration that lies in `folder`.
///
/// # Errors
/// The configuration names one, which is a program, and none may be started.
pub(in crate::run) fn check(config: &mut Config, folder: &Path) -> Result<(), RunError> {
    let Some(wandb) = config.log.wandb.as_mut().filter(|w| w.is_on()) else {
        return Ok(());
    };
    wandb.locate(folder);
    match wandb.names_python() && !may_run_code() {
        true => Err(RunError::Usage(format!(
            "log.wandb.python: {} is a program that the configuration names: look at it, then \
             add {ALLOW_NATIVE}; without the key it is python3",
            wandb.python
        ))),
        false => Ok(()),
    }
}

/// Begins it, or goes on with it. Without one the training is as good.
pub(in crate::run) fn begin(config: &Config, dir: &RunDir) -> Option<Wandb> {
    let wandb = config.log.wandb.as_ref().filter(|w| w.is_on())?;
    let all = serde_json::to_value(config).unwrap_or_default();
    match Wandb::start(wandb, dir.path(), &config.name, all) {
        Ok(wandb) => Some(wandb),
        Err(e) => {
            tracing::warn!("log.wandb: {e}; the training goes on without it");
            None
        }
    }
}
