//! `[log.wandb]`.

use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The longest tag that Weights & Biases takes.
const LONGEST_TAG: usize = 64;

/// `[log.wandb]`: every iteration goes to Weights & Biases, too, by its client in a Python that
/// has it (`pip install wandb`). The run does not wait for it, and goes on without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WandbConfig {
    /// `"offline"`: into `wandb/` of the run's folder, which `wandb sync` uploads later.
    /// `"online"`: sent as the run goes on, with the configuration, to the account of
    /// `wandb login`. `"disabled"`: neither.
    pub mode: WandbMode,
    /// Project; empty: the configuration's `name`.
    pub project: String,
    /// The run's name there; empty: that of its folder.
    pub name: String,
    /// User or team; empty: as the account has it.
    pub entity: String,
    /// Runs of one group stand together; empty: none.
    pub group: String,
    /// Words that runs are found by, of 1 to 64 characters.
    pub tags: Vec<String>,
    /// The Python that has the client, by name or path; a path is relative to the
    /// configuration's folder. One that is named here is started with `--allow-native` alone.
    pub python: String,
    /// How long the client may take to begin, for an iteration, and to finish behind the end of
    /// the run (s), above 0.
    pub timeout_s: f64,
}

/// `log.wandb.mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WandbMode {
    /// Files.
    #[default]
    Offline,
    /// To the account at once.
    Online,
    /// Nothing.
    Disabled,
}

impl Default for WandbConfig {
    fn default() -> Self {
        Self {
            mode: WandbMode::Offline,
            project: "".into(),
            name: "".into(),
            entity: "".into(),
            group: "".into(),
            tags: Vec::new(),
            python: "python3".into(),
            timeout_s: 60.0,
        }
    }
}

impl WandbConfig {
    /// Whether anything is logged there.
    pub fn is_on(&self) -> bool {
        self.mode != WandbMode::Disabled
    }

    /// Whether it is on and names a program of its own.
    pub fn names_python(&self) -> bool {
        self.is_on() && self.python != Self::default().python
    }

    /// Everything that cannot be used.
    pub(crate) fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut wrong = |key: &str, why: String, help: &str| {
            errors.push(ConfigError::new(format!("log.wandb.{key}"), why).help(help));
        };
        if self.python.is_empty() {
            wrong("python", "is empty".into(), "\"python3\" is the default");
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= 86_400.0) {
            let why = format!("{} cannot be used", self.timeout_s);
            wrong("timeout_s", why, "a number above 0, at most 86400");
        }
        let fits = |tag: &String| (1..=LONGEST_TAG).contains(&tag.chars().count());
        if let Some(tag) = self.tags.iter().find(|tag| !fits(tag)) {
            let why = format!("\"{tag}\" cannot be used");
            wrong("tags", why, "words of 1 to 64 characters");
        }
        errors
    }

    /// The path of its Python counts from anywhere, for a configuration that is in `folder`.
    pub fn locate(&mut self, folder: &Path) {
        // A virtual environment's is a link that must not be followed.
        if self.python.contains('/') {
            let python = folder.join(&self.python);
            let python = std::path::absolute(&python).unwrap_or(python);
            self.python = python.display().to_string();
        }
    }
}
