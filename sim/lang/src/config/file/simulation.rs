//! What a simulation takes from a run's file, which says how to learn, too.

use super::{ConfigErrors, Diagnostic, Document, Override, Places, Rules, foreign, source};
use crate::config::{AgentsConfig, ConfigError, EnvConfig, Leave, SimConfig, TaskConfig, check};
use ostler_model::Model;
use ostler_model::mjcf::MjcfError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Tables and keys of a run's file that are not the simulation's.
pub const ELSEWHERE: &[&str] = &[
    "name",
    "description",
    "device",
    "gymnasium",
    "custom",
    "self_play",
    "symmetry",
    "amp",
    "actor",
    "critic",
    "ppo",
    "sac",
    "td3",
    "ars",
    "replay",
    "runner",
    "collector",
    "learner",
    "memory",
    "curriculum",
    "guard",
    "back_off",
    "fault",
    "log",
];

/// The tables of a run's file that say what is simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Simulation {
    /// Keys every random draw.
    pub seed: u64,
    /// `[sim]`: the physics.
    pub sim: SimConfig,
    /// `[env]`: the batch.
    pub env: EnvConfig,
    /// `[agents]`: who acts in every environment, where that are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentsConfig>,
    /// `[task]`: the robot's task.
    pub task: TaskConfig,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            seed: 1,
            sim: SimConfig::default(),
            env: EnvConfig::default(),
            agents: None,
            task: TaskConfig::default(),
        }
    }
}

/// A simulation as read and checked, with overrides applied.
#[derive(Debug, Clone)]
pub struct LoadedSimulation {
    /// The values.
    pub config: Simulation,
    /// The file.
    pub path: PathBuf,
    /// Files that it includes, in the order in which they count.
    pub files: Vec<PathBuf>,
    /// Where the values were written.
    pub places: Places,
    /// `env.num_envs` is "auto": the number in `config` is only there to be replaced.
    pub auto_envs: bool,
}

impl LoadedSimulation {
    /// Reads the robot.
    ///
    /// # Errors
    /// Its file, or one that it names, is missing, out of reach or wrong.
    pub fn model(&self) -> Result<Model, MjcfError> {
        self.config.task.model(&self.path)
    }
}

/// Reads what the run's file `path` says of its simulation; its other tables may hold anything.
/// `leave`: what may be done with native functions.
///
/// # Errors
/// Every mistake that one pass can find, each with its place; an override of what is not the
/// simulation's.
pub fn load_simulation(
    path: &Path,
    overrides: &[Override],
    leave: Leave,
) -> Result<LoadedSimulation, ConfigErrors> {
    let text = source::read(path)?;
    static RULES: LazyLock<Rules> = LazyLock::new(|| {
        Rules::of::<Simulation>().recognise(foreign::recognise_own).elsewhere(ELSEWHERE)
    });
    refuse_others(overrides)?;
    let document = Document::read(&text, path, overrides, &RULES)?;
    let mut config: Simulation = document.value()?;
    config.task.agents = config.agents.clone();
    let files_read = document.read_files(&mut config.task, leave);
    let (files, auto_envs) = (document.files.clone(), document.auto_envs);
    let places = document.into_places();
    let errors = config.check();
    if !errors.is_empty() {
        return Err(places.explain_all(&errors));
    }
    files_read.map_err(|e| places.explain(&e))?;
    Ok(LoadedSimulation { config, path: path.to_path_buf(), files, places, auto_envs })
}

/// An override that would have no effect is a mistake.
fn refuse_others(overrides: &[Override]) -> Result<(), ConfigErrors> {
    let wrong = overrides.iter().filter_map(|o| {
        let key = o.text.split(['.', '=', '[']).next().unwrap_or("").trim();
        let other = ELSEWHERE.iter().find(|other| **other == key)?;
        let message = format!("{}: {}: \"{other}\" is not the simulation's", o.flag, o.text);
        let help = "only seed, sim, env, agents, task and profile say what is simulated";
        Some(Diagnostic::plain(message).help(help))
    });
    let wrong: Vec<Diagnostic> = wrong.collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(ConfigErrors(wrong)),
    }
}

impl Simulation {
    /// Everything that cannot be used, without looking at the robot.
    pub fn check(&self) -> Vec<ConfigError> {
        let mut errors = check(&self.sim, &self.env, &self.task);
        if self.seed > i64::MAX as u64 {
            errors.push(ConfigError::new("seed", "larger than TOML can hold"));
        }
        errors.extend(self.task.edits().err());
        errors.extend(self.agents.as_ref().and_then(|a| a.validate().err()));
        errors
    }
}
