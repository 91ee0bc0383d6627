//! How many environments there are: back-off when memory does not suffice, growth
//! when it does again, changes that an earlier run recorded.

use super::Run;
use super::error::RunError;
use super::parts::{IterationStart, Parts, release};
use super::peers::tell_to_drop;
use crate::supervise::Message;
use ostler_collector::peers::Group;
use ostler_learn::drill::Phase;
use ostler_learn::learner::NamedTensors;
use ostler_machine::memory::Level;
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

impl Run {
    /// Between two iterations: what the last one left behind, disk and memory, and the
    /// number of environments that is due.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    pub(super) fn make_room(&mut self, parts: Parts) -> Result<Parts, RunError> {
        ostler_machine::torch::reserve::keep_up();
        let parts = self.due_size(parts)?;
        let monitor = &self.guards.memory.monitor;
        self.store.mind_the_disk(self.setup.config(), monitor, &mut self.report.sinks);
        Ok(parts)
    }

    /// Goes on after an error if fewer environments mend it.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn survive(&mut self, parts: Parts, e: RunError) -> Result<Parts, RunError> {
        let Some(memory) = e.out_of_memory() else {
            return Err(e);
        };
        // Making room takes some first.
        ostler_machine::torch::reserve::release();
        self.back_off(parts, &Reason::Allocation(memory))
    }

    /// Changes that are due before the next iteration.
    ///
    /// # Errors
    /// As [`resize`](Self::resize).
    fn due_size(&mut self, mut parts: Parts) -> Result<Parts, RunError> {
        if let Some(now) = self.guards.memory.monitor.must_act() {
            self.guards.memory.monitor.acted();
            let reason = Reason::Pressure(now.pressure().to_string());
            match self.next_below(self.setup.num_envs(), &reason) {
                Ok(_) => return self.back_off(parts, &reason),
                // Nothing has failed yet: a run with few environments goes on.
                Err(e) if !self.guards.memory.floor_said => {
                    self.guards.memory.floor_said = true;
                    tracing::warn!("{e}; the run goes on as long as it can");
                }
                Err(_) => {}
            }
        }
        if self.guards.memory.monitor.latest().level != Level::Calm {
            self.guards.memory.last_pressure = self.counters.iteration;
        }
        let grow_after = self.config().back_off.grow_after;
        // A change on record counts like the pressure that led to it: a run that repeats
        // it after a kill must not take it for calm.
        let last_pressure =
            self.guards.memory.last_pressure.max(self.last_change().map_or(0, |c| c[0]));
        let calm = self.counters.iteration.saturating_sub(last_pressure);
        let mut reason = Reason::Planned;
        if let Some(cap) = self.cap()
            && grow_after > 0
            && calm >= grow_after
            && cap < self.wanted_envs()
        {
            let to = self.config().back_off.above(cap, self.wanted_envs());
            self.guards.memory.last_pressure = self.counters.iteration;
            self.record_cap(to);
            reason = Reason::Calm(calm);
        }
        let to = self.wanted_envs().min(self.cap().unwrap_or(usize::MAX));
        if to == self.setup.num_envs() {
            return Ok(parts);
        }
        parts.capture()?;
        self.resize(parts, to, &reason)
    }

    /// Environments without regard to memory.
    pub(super) fn wanted_envs(&self) -> usize {
        self.schedules
            .num_envs(self.config(), self.counters.iteration)
            .unwrap_or(self.setup.asked_envs)
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
        self.guards.memory.last_pressure = self.counters.iteration;
        if let Reason::Allocation(memory) = reason {
            self.once_a_process(memory)?;
        }
        if !parts.start.committed {
            parts.restore()?;
        } else if let Err(e) = parts.capture() {
            if e.out_of_memory().is_none() {
                return Err(e);
            }
            // Not even room for their states: the learner matters more.
            tracing::warn!("{e}: the environments begin anew");
            parts.start = IterationStart::default();
        }
        let to = self.next_below(self.setup.num_envs(), reason)?;
        self.save_in_need(&mut parts);
        self.record_cap(to);
        self.resize(parts, to, reason)
    }

    /// A second want of memory in one iteration means that what the first gave up did
    /// not come back: an allocator keeps what lies between things that are in use. Only
    /// the end of the process returns it, and that is no loss where another takes over.
    fn once_a_process(&mut self, memory: &MemoryError) -> Result<(), RunError> {
        let before = self.guards.memory.crowded.replace(self.counters.iteration);
        if before != self.guards.memory.crowded || !self.guards.reporter.supervised() {
            return Ok(());
        }
        let num_envs = self.setup.num_envs();
        self.guards.reporter.say(&Message::NumEnvs(num_envs));
        Err(RunError::Crowded { num_envs, reason: memory.clone() })
    }

    /// A checkpoint, where there is memory for it and another process could go on from
    /// it: nothing is to be done again if this one cannot.
    fn save_in_need(&mut self, parts: &mut Parts) {
        if !self.guards.reporter.supervised()
            || self.counters.iteration == 0
            || self.guards.health.doubtful()
        {
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
    /// state that they hold as their start. Environments `0..` keep their states and numbers;
    /// weights, optimiser, normalisers and all counters stay.
    fn resize(&mut self, mut parts: Parts, to: usize, reason: &Reason) -> Result<Parts, RunError> {
        let from = self.setup.num_envs();
        let learner = parts.learner.save()?;
        let before = match parts.take_start() {
            Ok(start) => start,
            Err(e) if e.out_of_memory().is_some() => {
                tracing::warn!("{e}: the environments begin anew");
                IterationStart::default()
            }
            Err(e) => return Err(e),
        };
        let replay = parts.take_buffers();
        // All else goes before any of the new comes.
        drop(parts);
        tell_to_drop(&Group::current());
        release(self.config());
        let mut to = to;
        let mut parts = loop {
            self.setup.loaded.config.env.num_envs = to;
            match self.during(Phase::Resize, |run| run.assemble(&learner, &before)) {
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
        parts.give_buffers(replay);
        self.guards.reporter.say(&Message::NumEnvs(to));
        // The new environments do not know the schedules' values yet.
        self.schedules.applied = false;
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
        let mut parts = Parts::build(&self.setup.loaded, &self.setup.model, &self.setup.spec)?;
        parts.learner.load(learner)?;
        if before.captured {
            let spread = self.config().spreads_ages();
            parts.collector.restore_range(&before.collector, spread)?;
        }
        // Memory for what every iteration keeps is taken here, not in the middle of one.
        parts.capture()?;
        Ok(parts)
    }

    /// Into the run's own configuration, so that training it again repeats the change.
    fn record_cap(&mut self, to: usize) {
        let iteration = self.counters.iteration;
        self.setup.loaded.config.back_off.record(iteration, to);
        self.write_config();
    }

    /// Writes the configuration into the run's folder.
    pub(super) fn write_config(&mut self) {
        let as_asked = self.setup.as_asked();
        self.store.write_config(&as_asked, &self.setup.model);
    }
}
