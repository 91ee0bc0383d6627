//! One training: the loop, its folder, checkpoints and signals.
//!
//! Reading order: [`Run::learn`] (the loop) -> `start` (how a run is built, fresh or
//! from a checkpoint) -> `record` (what is logged) -> [`checkpoint`], [`dir`].

pub mod checkpoint;
mod counters;
pub mod dir;
pub mod error;
pub mod evaluate;
mod guard;
mod judge;
pub mod keep;
mod kernel;
mod load;
mod memory;
mod meta;
mod record;
mod resume;
mod signals;
pub mod stage;
mod start;

pub use dir::METRICS;
pub use error::RunError;
pub use evaluate::{Evaluation, Evaluator};
pub(crate) use judge::judged_env;
pub(crate) use kernel::{
    foresee as foresee_kernel, generic, one_env, settle as settle_kernel, settle_here,
};
pub(crate) use load::build_env;
pub use load::{LoadedRun, load_run};
pub(crate) use memory::Need;
pub use record::resident_mib;
pub use resume::MAY_CHANGE;
pub use start::Options;
pub(crate) use start::{Parts, build_parts, plan};

use crate::config::Config;
use crate::learner::{Learner, Ppo, UpdateStats};
use crate::log::curve;
use crate::log::metrics::Record;
use crate::log::progress::Progress;
use crate::log::sinks::Sinks;
use checkpoint::{Checkpoint, TaskMark};
use counters::Counters;
use dir::RunDir;
use evaluate::Evaluator as Eval;
use ostler_collector::{Collector, SyncCollector};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A checkpoint is written at least this often, so that little is lost to a kill.
const AUTOSAVE: Duration = Duration::from_secs(60);

/// Name of the learning curve's picture.
const CURVE: &str = "curve.png";

/// One training.
pub struct Run {
    config: Config,
    dir: RunDir,
    collector: SyncCollector,
    ppo: Ppo,
    evaluator: Option<Eval>,
    task: TaskMark,
    reward_names: Vec<String>,
    termination_names: Vec<String>,
    counters: Counters,
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
}

impl Run {
    /// Trains until the end, a goal, a time limit or a signal, and saves.
    ///
    /// # Errors
    /// Collection or update failed, or a checkpoint could not be written.
    pub fn learn(&mut self) -> Result<Ended, RunError> {
        let result = self.train();
        if result.is_err() {
            self.progress.leave();
        }
        result
    }

    fn train(&mut self) -> Result<Ended, RunError> {
        self.warm_up()?;
        let ended = loop {
            if let Some(ended) = self.ended() {
                break ended;
            }
            let clock = Instant::now();
            let done = self.counters.iteration as f64 / self.config.runner.max_iterations as f64;
            self.ppo.set_progress(done.min(1.0))?;
            self.collector.collect(self.ppo.policy_mut())?;
            let update = self.update()?;
            self.count();
            let took = clock.elapsed();
            let evaluation = self.evaluate_if_due()?;
            self.judge(evaluation.as_ref());
            self.log(&update, took, evaluation.as_ref());
            let iteration = self.counters.iteration;
            let stats = self.collector.stats();
            self.watch
                .look(iteration, &update, stats, self.config.samples())?;
            self.save_if_due(evaluation.as_ref())?;
            self.after_first();
        };
        if let Err(e) = self.save(None) {
            return Err(self.rescue(e));
        }
        self.finish();
        Ok(ended)
    }

    /// The folder.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The configuration as it is in force.
    pub fn config(&self) -> &Config {
        &self.config
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

    /// Records that a log did not take.
    pub fn lost_records(&self) -> u64 {
        self.sinks.lost
    }

    /// A fresh normaliser would ruin the first updates: a fresh run with one first
    /// collects a rollout for its statistics alone. Its steps count.
    fn warm_up(&mut self) -> Result<(), RunError> {
        if self.counters.env_steps == 0 && self.ppo.wants_warm_up() {
            self.collector.collect(self.ppo.policy_mut())?;
            self.ppo.warm_up(self.collector.rollout())?;
            self.counters.env_steps += self.config.samples();
            self.counters.window.add(self.collector.stats());
        }
        Ok(())
    }

    fn update(&mut self) -> Result<UpdateStats, RunError> {
        let threads = self.config.learner_threads();
        let update = || self.ppo.update(self.collector.rollout());
        Ok(crate::torch::with_threads(threads, update)?)
    }

    fn ended(&self) -> Option<Ended> {
        if self.stop.raised() {
            return Some(Ended::Interrupted);
        }
        if let Some(value) = self.reached {
            return Some(Ended::Reached(value));
        }
        if self.counters.iteration >= self.config.runner.max_iterations {
            return Some(Ended::Finished);
        }
        let over = self.max_time.is_some_and(|m| self.started.elapsed() >= m);
        over.then_some(Ended::TimeUp)
    }

    fn count(&mut self) {
        self.counters.iteration += 1;
        self.counters.env_steps += self.config.samples();
        self.counters.window.add(self.collector.stats());
    }

    fn evaluate_if_due(&mut self) -> Result<Option<Evaluation>, RunError> {
        let every = self.config.runner.eval_interval;
        match &mut self.evaluator {
            Some(evaluator) if self.counters.iteration.is_multiple_of(every) => {
                let episodes = self.config.runner.eval_episodes;
                Ok(Some(evaluator.evaluate(self.ppo.policy_mut(), episodes)?))
            }
            _ => Ok(None),
        }
    }

    /// Decides whether `runner.stop_at_return` is reached: by evaluation where there
    /// is one, else by the last hundred training episodes.
    fn judge(&mut self, evaluation: Option<&Evaluation>) {
        let goal = self.config.runner.stop_at_return;
        if goal == 0.0 {
            return;
        }
        let value = match (&self.evaluator, evaluation) {
            (Some(_), Some(e)) if e.episodes > 0 => e.mean_return,
            (None, _) if self.counters.window.full() => self.counters.window.means().0,
            _ => return,
        };
        if value >= goal {
            self.reached = Some(value);
        }
    }

    fn save_if_due(&mut self, evaluation: Option<&Evaluation>) -> Result<(), RunError> {
        let every = self.config.runner.save_interval;
        let at_interval = every > 0 && self.counters.iteration.is_multiple_of(every);
        let best = evaluation.is_some() && self.better(evaluation).is_some();
        if at_interval || best || self.saved.elapsed() >= AUTOSAVE {
            match self.save(evaluation) {
                // Space may come back before the next one is due.
                Err(RunError::Save(e)) => {
                    self.saved = Instant::now();
                    tracing::warn!("{e}; the training goes on and tries again");
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// After the last checkpoint could not be written: hours of training should not go
    /// with it, so it is written into the system's temporary folder.
    fn rescue(&self, e: RunError) -> RunError {
        let RunError::Save(cause) = e else { return e };
        let folder = std::env::temp_dir().join(format!("ostler-rescued-{}", std::process::id()));
        let rescued = keep::file_of(&folder, self.counters.iteration);
        // Only into a folder that is new: a temporary folder is open to everyone.
        let written = std::fs::create_dir(&folder)
            .is_ok()
            .then(|| self.checkpoint().ok()?.write(&rescued).ok())
            .flatten();
        match written {
            Some(()) => RunError::Rescued {
                cause,
                rescued,
                home: self.dir.checkpoints(),
            },
            None => RunError::Save(cause),
        }
    }

    /// The score of the present weights if it is the best so far. Evaluations, where
    /// there are any, are not compared with training episodes.
    fn better(&self, evaluation: Option<&Evaluation>) -> Option<f64> {
        let score = match (&self.evaluator, evaluation) {
            (Some(_), Some(e)) if e.episodes > 0 => e.mean_return,
            (None, _) if self.counters.window.full() => self.counters.window.means().0,
            _ => return None,
        };
        let best = self.counters.best;
        (score.is_finite() && best.is_none_or(|b| score > b)).then_some(score)
    }

    /// Writes a checkpoint unless this iteration has one.
    fn save(&mut self, evaluation: Option<&Evaluation>) -> Result<(), RunError> {
        let iteration = self.counters.iteration;
        if self.saved_iteration == Some(iteration) {
            return Ok(());
        }
        let better = self.better(evaluation);
        self.counters.best = better.or(self.counters.best);
        let folder = self.dir.checkpoints();
        let path = keep::file_of(&folder, iteration);
        self.checkpoint()?.write(&path).map_err(RunError::Save)?;
        if better.is_some()
            && let Err(e) = keep::mark_best(&folder, &path)
        {
            tracing::warn!("cannot mark the best checkpoint: {e}");
        }
        let runner = &self.config.runner;
        keep::prune(&folder, runner.keep_checkpoints, runner.save_interval);
        self.saved = Instant::now();
        self.saved_iteration = Some(iteration);
        tracing::info!(iteration, best = better, "saved");
        Ok(())
    }

    fn checkpoint(&self) -> Result<Checkpoint, RunError> {
        let mut collector = Vec::new();
        self.collector.save(&mut collector)?;
        Ok(Checkpoint {
            meta: checkpoint::Meta {
                iteration: self.counters.iteration,
                env_steps: self.counters.env_steps,
                wall_s: self.wall_s(),
                best: self.counters.best,
                ..Checkpoint::meta(self.task.clone())
            },
            learner: self.ppo.save()?,
            collector,
            episodes: self.counters.window.to_vec(),
        })
    }

    /// What would delay the first iteration waits until it is done.
    fn after_first(&mut self) {
        if self.git_folder.as_os_str().is_empty() {
            return;
        }
        self.meta.ask_git(std::mem::take(&mut self.git_folder));
    }

    fn finish(&mut self) {
        self.progress.finish(&self.snapshot());
        if self.config.log.curve {
            let file = self.dir.path().join(CURVE);
            let metrics = self.dir.path().join(METRICS);
            // A picture is no reason to call a training failed.
            match curve::draw(&metrics, &file, &self.config.name) {
                Ok(()) => self.curve = Some(file),
                Err(e) => tracing::info!("no learning curve: {e}"),
            }
        }
        self.meta.finish();
    }
}
