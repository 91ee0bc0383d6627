//! What a run trains: from options over a configuration and a robot, or an earlier run's,
//! to [`Setup`].

mod auto;
mod plan;
mod resume;
mod same_run;
mod unchanged;
pub(super) mod wandb;

pub use auto::{Next, newest_unfinished};
pub use plan::Options;
pub(crate) use plan::{Plan, fresh};
pub use plan::{physics_doubt, plan};
pub use resume::as_if_resumed;
pub(super) use resume::{Earlier, forget_replay, leave_processes, restore, resumed, set_aside};
pub use same_run::MAY_CHANGE;
pub(super) use same_run::differing;

use super::counters::Counters;
use super::engine::kernel::Settled;
use super::load::mark;
use super::store::checkpoint::TaskMark;
use ostler_learn::config::{Config, Loaded};
use ostler_sim::Model;
use ostler_sim::env::EnvSpec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is trained, of how many environments, for how long.
pub(super) struct Setup {
    /// The configuration in force: `env.num_envs` is the number of now.
    pub loaded: Loaded,
    /// The number of environments that was asked for.
    pub asked_envs: usize,
    /// The robot.
    pub model: Arc<Model>,
    /// The task's sizes and names, of one environment.
    pub spec: EnvSpec,
    /// When this process began.
    pub started: Instant,
    /// After this time it ends.
    pub max_time: Option<Duration>,
    /// Another process of this run died before.
    pub restarted: bool,
    /// A kernel that is being compiled for the next run; stopped when this is dropped.
    pub _kernel: Settled,
}

impl Setup {
    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Environments now.
    pub(crate) fn num_envs(&self) -> usize {
        self.loaded.config.env.num_envs
    }

    /// The configuration as the run's folder has it: with the number of environments that
    /// was asked for; what became of it is in `back_off.changes`.
    pub(crate) fn as_asked(&self) -> Config {
        as_asked(self.config(), self.asked_envs)
    }

    /// The task's name in checkpoints.
    pub(crate) fn task(&self) -> TaskMark {
        TaskMark {
            num_envs: self.num_envs(),
            ..mark(&self.model, &self.spec, &self.config().task.action)
        }
    }

    /// Time of this process (s).
    pub(crate) fn spent_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Whether this process has had its time.
    pub(crate) fn time_is_over(&self) -> bool {
        self.max_time.is_some_and(|m| self.started.elapsed() >= m)
    }

    /// Whether no environment can have finished an episode of full length yet: those that
    /// have ended are the short ones.
    pub(crate) fn short_episodes_only(&self, counters: &Counters) -> bool {
        let steps = self.config().runner.num_steps_per_env as u64;
        counters.iteration.saturating_mul(steps) < u64::from(self.spec.max_episode_steps)
    }

    /// The mean return of the last training episodes, once there are as many as it is
    /// meant to be over, and not the short ones alone.
    pub(crate) fn settled_return(&self, counters: &Counters) -> Option<f64> {
        let settled = counters.window.full() && !self.short_episodes_only(counters);
        settled.then(|| counters.window.means().0)
    }
}

/// [`Setup::as_asked`] before there is one.
pub(super) fn as_asked(config: &Config, asked_envs: usize) -> Config {
    let mut config = config.clone();
    config.env.num_envs = asked_envs;
    config
}
