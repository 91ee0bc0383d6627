//! When checkpoints are written, of what, and what becomes of one that cannot be.

use super::Run;
use super::error::RunError;
use super::guards::health::same;
use super::parts::Parts;
use super::store::checkpoint::{self, Checkpoint};
use crate::supervise::Message;
use ostler_collector::Snapshot;
use ostler_collector::peers::Group;
use ostler_learn::drill::Phase;

impl Run {
    /// Writes a checkpoint after an iteration that is a multiple of `runner.save_interval`,
    /// has the best evaluation, or is a minute after the last one.
    ///
    /// # Errors
    /// Memory does not suffice, or the tensors cannot be had. A disk that refuses is a
    /// warning.
    pub(super) fn save_if_due(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        if self.guards.health.doubtful() {
            return Ok(());
        }
        let (config, iteration) = (self.setup.config(), self.counters.iteration);
        // The last iteration's is written at the end anyway.
        let best = self.evaluations.are_made() && self.better().is_some() && self.ended().is_none();
        if !(self.guards.stop.take_save() || self.store.due(config, iteration) || best) {
            return Ok(());
        }
        match self.save(parts) {
            Err(e) if e.out_of_memory().is_some() => Err(e),
            // Space may come back before the next one is due.
            Err(RunError::Save(e)) => {
                self.store.failed();
                tracing::warn!("{e}; the run goes on and tries again");
                Ok(())
            }
            result => result,
        }
    }

    /// The score of the present weights if it is the best so far. Evaluations, where
    /// there are any, are not compared with training episodes.
    fn better(&self) -> Option<f64> {
        if self.evaluations.are_made() {
            let best = self.evaluations.history.record().best?;
            return (best.iteration == self.counters.iteration).then_some(best.mean);
        }
        let score = self.setup.settled_return(&self.counters)?;
        let best = self.counters.best;
        (score.is_finite() && best.is_none_or(|b| score > b)).then_some(score)
    }

    /// Writes a checkpoint unless this iteration has one.
    ///
    /// # Errors
    /// It cannot be written, or memory does not suffice; the folder is another one's.
    pub(super) fn save(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        self.store.still_ours()?;
        self.report.sinks.restore();
        let iteration = self.counters.iteration;
        if self.store.has(iteration) {
            return Ok(());
        }
        let better = self.better();
        let best = better.or(self.counters.best);
        if self.store.restore_folder() {
            self.write_config();
        }
        self.during(Phase::Save, |run| {
            let checkpoint = run.checkpoint(parts, best)?;
            run.store.write(&checkpoint)
        })?;
        self.counters.best = best;
        let config = self.setup.config();
        self.store.wrote(config, iteration, better.is_some());
        self.guards.reporter.say(&Message::Saved(iteration));
        tracing::info!(iteration, best = better, "saved");
        Ok(())
    }

    /// After the last checkpoint could not be written: hours of work should not go with it,
    /// so it is written into the system's temporary folder.
    pub(super) fn rescue(&mut self, parts: &mut Parts, e: RunError) -> RunError {
        let RunError::Save(cause) = e else { return e };
        let checkpoint = self.checkpoint(parts, self.counters.best).ok();
        match checkpoint.and_then(|c| self.store.rescue(&c)) {
            Some(rescued) => {
                RunError::Rescued { cause, rescued, home: self.store.dir().checkpoints() }
            }
            None => RunError::Save(cause),
        }
    }

    fn checkpoint(&mut self, parts: &mut Parts, best: Option<f64>) -> Result<Checkpoint, RunError> {
        let (replay, replay_of_others) = match self.store.save_replay(parts.learner.memory())? {
            Some((first, others)) => (Some(first), others),
            None => (None, Vec::new()),
        };
        let mut collector = Snapshot::default();
        match parts.start.committed {
            true => parts.collector.capture(&mut collector)?,
            // The collector may be in the midst of an iteration that was given up.
            false => collector = parts.start_for_others()?,
        }
        let (health, good, candidate) = self.guards.health.save();
        let (evaluations, best_weights) = self.evaluations.history.save();
        Ok(Checkpoint {
            meta: checkpoint::Meta {
                iteration: self.counters.iteration,
                env_steps: self.counters.env_steps,
                wall_s: self.wall_s(),
                progress: self.schedules.pace.last(),
                best,
                health: health.clone(),
                evaluations: evaluations.clone(),
                evaluation_owed: self.evaluations.owed,
                last_pressure: self.guards.memory.last_pressure,
                schedules: self.schedules.progress.clone(),
                stage: self.schedules.stage.clone(),
                config: self.store.config.clone(),
                sources: self.store.sources.clone(),
                processes: Group::current().size(),
                replay,
                replay_of_others,
                ..Checkpoint::meta(self.setup.task())
            },
            learner: parts.learner.save()?,
            good: same(good),
            candidate: same(candidate),
            best: same(best_weights),
            collector,
            episodes: self.counters.window.to_vec(),
        })
    }
}
