//! The run's TOML: read, checked, resolved.
//!
//! Reading order: [`load`] -> [`ostler_sim::config::file`] (text to checked values, every mistake
//! with its place; `schema` has the keys) -> `validate`. An error about a path finds its line
//! through [`Places`].

mod amp;
mod collector;
pub mod curriculum;
mod evaluation;
pub mod filter;
mod foreign;
mod half;
#[cfg(test)]
mod include_tests;
pub(crate) mod leave;
#[cfg(test)]
mod profile_tests;
mod read;
mod resolve;
#[cfg(test)]
mod resolve_tests;
mod robust;
pub mod schema;
mod sections;
mod symmetry;
#[cfg(test)]
mod tests;
mod validate;
mod wandb;

pub use leave::{FLAG as ALLOW_NATIVE, set_leave};
pub use leave::{may_run_code, pass_on};
pub use ostler_sim::config::file::parse_as;
pub use ostler_sim::config::file::{ConfigErrors, Diagnostic, Override, Places};
pub use read::{Loaded, load, parse};
pub use resolve::{Device, Gpus, Machine, NoGpu, NotHere, Resolution};
pub use robust::{BackOffConfig, FaultConfig, GuardConfig};
pub use sections::{
    Algorithm, CollectorConfig, CollectorKind, CudaSync, LearnerConfig, LogConfig, LogFormat,
    Precision, RunnerConfig,
};
pub use wandb::{WandbConfig, WandbMode};

use crate::environments::CustomConfig;
use crate::learner::{
    ActorConfig, AmpConfig, ArsConfig, CriticConfig, PpoConfig, SacConfig, SelfPlayConfig,
    SymmetryConfig, Td3Config,
};
use ostler_collector::gymnasium::GymnasiumConfig;
use ostler_collector::replay::ReplayConfig;
use ostler_machine::memory::MemoryConfig;
use ostler_sim::config::{AgentsConfig, EnvConfig, SimConfig, TaskConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that defines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// `[gymnasium]`: environments of Python in the place of `[task]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gymnasium: Option<GymnasiumConfig>,
    /// `[custom]`: environments of a program of your own in the place of `[task]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomConfig>,
    /// `[actor]`: the network that decides.
    pub actor: ActorConfig,
    /// `[critic]`: the network that estimates the value.
    pub critic: CriticConfig,
    /// `[symmetry]`: what is learnt on one side of the robot is learnt on the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetry: Option<SymmetryConfig>,
    /// `[amp]`: a reward for moving as a reference motion does.
    pub amp: AmpConfig,
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
            gymnasium: None,
            custom: None,
            actor: ActorConfig::default(),
            critic: CriticConfig::default(),
            symmetry: None,
            amp: AmpConfig::default(),
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
