//! When checkpoints are written, and what becomes of one that cannot be.

use super::checkpoint::{self, Checkpoint};
use super::dir::CONFIG;
use super::error::RunError;
use super::parts::Parts;
use super::{Run, keep};
use crate::drill::Phase;
use crate::learner::NamedTensors;
use crate::supervise::Message;
use ostler_collector::{Collector, Snapshot};
use ostler_sim::files;
use std::path::Path;
use std::time::{Duration, Instant};

/// A checkpoint is written at least this often, so that little is lost to a kill.
const AUTOSAVE: Duration = Duration::from_secs(60);

impl Run {
    pub(super) fn save_if_due(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        if self.health.doubtful() {
            return Ok(());
        }
        let every = self.config().runner.save_interval;
        let at_interval = every > 0 && self.counters.iteration.is_multiple_of(every);
        // The last iteration's is written at the end anyway.
        let best = self.evaluator.is_some() && self.better().is_some() && self.ended().is_none();
        let due = self.stop.take_save() || self.saved.elapsed() >= AUTOSAVE;
        if at_interval || best || due {
            match self.save(parts) {
                Err(e) if e.out_of_memory().is_some() => return Err(e),
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
    pub(super) fn rescue(&mut self, parts: &mut Parts, e: RunError) -> RunError {
        let RunError::Save(cause) = e else { return e };
        // A folder of its own: the temporary one is open to everyone.
        let mut write = || {
            let folder = files::scratch("rescued").ok()?;
            let rescued = keep::file_of(folder.path(), self.counters.iteration);
            let checkpoint = self.checkpoint(parts, self.counters.best).ok()?;
            checkpoint.write(&rescued).ok()?;
            let _ = folder.keep();
            Some(rescued)
        };
        match write() {
            Some(rescued) => RunError::Rescued {
                cause,
                rescued,
                home: self.dir.checkpoints(),
            },
            None => RunError::Save(cause),
        }
    }

    /// The score of the present weights if it is the best so far. Evaluations, where
    /// there are any, are not compared with training episodes.
    fn better(&self) -> Option<f64> {
        if self.evaluator.is_some() {
            let best = self.evaluations.record().best?;
            return (best.iteration == self.counters.iteration).then_some(best.mean);
        }
        let score = self.settled_return()?;
        let best = self.counters.best;
        (score.is_finite() && best.is_none_or(|b| score > b)).then_some(score)
    }

    /// Writes a checkpoint unless this iteration has one.
    ///
    /// # Errors
    /// It cannot be written, or memory does not suffice.
    pub(super) fn save(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        let iteration = self.counters.iteration;
        if self.saved_iteration == Some(iteration) && !self.thrift.lacks_memory() {
            return Ok(());
        }
        let better = self.better();
        let best = better.or(self.counters.best);
        let folder = self.dir.checkpoints();
        let path = keep::file_of(&folder, iteration);
        self.restore_folder(&folder);
        self.drill.enter(Phase::Save, iteration);
        let written = self
            .checkpoint(parts, best)
            .and_then(|c| c.write(&path).map_err(RunError::Save));
        self.drill.leave(Phase::Save, written)?;
        self.counters.best = best;
        if better.is_some()
            && let Err(e) = keep::mark_best(&folder, &path)
        {
            tracing::warn!("cannot mark the best checkpoint: {e}");
        }
        self.prune();
        self.saved = Instant::now();
        self.saved_iteration = Some(iteration);
        self.reporter.say(&Message::Saved(iteration));
        tracing::info!(iteration, best = better, "saved");
        Ok(())
    }

    /// Makes the folder of checkpoints again if it vanished, and with it what going on
    /// needs. What cannot be made shows when the checkpoint is written.
    fn restore_folder(&self, folder: &Path) {
        if folder.exists() {
            return;
        }
        tracing::warn!("{} vanished and is made again", folder.display());
        let _ = std::fs::create_dir_all(folder);
        if !self.dir.path().join(CONFIG).exists() {
            self.write_config();
        }
    }

    fn checkpoint(&mut self, parts: &mut Parts, best: Option<f64>) -> Result<Checkpoint, RunError> {
        let replay = self.save_memory(parts)?;
        let mut collector = Snapshot::default();
        parts.collector.capture(&mut collector)?;
        let (health, good, candidate) = self.health.save();
        let (evaluations, best_weights) = self.evaluations.save();
        Ok(Checkpoint {
            meta: checkpoint::Meta {
                iteration: self.counters.iteration,
                env_steps: self.counters.env_steps,
                wall_s: self.wall_s(),
                progress: self.pace.last(),
                best,
                health: health.clone(),
                evaluations: evaluations.clone(),
                last_pressure: self.last_pressure,
                schedules: self.progress_of.clone(),
                replay,
                ..Checkpoint::meta(self.task.clone())
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

/// The same tensors once more; nothing is copied.
pub(super) fn same(tensors: &NamedTensors) -> NamedTensors {
    let again = tensors.iter().map(|(n, t)| (n.clone(), t.shallow_clone()));
    again.collect()
}
