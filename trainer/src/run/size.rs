//! How many environments there are: back-off when memory does not suffice, growth
//! when it does again, changes that an earlier run recorded.

use super::Run;
use super::error::RunError;
use super::machine::release;
use super::parts::{IterationStart, Parts};
use crate::config::Config;
use crate::drill::Phase;
use crate::learner::NamedTensors;
use crate::memory::Level;
use crate::supervise::Message;
use ostler_collector::Collector;
use ostler_sim::memory::MemoryError;

/// Why the number changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reason {
    /// Something could not be allocated.
    Allocation(MemoryError),
    /// The memory's level stood above `memory.act`.
    Pressure(String),
    /// The pressure is gone.
    Calm(u64),
    /// A schedule or `back_off.changes` says so.
    Planned,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allocation(e) => write!(f, "{e}"),
            Self::Pressure(what) => write!(f, "{what}"),
            Self::Calm(n) => write!(f, "no pressure for {n} iterations"),
            Self::Planned => write!(f, "as planned"),
        }
    }
}

/// The configuration as the run's folder has it: with the number of environments that
/// was asked for; what became of it is in `back_off.changes`.
pub(super) fn as_asked(config: &Config, asked_envs: usize) -> Config {
    let mut config = config.clone();
    config.env.num_envs = asked_envs;
    config
}

impl Run {
    /// Environments now.
    pub(super) fn num_envs(&self) -> usize {
        self.loaded.config.env.num_envs
    }

    /// Changes that are due before the next iteration.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    pub(super) fn due_size(&mut self, mut parts: Parts) -> Result<Parts, RunError> {
        if let Some(now) = self.monitor.must_act() {
            self.monitor.acted();
            let reason = Reason::Pressure(now.pressure().to_string());
            match self.next_below(self.num_envs(), &reason) {
                Ok(_) => return self.back_off(parts, &reason),
                // Nothing has failed yet: a run with few environments goes on.
                Err(e) if !self.floor_said => {
                    self.floor_said = true;
                    tracing::warn!("{e}; the run goes on as long as it can");
                }
                Err(_) => {}
            }
        }
        if self.monitor.latest().level != Level::Calm {
            self.last_pressure = self.counters.iteration;
        }
        let grow_after = self.config().back_off.grow_after;
        // A change on record counts like the pressure that led to it: a run that repeats
        // it after a kill must not take it for calm.
        let last_pressure = self
            .last_pressure
            .max(self.last_change().map_or(0, |c| c[0]));
        let calm = self.counters.iteration.saturating_sub(last_pressure);
        let mut reason = Reason::Planned;
        if let Some(cap) = self.cap()
            && grow_after > 0
            && calm >= grow_after
            && cap < self.wanted_envs()
        {
            let to = self.config().back_off.above(cap, self.wanted_envs());
            self.last_pressure = self.counters.iteration;
            self.record_cap(to);
            reason = Reason::Calm(calm);
        }
        let to = self.wanted_envs().min(self.cap().unwrap_or(usize::MAX));
        if to == self.num_envs() {
            return Ok(parts);
        }
        parts.capture(&mut self.start)?;
        self.resize(parts, to, &reason)
    }

    /// Environments without regard to memory.
    pub(super) fn wanted_envs(&self) -> usize {
        self.scheduled_envs().unwrap_or(self.asked_envs)
    }

    /// The most environments since the last back-off or growth.
    fn cap(&self) -> Option<usize> {
        usize::try_from(self.last_change()?[1]).ok()
    }

    /// The last change on record up to now.
    fn last_change(&self) -> Option<[u64; 2]> {
        self.config().back_off.last(self.counters.iteration)
    }

    /// After an error for want of memory: takes the iteration back if it was not
    /// finished, and goes on with fewer environments.
    ///
    /// # Errors
    /// There are few enough already, or memory does not suffice for any number.
    pub(super) fn back_off(
        &mut self,
        mut parts: Parts,
        reason: &Reason,
    ) -> Result<Parts, RunError> {
        self.last_pressure = self.counters.iteration;
        if let Reason::Allocation(memory) = reason {
            self.once_a_process(memory)?;
        }
        if !self.committed {
            parts.restore(&self.start)?;
        } else if let Err(e) = parts.capture(&mut self.start) {
            if e.out_of_memory().is_none() {
                return Err(e);
            }
            // Not even room for their states: the learner matters more.
            tracing::warn!("{e}: the environments begin anew");
            self.start = IterationStart::default();
        }
        let to = self.next_below(self.num_envs(), reason)?;
        self.save_in_need(&mut parts);
        self.record_cap(to);
        self.resize(parts, to, reason)
    }

    /// A second want of memory in one iteration means that what the first gave up did
    /// not come back: an allocator keeps what lies between things that are in use. Only
    /// the end of the process returns it, and that is no loss where another takes over.
    fn once_a_process(&mut self, memory: &MemoryError) -> Result<(), RunError> {
        let before = self.crowded.replace(self.counters.iteration);
        if before != self.crowded || !self.reporter.supervised() {
            return Ok(());
        }
        let num_envs = self.num_envs();
        self.reporter.say(&Message::NumEnvs(num_envs));
        Err(RunError::Crowded {
            num_envs,
            reason: memory.clone(),
        })
    }

    /// A checkpoint, where there is memory for it and another process could go on from
    /// it: nothing is to be done again if this one cannot.
    fn save_in_need(&mut self, parts: &mut Parts) {
        if !self.reporter.supervised() || self.counters.iteration == 0 || self.health.doubtful() {
            return;
        }
        if let Err(e) = self.save(parts) {
            tracing::info!("no checkpoint before the number of environments changes: {e}");
        }
    }

    fn next_below(&self, from: usize, reason: &Reason) -> Result<usize, RunError> {
        let config = self.config();
        config.fewer_envs(from).ok_or_else(|| RunError::TooFew {
            num_envs: from,
            least: config.back_off.min_num_envs,
            off: !config.back_off.enabled(),
            reason: reason.to_string(),
        })
    }

    /// Rebuilds everything for another number of environments. The parts must be in the
    /// state that `self.start` holds. Environments `0..` keep their states and numbers;
    /// weights, optimiser, normalisers and all counters stay.
    fn resize(&mut self, mut parts: Parts, to: usize, reason: &Reason) -> Result<Parts, RunError> {
        let from = self.num_envs();
        let learner = parts.learner.save()?;
        let mut before = std::mem::take(&mut self.start);
        if before.captured
            && let Err(e) = before.fetch(&parts)
        {
            if e.out_of_memory().is_none() {
                return Err(e);
            }
            tracing::warn!("{e}: the environments begin anew");
            before = IterationStart::default();
        }
        // What was remembered does not depend on the number of environments.
        let memory = parts.learner.memory().and_then(|m| m.slot().take());
        // All else goes before any of the new comes.
        drop(parts);
        release(self.config());
        let mut to = to;
        let mut parts = loop {
            self.loaded.config.env.num_envs = to;
            self.drill.enter(Phase::Resize, self.counters.iteration + 1);
            let built = self.assemble(&learner, &before);
            match self.drill.leave(Phase::Resize, built) {
                Ok(parts) => break parts,
                Err(e) => match e.out_of_memory() {
                    Some(memory) => {
                        release(self.config());
                        self.once_a_process(&memory)?;
                        to = self.next_below(to, &Reason::Allocation(memory))?;
                        self.record_cap(to);
                    }
                    None => return Err(e),
                },
            }
        };
        if let Some(new) = parts.learner.memory()
            && memory.is_some()
        {
            *new.slot() = memory;
        }
        self.task.num_envs = to;
        self.reporter.say(&Message::NumEnvs(to));
        // The new environments do not know the schedules' values yet.
        self.scheduled.clear();
        let iteration = self.counters.iteration;
        let most = self.wanted_envs();
        if to < from && *reason != Reason::Planned {
            tracing::warn!(
                iteration,
                "{reason}: the run goes on with {to} instead of {from} environments (asked: {most})"
            );
        } else {
            tracing::info!(
                iteration,
                "{reason}: the run goes on with {to} instead of {from} environments (asked: {most})"
            );
        }
        Ok(parts)
    }

    fn assemble(
        &mut self,
        learner: &NamedTensors,
        before: &IterationStart,
    ) -> Result<Parts, RunError> {
        let mut parts = Parts::build(&self.loaded, &self.model, &self.spec)?;
        parts.learner.load(learner)?;
        if before.captured {
            let spread = self.config().runner.init_at_random_ep_len;
            parts.collector.restore_range(&before.collector, spread)?;
        }
        // Memory for what every iteration keeps is taken here, not in the middle of one.
        parts.capture(&mut self.start)?;
        Ok(parts)
    }

    /// Into the run's own configuration, so that training it again repeats the change.
    fn record_cap(&mut self, to: usize) {
        let iteration = self.counters.iteration;
        self.loaded.config.back_off.record(iteration, to);
        self.write_config();
    }

    /// Writes the configuration into the run's folder.
    pub(super) fn write_config(&self) {
        let written = as_asked(self.config(), self.asked_envs);
        if let Err(e) = self.dir.write_config(&written, &self.model.sources) {
            tracing::warn!("the run's config.toml is not up to date: {e}");
        }
    }
}
