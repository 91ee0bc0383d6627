//! The run's TOML: read, checked, resolved.
//!
//! Reading order: [`load`] -> `source` (text to a tree with places) -> `include` (other files
//! under it) -> `profile`, `overrides` (`--set`) -> `schema` (unknown keys, wrong kinds: all at once) -> `de` (serde)
//! -> `validate`. An error about a path finds its line through [`Places`].

mod collector;
pub mod curriculum;
mod de;
mod error;
mod evaluation;
mod foreign;
mod include;
mod leave;
mod locate;
mod overrides;
mod profile;
mod resolve;
#[cfg(test)]
mod resolve_tests;
mod robust;
mod schema;
mod sections;
mod source;
#[cfg(test)]
mod tests;
mod typed;
mod validate;

pub use error::{ConfigErrors, Diagnostic};
pub(crate) use leave::pass_on;
pub use leave::{FLAG as ALLOW_NATIVE, set_leave};
pub use overrides::Override;
pub use resolve::{Device, Gpus, Machine, NoGpu, NotHere, Resolution};
pub use robust::{BackOffConfig, FaultConfig, GuardConfig};
pub(crate) use schema::ANY;
pub use sections::{
    Algorithm, CollectorConfig, CollectorKind, CudaSync, LearnerConfig, LearnerPath, LogConfig,
    LogFormat, Precision, RunnerConfig,
};
pub(crate) use typed::parse_as;

use crate::learner::{
    ActorConfig, ArsConfig, CriticConfig, PpoConfig, SacConfig, SelfPlayConfig, Td3Config,
};
use crate::memory::MemoryConfig;
use ostler_collector::replay::ReplayConfig;
use ostler_sim::Model;
use ostler_sim::config::{AgentsConfig, ConfigError, EnvConfig, SimConfig, TaskConfig};
use ostler_sim::model::edit::Edits;
use ostler_sim::model::looks::Looks;
use ostler_sim::model::mjcf::{self, MjcfError};
use ostler_sim::task;
use serde::{Deserialize, Serialize};
use source::{Node, Sources, Value};
use std::path::{Path, PathBuf};

/// Everything that defines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Names the folder of runs; the file's stem if not set.
    pub name: String,
    /// One line for `ostler envs`.
    pub description: String,
    /// Keys every random draw.
    pub seed: u64,
    /// Where policy and learner compute: `"cpu"`, `"cuda:0"` (any number), or `"auto"`:
    /// `"cuda:0"` where that can be used, else `"cpu"`.
    pub device: String,
    /// `[sim]`: the physics.
    pub sim: SimConfig,
    /// `[env]`: the batch.
    pub env: EnvConfig,
    /// `[agents]`: who acts in every environment, where that are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentsConfig>,
    /// `[self_play]`: opponents from the run's own past.
    pub self_play: SelfPlayConfig,
    /// `[task]`: the robot's task.
    pub task: TaskConfig,
    /// `[actor]`: the network that decides.
    pub actor: ActorConfig,
    /// `[critic]`: the network that estimates the value.
    pub critic: CriticConfig,
    /// `[ppo]`: the learner, where `runner.algorithm = "ppo"`.
    pub ppo: PpoConfig,
    /// `[sac]`: the learner, where `runner.algorithm = "sac"`.
    pub sac: SacConfig,
    /// `[td3]`: the learner, where `runner.algorithm = "td3"`.
    pub td3: Td3Config,
    /// `[ars]`: the learner, where `runner.algorithm = "ars"`.
    pub ars: ArsConfig,
    /// `[replay]`: the replay buffer of learners off policy.
    pub replay: ReplayConfig,
    /// `[runner]`: the length of the run, checkpoints, evaluations.
    pub runner: RunnerConfig,
    /// `[collector]`: how rollouts are filled.
    pub collector: CollectorConfig,
    /// `[learner]`: threads.
    pub learner: LearnerConfig,
    /// `[memory]`: the watch over memory and disk.
    pub memory: MemoryConfig,
    /// `[[curriculum]]`: numbers that follow a schedule.
    pub curriculum: Vec<curriculum::Schedule>,
    /// `[guard]`: when an iteration is not believed.
    pub guard: GuardConfig,
    /// `[back_off]`: how the number of environments gives way to memory.
    pub back_off: BackOffConfig,
    /// `[fault]`: drills.
    pub fault: FaultConfig,
    /// `[log]`: log files.
    pub log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            seed: 1,
            device: "auto".into(),
            sim: SimConfig::default(),
            env: EnvConfig::default(),
            agents: None,
            self_play: SelfPlayConfig::default(),
            task: TaskConfig::default(),
            actor: ActorConfig::default(),
            critic: CriticConfig::default(),
            ppo: PpoConfig::default(),
            sac: SacConfig::default(),
            td3: Td3Config::default(),
            ars: ArsConfig::default(),
            replay: ReplayConfig::default(),
            runner: RunnerConfig::default(),
            collector: CollectorConfig::default(),
            learner: LearnerConfig::default(),
            memory: MemoryConfig::default(),
            curriculum: Vec::new(),
            guard: GuardConfig::default(),
            back_off: BackOffConfig::default(),
            fault: FaultConfig::default(),
            log: LogConfig::default(),
        }
    }
}

/// Where every value of a configuration was written.
#[derive(Debug, Clone)]
pub struct Places {
    root: Node,
    sources: Sources,
}

/// A configuration as read, checked, with overrides applied.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// The file.
    pub path: PathBuf,
    /// Files that it includes, in the order in which they count.
    pub files: Vec<PathBuf>,
    /// Where the values were written.
    pub places: Places,
    /// `env.num_envs` is "auto": the number in `config` is only there to be replaced.
    pub auto_envs: bool,
}

impl Loaded {
    /// The robot's MJCF file.
    pub fn robot(&self) -> PathBuf {
        let base = self.path.parent().unwrap_or(Path::new(""));
        base.join(&self.config.task.robot)
    }

    /// Reads the robot.
    ///
    /// # Errors
    /// Its file, or one that it names, is missing, out of reach or wrong.
    pub fn model(&self) -> Result<Model, MjcfError> {
        let edits = self.edits()?;
        mjcf::load_edited(&self.robot(), self.robot_folder().as_deref(), &edits)
    }

    /// Reads the robot's looks, and the robot again.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn looks(&self) -> Result<(Model, Looks), MjcfError> {
        let edits = self.edits()?;
        mjcf::load_edited_looks(&self.robot(), self.robot_folder().as_deref(), &edits)
    }

    /// What the task adds to the robot's file; its mistakes are found when the configuration
    /// is read.
    fn edits(&self) -> Result<Edits, MjcfError> {
        self.config.task.edits().map_err(|e| MjcfError::Invalid {
            place: e.path,
            message: e.message,
        })
    }

    /// The folder that holds all of the robot's files, if one is named.
    fn robot_folder(&self) -> Option<PathBuf> {
        let base = self.path.parent().unwrap_or(Path::new(""));
        let within = self.config.task.robot_folder.as_ref();
        within.map(|folder| base.join(folder))
    }
}

impl Places {
    /// Turns an error about a path into one about a line.
    pub fn explain(&self, error: &ConfigError) -> Diagnostic {
        let key = &error.path;
        let place = locate::locate(&self.root, key);
        let mut help = error.help.clone();
        let diagnostic = match place {
            Some(p) if p.exact => {
                let origin = match &error.span {
                    Some(span) => locate::inside(&self.sources, &p.origin, span.clone()),
                    None => p.origin,
                };
                Diagnostic::at(&self.sources, &origin, format!("{key}: {}", error.message))
            }
            _ => {
                let label = self.sources.0.first().map_or("", |s| s.label.as_str());
                let message = format!("{label}: {key} (not set, default): {}", error.message);
                match place {
                    Some(p) => Diagnostic::at(
                        &self.sources,
                        &p.origin,
                        format!("{key} (not set here): {}", error.message),
                    ),
                    None => Diagnostic::plain(message),
                }
            }
        };
        match help.take() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    /// Like [`explain`](Self::explain), for several.
    pub fn explain_all(&self, errors: &[ConfigError]) -> ConfigErrors {
        // One more than are shown, so that it is known that there are more.
        let errors = errors.iter().take(error::MOST + 1);
        ConfigErrors::sorted(errors.map(|e| self.explain(e)).collect())
    }
}

/// Reads a configuration, applies overrides in order, checks everything that can be
/// checked without the robot.
///
/// # Errors
/// Every mistake that one pass can find, each with its place.
pub fn load(path: &Path, overrides: &[Override]) -> Result<Loaded, ConfigErrors> {
    let text = source::read(path)?;
    parse(&text, path, overrides)
}

/// [`load`] for text that was already read; `path` gives the name and the base of
/// relative paths.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, path: &Path, overrides: &[Override]) -> Result<Loaded, ConfigErrors> {
    let mut sources = Sources::default();
    sources.add(&path.display().to_string(), text, false);
    let mut root = sources.parse(0)?;
    let files = include::expand(&mut root, &mut sources, path)?;
    let mut wrong = Vec::new();
    let overrides = profile::apply(&mut root, &mut sources, overrides, &mut wrong);
    for o in &overrides {
        if let Err(d) = overrides::apply(&mut root, &mut sources, o) {
            wrong.push(d);
        }
    }
    let auto_envs = take_auto_envs(&mut root);
    wrong.extend(schema::check(&root, &sources));
    if !wrong.is_empty() {
        return Err(ConfigErrors::sorted(wrong));
    }
    let mut config: Config = typed::deserialize(&root, &sources, path)?;
    if config.name.is_empty() {
        config.name = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    }
    // A table of its own in the file; the simulation has it with its task.
    config.task.agents = config.agents.clone();
    let places = Places { root, sources };
    let errors = config.validate();
    if !errors.is_empty() {
        return Err(places.explain_all(&errors));
    }
    read_headers(&mut config.task, path, &files).map_err(|e| places.explain(&e))?;
    Ok(Loaded {
        config,
        path: path.to_path_buf(),
        files,
        places,
        auto_envs,
    })
}

/// Reads the headers of native functions, which lie beside one of the configuration's files or
/// below it.
fn read_headers(task: &mut TaskConfig, path: &Path, files: &[PathBuf]) -> Result<(), ConfigError> {
    if task.native.is_empty() {
        return Ok(());
    }
    let folder = |file: &Path| file.parent().unwrap_or(Path::new("")).to_path_buf();
    let within = std::iter::once(path).chain(files.iter().map(PathBuf::as_path));
    let within: Vec<PathBuf> = within.map(folder).collect();
    task::native::read(task, &folder(path), &within, leave::leave())
}

/// Stands for `env.num_envs = "auto"` until the number is known: large enough for any
/// number of minibatches that makes sense.
const ENVS_TO_BE_KNOWN: i64 = 4096;

/// Puts a number where `env.num_envs` is "auto"; returns whether it was.
fn take_auto_envs(root: &mut Node) -> bool {
    let Value::Table(tables) = &mut root.value else {
        return false;
    };
    let env = tables.iter_mut().find(|e| e.key == "env");
    let Some(Value::Table(keys)) = env.map(|e| &mut e.node.value) else {
        return false;
    };
    let Some(entry) = keys.iter_mut().find(|e| e.key == "num_envs") else {
        return false;
    };
    let auto = matches!(&entry.node.value, Value::Str(s) if s == "auto");
    if auto {
        entry.node.value = Value::Int(ENVS_TO_BE_KNOWN);
    }
    auto
}
