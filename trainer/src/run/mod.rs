//! One training: the loop, its folder, checkpoints and signals.
//!
//! Reading order: [`Run::learn`] (the loop) -> `iteration` (one iteration, which counts
//! whole or not at all) -> `health` (whether it is believed; roll-back) -> `size` (how
//! many environments; back-off) -> `start` (how a run is built, fresh or from a
//! checkpoint) -> `record` (what is logged) -> `saving`, `thrift` (a disk that is nearly
//! full), [`checkpoint`], [`dir`].

mod again;
mod auto;
pub mod checkpoint;
mod collecting;
mod counters;
mod curriculum;
pub mod dir;
pub mod error;
pub mod evaluate;
pub mod evaluations;
pub(crate) mod failure;
mod fitting;
mod git;
mod guard;
mod health;
mod iteration;
mod judge;
pub mod keep;
mod kernel;
mod load;
mod machine;
#[cfg(test)]
mod machine_tests;
mod meta;
mod pace;
mod parts;
mod record;
mod resume;
mod robot;
mod rows;
mod saving;
mod signals;
mod size;
pub mod stage;
mod start;
mod teacher;
mod thrift;
mod trouble;

pub(crate) use again::as_if_resumed;
pub(crate) use auto::{Next, newest_unfinished};
pub use dir::METRICS;
pub use error::RunError;
pub use evaluate::{Evaluation, Evaluator};
pub(crate) use judge::judged_env;
pub(crate) use kernel::{
    foresee as foresee_kernel, generic, one_env, settle as settle_kernel, settle_here,
};
pub use load::{LoadedRun, load_run};
pub(crate) use load::{build_env, explained, find};
pub(crate) use machine::Machine;
#[cfg(test)]
pub(crate) use machine_tests::on_device;
pub(crate) use parts::Parts;
pub use record::resident_mib;
pub use resume::MAY_CHANGE;
pub(crate) use rows::Rows;
pub(crate) use signals::forwarded_from;
pub use start::Options;
pub(crate) use start::plan;
pub(crate) use teacher::check_teacher;

use crate::config::{Config, Loaded};
use crate::drill::RunDrill;
use crate::log::curve;
use crate::log::metrics::Record;
use crate::log::progress::Progress;
use crate::log::sinks::Sinks;
use crate::memory::{MemoryMonitor, Pressure};
use crate::supervise::Reporter;
use checkpoint::TaskMark;
use counters::Counters;
use dir::RunDir;
use evaluate::Evaluator as Eval;
use health::Health;
use ostler_sim::Model;
use ostler_sim::env::EnvSpec;
use parts::IterationStart;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the learning curve's picture.
const CURVE: &str = "curve.png";

/// One training.
pub struct Run {
    /// The configuration in force: `env.num_envs` is the number of now.
    loaded: Loaded,
    /// The number of environments that was asked for.
    asked_envs: usize,
    model: Arc<Model>,
    dir: RunDir,
    /// Environments, policy, learner, collector; taken while [`learn`](Self::learn) runs.
    parts: Option<Parts>,
    /// The state that the present iteration started from.
    start: IterationStart,
    /// Whether the present iteration is done: then nothing of it is taken back.
    committed: bool,
    health: Health,
    /// After how many iterations memory did not suffice the last time.
    crowded: Option<u64>,
    /// The last iteration with pressure on memory.
    last_pressure: u64,
    /// It was said that there is pressure, and nothing left to give.
    floor_said: bool,
    /// How far each schedule has come.
    progress_of: curriculum::Progress,
    /// The schedules' values as the environments have them.
    scheduled: Vec<(String, f64)>,
    /// Whether what the schedules follow was looked for in the logs.
    schedules_looked_at: bool,
    /// Whether it writes as little as it can.
    thrift: thrift::Thrift,
    /// Faults on order.
    drill: RunDrill,
    monitor: MemoryMonitor,
    reporter: Reporter,
    evaluator: Option<Eval>,
    /// Results of the evaluations.
    evaluations: evaluations::Evaluations,
    /// When the last evaluation of this session was made, or the session began.
    evaluated: Instant,
    /// Time that the evaluations of this session took (s).
    evaluation_s: f64,
    task: TaskMark,
    /// The task's sizes and names, of one environment.
    spec: EnvSpec,
    counters: Counters,
    pace: pace::Pace,
    sinks: Sinks,
    progress: Progress,
    record: Record,
    meta: meta::MetaWriter,
    git_folder: PathBuf,
    stop: signals::StopFlag,
    max_time: Option<Duration>,
    started: Instant,
    saved: Instant,
    saved_iteration: Option<u64>,
    /// Another process of this run died before.
    restarted: bool,
    watch: guard::Watch,
    reached: Option<f64>,
    curve: Option<PathBuf>,
    /// A kernel that is being compiled for the next run; stopped when this is dropped.
    _kernel: kernel::Settled,
    /// Where this session began.
    first_iteration: u64,
}

/// Why a training ended without an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// All iterations are done.
    Finished,
    /// The mean return reached `runner.stop_at_return`.
    Reached(f64),
    /// `--max-time` is over.
    TimeUp,
    /// A signal came.
    Interrupted,
    /// The disk that it writes to is nearly full.
    DiskFull(Pressure),
}

impl Run {
    /// Trains until the end, a goal, a time limit or a signal, and saves.
    ///
    /// # Errors
    /// Something that no roll-back and no back-off mends. The last checkpoint is intact.
    pub fn learn(&mut self) -> Result<Ended, RunError> {
        let Some(parts) = self.parts.take() else {
            return Err(RunError::Usage("this run has ended already".into()));
        };
        let result = self.train(parts);
        if let Err(e) = &result {
            self.progress.leave();
            if e.exit_code() == error::FAILED && !matches!(e, RunError::GaveUp { .. }) {
                self.report(None, "stopped", &e.to_string(), "see log.txt");
            }
        }
        result
    }

    fn train(&mut self, mut parts: Parts) -> Result<Ended, RunError> {
        let ended = loop {
            // Whatever is logged meanwhile says in which iteration it was. Of the highest
            // level, so that no filter takes it from the warnings.
            let n = self.counters.iteration + 1;
            let _within = tracing::error_span!("iteration", n).entered();
            crate::torch::reserve::keep_up();
            parts = self.due_size(parts)?;
            self.mind_the_disk();
            if let Some(ended) = self.ended() {
                break ended;
            }
            if let Err(e) = self.iterate(&mut parts) {
                parts = self.survive(parts, e)?;
            }
        };
        while let Err(e) = self.save(&mut parts) {
            match e.out_of_memory() {
                Some(_) => parts = self.survive(parts, e)?,
                None => return Err(self.rescue(&mut parts, e)),
            }
        }
        self.finish();
        Ok(ended)
    }

    /// Goes on after an error if fewer environments mend it.
    fn survive(&mut self, parts: Parts, e: RunError) -> Result<Parts, RunError> {
        let Some(memory) = e.out_of_memory() else {
            return Err(e);
        };
        // Making room takes some first.
        crate::torch::reserve::release();
        self.back_off(parts, &size::Reason::Allocation(memory))
    }

    /// The folder.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The configuration as it is in force.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The newest checkpoint.
    pub fn checkpoint_file(&self) -> PathBuf {
        keep::file_of(&self.dir.checkpoints(), self.counters.iteration)
    }

    /// The learning curve's picture, if one was drawn.
    pub fn curve_file(&self) -> Option<&std::path::Path> {
        self.curve.as_deref()
    }

    /// Iterations done.
    pub fn iteration(&self) -> u64 {
        self.counters.iteration
    }

    /// Environment steps done.
    pub fn env_steps(&self) -> u64 {
        self.counters.env_steps
    }

    /// Training time, earlier sessions included (s).
    pub fn wall_s(&self) -> f64 {
        self.counters.wall_before_s + self.started.elapsed().as_secs_f64()
    }

    /// Mean return and length of the last episodes.
    pub fn means(&self) -> (f64, f64) {
        self.counters.window.means()
    }

    /// The last evaluation and the best, where there were any.
    pub fn evaluated(&self) -> Option<(evaluations::Score, evaluations::Score)> {
        let record = self.evaluations.record();
        Some((record.last?, record.best?))
    }

    /// Time of this session (s), and the part of it that evaluations took.
    pub fn evaluation_time(&self) -> (f64, f64) {
        (self.started.elapsed().as_secs_f64(), self.evaluation_s)
    }

    /// Faults that the run survived, in a few words each.
    /// Broken environments and skipped minibatches are those of this session.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut count = |n: u64, one: &str, more: &str| match n {
            0 => {}
            1 => all.push(one.to_string()),
            n => all.push(format!("{n} {more}")),
        };
        let (broken, skipped) = self.watch.totals();
        count(
            broken,
            "1 environment broke and was reset",
            "environments broke and were reset",
        );
        count(skipped, "1 minibatch skipped", "minibatches skipped");
        let roll_backs = self.health.record().roll_backs_in_all;
        count(roll_backs, "1 roll-back", "roll-backs");
        let (now, wanted) = (self.num_envs(), self.wanted_envs());
        if now < wanted {
            all.push(format!("{now} instead of {wanted} environments"));
        }
        all.extend(self.evaluations.fallen());
        if self.restarted {
            all.push("started again after its process died".into());
        }
        all
    }

    /// Why it ended, or was to end, for want of space on its disk; nothing if it was not.
    pub fn disk_full(&self) -> Option<Pressure> {
        self.thrift.over()
    }

    /// The newest report of a failure in the run's folder.
    pub fn newest_report(&self) -> Option<PathBuf> {
        failure::newest(self.dir.path())
    }

    /// Records that a log did not take.
    pub fn lost_records(&self) -> u64 {
        self.sinks.lost
    }

    fn ended(&self) -> Option<Ended> {
        if self.stop.raised() {
            return Some(Ended::Interrupted);
        }
        if let Some(value) = self.reached {
            return Some(Ended::Reached(value));
        }
        if self.counters.iteration >= self.config().runner.max_iterations {
            return Some(Ended::Finished);
        }
        let over = self.max_time.is_some_and(|m| self.started.elapsed() >= m);
        match self.thrift.over() {
            Some(disk) => Some(Ended::DiskFull(disk)),
            None => over.then_some(Ended::TimeUp),
        }
    }

    /// Work that would delay the first iteration waits until it is done.
    fn after_first(&mut self) {
        if self.git_folder.as_os_str().is_empty() {
            return;
        }
        let diff = self.config().log.git_diff;
        self.meta
            .ask_git(std::mem::take(&mut self.git_folder), diff);
    }

    fn finish(&mut self) {
        self.progress.finish(&self.snapshot());
        // No picture where there is no space.
        if self.config().log.curve && self.thrift.over().is_none() {
            let file = self.dir.path().join(CURVE);
            let metrics = self.dir.path().join(METRICS);
            // A picture is no reason to call a training failed.
            match curve::redraw(&metrics, &file, &self.config().name) {
                Ok(()) => self.curve = Some(file),
                Err(e) => tracing::info!("no learning curve: {e}"),
            }
        }
        self.meta.finish();
        if let Some(value) = self.reached {
            self.meta.reached(value);
        }
    }
}
