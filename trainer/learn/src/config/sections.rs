//! The tables that concern the program itself: `[runner]`, `[collector]`,
//! `[learner]`, `[log]`.

use super::WandbConfig;
use ostler_sim::config::{Auto, AutoWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[runner]`: the length of a run and its checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerConfig {
    /// The learner: `"ppo"`, `"sac"`, `"td3"` or `"ars"`, each with a table of its own.
    pub algorithm: Algorithm,
    /// Control steps of each environment per iteration, 1 or more.
    pub num_steps_per_env: usize,
    /// Iterations (one rollout, one update) of the whole run, 1 or more.
    pub max_iterations: u64,
    /// Iterations between checkpoints; 0: only at the end. An evaluation that is the best
    /// so far brings one in any case.
    pub save_interval: u64,
    /// How many of the newest checkpoints stay, 1 or more. The best one and those at
    /// multiples of `save_interval` stay too.
    pub keep_checkpoints: usize,
    /// Stop when the mean return of an evaluation reaches this; 0: never. With
    /// `eval_interval = 0` it is that of the last 100 training episodes. With a `[[curriculum]]`
    /// only where every number of the task has its last value.
    pub stop_at_return: f64,
    /// Iterations between evaluations (mean actions, environments of their own, noise as
    /// `eval_noise` says); 0: none. `"auto"`: a twentieth of `max_iterations`, or more where episodes
    /// are long and the run is short; none where 16 of them are longer than the run.
    #[schemars(title = "\"auto\" or a whole number, 0 for none")]
    pub eval_interval: Auto,
    /// Episodes of each evaluation, 1 or more; `"auto"`: 16 to 64, as many as the run is
    /// long enough for.
    #[schemars(extend("minimum" = 1))]
    pub eval_episodes: Auto,
    /// Whether evaluations keep the noise and the bias of observations, with which a policy may
    /// have learnt to live.
    pub eval_noise: bool,
    /// First episodes start at random ages, so that time-outs spread out; not with
    /// `collector.reset_at_each_iter`.
    pub init_at_random_ep_len: bool,
    /// A small process of its own starts the run again from its last checkpoint
    /// when it dies of SIGKILL, an abort, a crash or a lost GPU.
    pub supervise: bool,
    /// Restarts in a row that may go by without a new checkpoint; 0: none at all.
    pub max_restarts: u32,
    /// Of several processes (`--nproc`, `torchrun`, `srun`): how long each waits until all have
    /// come (s).
    pub peers_start_s: f64,
    /// Of several processes: one that has said nothing for so long is gone (s). The others end,
    /// with a code that supervisors and `torchrun` start again on.
    pub peers_silence_s: f64,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            num_steps_per_env: 24,
            max_iterations: 1000,
            save_interval: 100,
            keep_checkpoints: 3,
            stop_at_return: 0.0,
            eval_interval: Auto::Auto(AutoWord::Auto),
            eval_episodes: Auto::Auto(AutoWord::Auto),
            eval_noise: false,
            init_at_random_ep_len: true,
            supervise: true,
            max_restarts: 3,
            peers_start_s: 300.0,
            peers_silence_s: 30.0,
        }
    }
}

pub use crate::learner::registry::Algorithm;

/// `[collector]`: how rollouts are filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CollectorConfig {
    /// `"sync"`: policy and environments take turns, then the learner has its turn.
    /// `"async"`: threads with parts of the environments and copies of the policy
    /// collect while the learner learns; physics on the processor.
    pub kind: CollectorKind,
    /// `"async"`: threads that collect, `"auto"` (the cores at hand, less those of the
    /// learner where it learns meanwhile) or a number, at most `env.num_envs`.
    #[schemars(extend("minimum" = 1))]
    pub workers: Auto,
    /// `"async"`: policy versions between the one that acted and the learner's. So many
    /// rollouts are collected ahead; 0: the learner waits for its own.
    pub max_staleness: usize,
    /// `"async"`: control steps between two looks for newer weights within a rollout; 0:
    /// a rollout is made with those that it was begun with.
    pub refresh_interval: usize,
    /// `"async"`: share of the workers, above 0, that must be done with a rollout before
    /// the others are cut: their missing steps are masked. 1: nobody is cut.
    pub preemptive_threshold: f64,
    /// Control steps of each environment at the start of a run with random actions within
    /// `action_bound` instead of the policy's. Not with `"ppo"`.
    pub init_random_steps: u64,
    /// Every rollout begins with new episodes.
    pub reset_at_each_iter: bool,
    /// `"async"`: where the workers' parts become one rollout: `"auto"` (where the
    /// learner is), or `"cpu"`.
    pub storing_device: String,
    /// `"async"`: a worker that makes no step for so long is replaced (s), above 0.
    pub worker_timeout_s: f64,
    /// `"async"`: how long the end of a run waits for the workers (s), above 0.
    pub shutdown_timeout_s: f64,
    /// Synchronisation of the host after each control step on a GPU.
    pub cuda_sync: CudaSync,
    /// Transfers between physics on the processor and a policy on a GPU go through
    /// memory that the GPU reads by itself (page-locked). Nothing to others.
    pub pin_memory: bool,
    /// The host does not wait for such transfers to the GPU. It waits for its own reads in any
    /// case. Without `pin_memory` it changes nothing.
    pub non_blocking: bool,
}

impl Default for CollectorConfig {
    fn default() -> Self {
        Self {
            kind: CollectorKind::default(),
            workers: Auto::Auto(AutoWord::Auto),
            max_staleness: 1,
            refresh_interval: 0,
            preemptive_threshold: 1.0,
            init_random_steps: 0,
            reset_at_each_iter: false,
            storing_device: "auto".into(),
            worker_timeout_s: 60.0,
            shutdown_timeout_s: 10.0,
            cuda_sync: CudaSync::default(),
            pin_memory: true,
            non_blocking: true,
        }
    }
}

/// `collector.cuda_sync`. The results are the same; the last two are for finding out
/// whether they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CudaSync {
    /// Nothing: all work is on one stream, whose order is enough.
    #[default]
    Off,
    /// One recorded event.
    Event,
    /// Everything on the GPU.
    Device,
}

impl CudaSync {
    /// As it is written in `collector.cuda_sync`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Event => "event",
            Self::Device => "device",
        }
    }
}

/// `collector.kind`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectorKind {
    /// Policy and environments take turns in one thread of control.
    #[default]
    Sync,
    /// Threads collect while the learner learns.
    Async,
}

/// `[learner]`: settings of all learners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// Threads that learn on a CPU: `"auto"` (as many as the networks and minibatches keep
    /// busy, at most 8 and the cores at hand) or a number. PPO's bits do not depend on it;
    /// those of SAC and TD3, whose threads are libtorch's, do.
    #[schemars(extend("minimum" = 1))]
    pub threads: Auto,
    /// Matrix products of an update: `"auto"` (`"tf32"` on a GPU, else `"float32"`); `"float32"`;
    /// on a GPU `"tf32"`, which rounds their factors to a mantissa of ten bits (on a processor it
    /// is float32, with a warning); on a processor with AVX512-BF16 `"bf16"`, which rounds those of
    /// PPO's hidden layers to seven bits. Sums stay in float32. Elsewhere `"bf16"` is refused.
    pub precision: Precision,
}

/// How matrix products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// As the device has them by itself: [`Tf32`](Self::Tf32) or [`Float32`](Self::Float32).
    Auto,
    /// In float32 throughout.
    Float32,
    /// On a GPU TensorFloat-32: factors rounded to ten bits of mantissa, sums in float32.
    Tf32,
    /// On a processor bfloat16: factors rounded to seven bits, sums in float32.
    Bf16,
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self { threads: Auto::Auto(AutoWord::Auto), precision: Precision::Auto }
    }
}

/// `[log]`: files that are written besides checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Folder of all runs, relative to the folder the program is started in.
    pub dir: String,
    /// Write TensorBoard events.
    pub tensorboard: bool,
    /// Draw the learning curve when the run ends.
    pub curve: bool,
    /// Keep git's diff of the configuration's folder, beside the commit. Comparing runs the
    /// filters of your own git configuration.
    pub git_diff: bool,
    /// Lines of `log.txt` and warnings on standard error.
    pub format: LogFormat,
    /// Filter of `log.txt`: a level, and levels of modules after it, as in
    /// `info,ostler_trainer::memory=debug`. `--log-level` and `OSTLER_LOG` come before it.
    pub level: String,
    /// Weights & Biases; a table `[log.wandb]`, which may be empty.
    pub wandb: Option<WandbConfig>,
}

/// `log.format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            dir: "runs".into(),
            tensorboard: true,
            curve: true,
            git_diff: false,
            format: LogFormat::Text,
            level: "info".into(),
            wandb: None,
        }
    }
}
