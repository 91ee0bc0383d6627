//! Environments in the place of a robot and a task: Gymnasium's (`[gymnasium]`), and those of a
//! program that uses Ostler as a library (`[custom]`, [`register`]).
//!
//! `ostler_trainer::environments` has an example.

use crate::config::leave::{FLAG, may_run_code};
use ostler_collector::CollectError;
use ostler_collector::env::Environments;
use ostler_collector::gymnasium::{GymEnvs, GymnasiumConfig};
use ostler_collector::registry::Registry;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use toml::Table;

/// N environments of a seed; the table is `custom.args`.
pub type Make =
    dyn Fn(&Table, usize, u64) -> Result<Box<dyn Environments>, MakeError> + Send + Sync;

pub use ostler_collector::registry::MakeError;

static REGISTERED: Registry<Make> = Registry::new("environments", "docs/your-environment.md");

/// Gives a name to environments of this program, for `custom.env`. The function makes `n` of
/// them, whose random numbers `seed` keys: for the training, for evaluations, and one of its
/// own to know their sizes. It is called in every process that a run starts: in the one that
/// learns and in its supervisor.
pub fn register<F>(name: impl Into<String>, make: F)
where
    F: Fn(&Table, usize, u64) -> Result<Box<dyn Environments>, MakeError> + Send + Sync + 'static,
{
    REGISTERED.add(name, Arc::new(make));
}

/// `[custom]`: environments of a program that uses Ostler as a library, in the place of
/// `[task]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CustomConfig {
    /// The name under which the program has registered them.
    pub env: String,
    /// What its function gets: anything.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub args: Table,
}

/// Where environments come from.
enum Source {
    Gymnasium(GymnasiumConfig),
    Custom { config: CustomConfig, make: Arc<Make> },
}

/// Why there are no environments.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentsError {
    /// They may not be started, or are not what was asked for.
    #[error("{0}")]
    Refused(String),
    /// They failed.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

/// Environments in the place of a robot's.
pub struct Foreign {
    source: Source,
    facts: OnceLock<Facts>,
}

/// One environment's.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Sizes and names.
    pub spec: EnvSpec,
    /// Its state in a checkpoint (bytes).
    pub state: u64,
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Foreign").field(&self.name()).finish()
    }
}

impl Foreign {
    /// Those of a configuration that lies in `folder`, whose paths count from anywhere
    /// afterwards; none where there is a robot.
    ///
    /// # Errors
    /// A file that is not there; a name that this program has not registered.
    pub(crate) fn of(
        gymnasium: Option<&mut GymnasiumConfig>,
        custom: Option<&CustomConfig>,
        folder: &Path,
    ) -> Result<Option<Arc<Self>>, ConfigError> {
        let source = if let Some(gymnasium) = gymnasium {
            *gymnasium = gymnasium.located(folder)?;
            Source::Gymnasium(gymnasium.clone())
        } else if let Some(custom) = custom {
            Source::Custom {
                make: REGISTERED.find("custom.env", &custom.env)?,
                config: custom.clone(),
            }
        } else {
            return Ok(None);
        };
        Ok(Some(Arc::new(Self { source, facts: OnceLock::new() })))
    }

    /// Name for logs and checkpoints.
    pub fn name(&self) -> &str {
        match &self.source {
            Source::Gymnasium(config) => &config.env,
            Source::Custom { config, .. } => &config.env,
        }
    }

    /// Environments.
    ///
    /// # Errors
    /// Python may not be started, or refuses; the program's own error.
    pub fn make(&self, n: usize, seed: u64) -> Result<Box<dyn Environments>, EnvironmentsError> {
        match &self.source {
            Source::Gymnasium(config) if !may_run_code() => {
                Err(EnvironmentsError::Refused(format!(
                    "gymnasium.env: {} is code of Python, which may do whatever you may: look at it, then add {FLAG}",
                    config.env
                )))
            }
            Source::Gymnasium(config) => Ok(Box::new(GymEnvs::new(config, n, seed)?)),
            Source::Custom { config, make } => {
                let made = make(&config.args, n, seed);
                let envs = made.map_err(|e| match e.downcast::<CollectError>() {
                    Ok(e) => EnvironmentsError::from(*e),
                    Err(e) => match e.downcast::<ostler_sim::memory::MemoryError>() {
                        Ok(e) => CollectError::from(*e).into(),
                        Err(e) => EnvironmentsError::Refused(format!(
                            "custom.env \"{}\": {e}",
                            config.env
                        )),
                    },
                })?;
                let spec = envs.spec();
                match spec.num_envs == n && spec.obs.policy > 0 && spec.action.width() > 0 {
                    true => Ok(envs),
                    false => Err(EnvironmentsError::Refused(format!(
                        "custom.env \"{}\": {n} environments were asked for; there are {} of {} observations and {} actions",
                        config.env,
                        spec.num_envs,
                        spec.obs.policy,
                        spec.action.width()
                    ))),
                }
            }
        }
    }

    /// What is known of one environment; it is made once, to be asked.
    ///
    /// # Errors
    /// As for [`make`](Self::make).
    pub fn facts(&self) -> Result<&Facts, EnvironmentsError> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts);
        }
        let env = self.make(1, 0)?;
        let mut state = Vec::new();
        env.capture(&mut state).map_err(CollectError::Snapshot)?;
        let facts = Facts { spec: env.spec().clone(), state: state.len() as u64 };
        Ok(self.facts.get_or_init(|| facts))
    }

    /// What a resumed run, or one that rolls back, does otherwise than a robot's.
    pub fn forgets(&self) -> bool {
        matches!(self.source, Source::Gymnasium(_))
    }
}
