//! `[gymnasium]`: environments of Python in the place of a robot and a task.

use ostler_sim::config::{Auto, AutoWord, ConfigError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::Table;

/// `[gymnasium]`: environments of Python's Gymnasium, in the place of `[task]`. Running Python is
/// allowed by `--allow-native` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GymnasiumConfig {
    /// A name that `gymnasium.make` knows (`"Pendulum-v1"`, `"package:Name-v0"`), or
    /// `"file.py:function"`: a function that returns an environment, in a file relative to the
    /// configuration's folder.
    pub env: String,
    /// Arguments of `gymnasium.make` or of the function, by name.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub kwargs: Table,
    /// Control steps until an episode is cut short; needed where the environment has no
    /// time limit of its own. 0: its own.
    pub max_episode_steps: u32,
    /// The Python that has `gymnasium` and the environments, by name or path.
    pub python: String,
    /// Processes, each with a part of the environments: `"auto"` (the cores at hand), or a
    /// number, at most `env.num_envs`.
    #[schemars(extend("minimum" = 1))]
    pub workers: Auto,
    /// A worker that does not answer for so long is started anew (s), above 0.
    pub timeout_s: f64,
}

impl Default for GymnasiumConfig {
    fn default() -> Self {
        Self {
            env: String::default(),
            kwargs: Table::default(),
            max_episode_steps: 0,
            python: "python3".into(),
            workers: Auto::Auto(AutoWord::Auto),
            timeout_s: 60.0,
        }
    }
}

/// Whether a value has a number that JSON cannot say.
fn infinite(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(x) => !x.is_finite(),
        toml::Value::Array(all) => all.iter().any(infinite),
        toml::Value::Table(all) => all.values().any(infinite),
        _ => false,
    }
}

impl GymnasiumConfig {
    /// Values that cannot be used.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut wrong = |key: &str, why: String, help: &str| {
            errors.push(ConfigError::new(format!("gymnasium.{key}"), why).help(help));
        };
        if self.env.is_empty() {
            let help = "such as \"Pendulum-v1\", \"package:Name-v0\" or \"file.py:function\"";
            wrong("env", "names no environment".into(), help);
        }
        if self.env.ends_with(".py") {
            let why = format!("{} names no function in the file", self.env);
            wrong("env", why, "\"file.py:function\"");
        }
        if self.python.is_empty() {
            wrong("python", "is empty".into(), "\"python3\" is the default");
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= 86_400.0) {
            let why = format!("{} cannot be used", self.timeout_s);
            wrong("timeout_s", why, "a number above 0, at most 86400");
        }
        if let Some(key) = self.kwargs.iter().find_map(|(key, v)| infinite(v).then_some(key)) {
            let help = "leave it out, or give a text";
            wrong("kwargs", format!("{key} has a number that is not finite"), help);
        }
        if self.workers == Auto::N(0) {
            let help = "\"auto\", or a whole number from 1 on";
            wrong("workers", "0 cannot be used".into(), help);
        }
        errors
    }

    /// The file of `file.py:function`.
    fn file(&self) -> Option<(&str, &str)> {
        let (file, function) = self.env.rsplit_once(':')?;
        file.ends_with(".py").then_some((file, function))
    }

    /// The same with paths that count from anywhere, for a configuration that is in `folder`.
    ///
    /// # Errors
    /// The file is not there.
    pub fn located(&self, folder: &Path) -> Result<Self, ConfigError> {
        let mut located = self.clone();
        let absolute = |path: &str| -> PathBuf {
            let path = folder.join(path);
            path.canonicalize().unwrap_or(path)
        };
        if let Some((file, function)) = self.file() {
            let file = absolute(file);
            if !file.is_file() {
                let why = format!("there is no file {}", file.display());
                let help = "the path is relative to the configuration's folder";
                return Err(ConfigError::new("gymnasium.env", why).help(help));
            }
            located.env = format!("{}:{function}", file.display());
        }
        // A virtual environment's is a link that must not be followed.
        if self.python.contains('/') {
            let python = folder.join(&self.python);
            let python = std::path::absolute(&python).unwrap_or(python);
            located.python = python.display().to_string();
        }
        Ok(located)
    }

    /// Processes for `n` environments.
    pub(super) fn processes(&self, n: usize) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        match self.workers {
            Auto::N(workers) => workers,
            Auto::Auto(_) => cores(),
        }
        .clamp(1, n.max(1))
    }
}
