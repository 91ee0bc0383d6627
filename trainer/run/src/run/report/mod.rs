//! Logs of a run, the progress line, the learning curve, warnings.

mod record;

use super::counters::Counters;
use super::evaluate::{Evaluation, Evaluations};
use super::guards::{Guards, Watch};
use super::parts::Parts;
use super::schedules::Schedules;
use super::setup::Setup;
use super::store::dir::METRICS;
use crate::log::curve::{self, CurveError};
use crate::log::metrics::Record;
use crate::log::progress::{Progress, Snapshot};
use crate::log::sinks::Sinks;
use ostler_learn::learner::UpdateStats;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the learning curve's picture.
const CURVE: &str = "curve.png";

/// The logs of a run, the progress line, the learning curve, and warnings that are given
/// once.
pub(crate) struct Report {
    pub sinks: Sinks,
    /// The numbers of the last iteration.
    pub record: Record,
    line: Progress,
    watch: Watch,
    /// Where this process began.
    first_iteration: u64,
    /// The metric `success` when it was last logged.
    success: Option<f64>,
    /// The learning curve's picture, once it is drawn.
    curve: Option<PathBuf>,
}

/// The parts of a run that its logs show.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub setup: &'a Setup,
    pub counters: &'a Counters,
    pub schedules: &'a Schedules,
    pub evaluations: &'a Evaluations,
    pub guards: &'a Guards,
}

/// Results of an iteration.
pub(super) struct Done<'a> {
    pub update: &'a UpdateStats,
    pub evaluation: Option<&'a Evaluation>,
    /// Time for collection and update.
    pub took: Duration,
}

impl Standing<'_> {
    /// Time of the run, earlier processes included (s).
    pub(crate) fn wall_s(&self) -> f64 {
        self.counters.wall_before_s + self.setup.spent_s()
    }

    /// Whether the mean return is still over too few episodes, or over short ones alone.
    fn early(&self) -> bool {
        self.setup.short_episodes_only(self.counters) || !self.counters.window.full()
    }
}

impl Report {
    /// Logs into `sinks`; the run goes on from `first_iteration`.
    pub(crate) fn new(sinks: Sinks, line: Progress, first_iteration: u64) -> Self {
        Self {
            sinks,
            record: Record::default(),
            line,
            watch: Watch::default(),
            first_iteration,
            success: None,
            curve: None,
        }
    }

    /// Writes the iteration's numbers to all logs and the progress line.
    pub(crate) fn log(&mut self, run: Standing<'_>, parts: &Parts, done: &Done<'_>) {
        record::fill(&mut self.record, run, parts, done);
        self.success = self.record.get("Metrics/success").or(self.success);
        self.record.put("Guard/lost_log_records", self.sinks.lost() as f64);
        self.sinks.write(&self.record);
        let (iteration, stats) = (run.counters.iteration, parts.collector.stats());
        let broken = stats.broken();
        if broken > 0 {
            tracing::info!(iteration, broken, "environments reset");
        }
        if self.line.due() {
            self.line.show(&self.snapshot(run));
        }
        let config = run.setup.config();
        let size = (config.samples(), &run.setup.spec);
        self.watch.look(iteration, done.update, stats, size, config);
    }

    /// Adds an evaluation to what was logged of the last iteration.
    pub(crate) fn log_evaluation(&mut self, run: Standing<'_>, evaluation: &Evaluation) {
        record::fill_evaluated(&mut self.record, run, evaluation);
        self.sinks.amend(&self.record);
    }

    /// Says in the progress line how far an evaluation is: `of` two numbers each, so many of
    /// so many.
    pub(crate) fn evaluating(&mut self, iteration: (u64, u64), step: (u64, u64)) {
        if self.line.due() {
            self.line.show_evaluating(iteration, step);
        }
    }

    /// The progress line's present text.
    fn snapshot(&self, run: Standing<'_>) -> Snapshot {
        let Standing { setup, counters, .. } = run;
        let (mean_return, mean_length) = counters.window.means();
        let of = setup.config().runner.max_iterations;
        let done = counters.iteration.saturating_sub(self.first_iteration);
        let spent = setup.spent_s();
        let per_iteration = spent / done as f64;
        let mut left_s = per_iteration * of.saturating_sub(counters.iteration) as f64;
        if let Some(max) = setup.max_time {
            left_s = left_s.min(max.as_secs_f64() - spent);
        }
        Snapshot {
            iteration: counters.iteration,
            of,
            fps: self.record.get("Perf/total_fps").unwrap_or(0.0),
            success: self.success,
            mean_return,
            early: run.early(),
            evaluated: run.evaluations.history.record().last.map(|s| s.mean),
            mean_length,
            left_s,
            rss_mib: self.record.get("Memory/rss_mib").unwrap_or(f64::NAN),
            memory: run.guards.memory.monitor.latest(),
        }
    }

    /// Leaves the progress line as it is: an error follows.
    pub(crate) fn leave(&mut self) {
        self.line.leave();
    }

    /// The last progress line; draws the learning curve of the run called `name` in `dir`
    /// where that is wanted.
    pub(crate) fn finish(&mut self, run: Standing<'_>, dir: &Path, curve: bool) {
        self.line.finish(&self.snapshot(run));
        if !curve {
            return;
        }
        let file = dir.join(CURVE);
        // A picture is no reason to call a run failed.
        let name = &run.setup.config().name;
        let draw = || curve::redraw(&dir.join(METRICS), &file, name);
        let remedy = || format!("the run is complete; ostler plot {} draws it", dir.display());
        match std::panic::catch_unwind(AssertUnwindSafe(draw)) {
            Ok(Ok(())) => self.curve = Some(file),
            Ok(Err(e @ CurveError::Empty(_))) => tracing::info!("no learning curve: {e}"),
            Ok(Err(e)) => tracing::warn!("no learning curve: {e}; {}", remedy()),
            Err(_) => tracing::warn!("no learning curve: a defect; {}", remedy()),
        }
    }

    /// The learning curve's picture, if one was drawn.
    pub(crate) fn curve(&self) -> Option<&Path> {
        self.curve.as_deref()
    }

    /// What environments broke of in this process, the most frequent first.
    pub(crate) fn causes(&self, run: &Setup) -> String {
        self.watch.causes(&run.spec)
    }

    /// Events that environments broke after in this process, a sentence each.
    pub(crate) fn suspects(&self, run: &Setup) -> Vec<String> {
        self.watch.suspects(&run.spec)
    }

    /// Environments that broke and minibatches that were skipped, in this process.
    pub(crate) fn faults(&self) -> (u64, u64) {
        self.watch.totals()
    }
}
