//! A run whose disk is nearly full: it writes as little as it can, and ends
//! in order, with a checkpoint, where that is not enough.

use super::keep;
use crate::log::sinks::Sinks;
use crate::run::error::RunError;
use ostler_collector::replay::Saved;
use ostler_learn::config::Config;
use ostler_learn::learner::{LearnError, Remembers};
use ostler_machine::memory::{Level, MemoryMonitor, Pressure, Snapshot};
use std::path::Path;
use std::time::Duration;

/// Whether a run writes as little as it can.
#[derive(Debug, Default)]
pub(crate) struct Thrift {
    /// Samples of the disk when it began to.
    since: Option<u64>,
    /// Why the run ends, once it does.
    over: Option<Pressure>,
    /// The replay buffer is not in the newest checkpoint.
    without_replay: bool,
}

/// Decision after a look at the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// All goes on as before.
    None,
    /// Less is to be written from now on.
    Save,
    /// There is space again.
    Spend,
    /// Writing less is not enough.
    End(Pressure),
}

impl Thrift {
    /// `looks`: samples so far; `patience`: how long the disk may stay as full; `checkpoint`:
    /// bytes of the newest, without twice of which the end cannot wait.
    fn look(&mut self, disk: &Snapshot, looks: u64, patience: Duration, checkpoint: u64) -> Step {
        let pressure = disk.pressure();
        match (self.since, disk.level) {
            (None, Level::Act) => {
                self.since = Some(looks);
                Step::Save
            }
            (Some(_), Level::Calm) => {
                self.since = None;
                Step::Spend
            }
            // What was given up shows in the second sample after it: the first may have
            // been under way.
            (Some(since), Level::Act) if looks >= since + 2 => {
                let urgent = pressure.left() < checkpoint.saturating_mul(2);
                match disk.since >= patience || urgent {
                    true => {
                        self.over = Some(pressure);
                        Step::End(pressure)
                    }
                    false => Step::None,
                }
            }
            _ => Step::None,
        }
    }

    /// Why the run ends, if it does.
    pub(crate) fn over(&self) -> Option<Pressure> {
        self.over
    }

    /// Whether the checkpoint of this iteration lacks what the last one of the run should
    /// have.
    pub(crate) fn lacks_replay(&self) -> bool {
        self.over.is_some() && self.without_replay
    }
}

impl Thrift {
    /// Looks at the disk between two iterations; whether checkpoints are to be pruned now.
    pub(crate) fn mind(
        &mut self,
        config: &Config,
        monitor: &MemoryMonitor,
        checkpoints: &Path,
        sinks: &mut Sinks,
    ) -> bool {
        let disk = monitor.disk();
        if disk.level != Level::Act && self.since.is_none() {
            return false;
        }
        let patience = Duration::try_from_secs_f64(config.memory.act_after_s);
        let patience = patience.unwrap_or(Duration::MAX);
        let newest = keep::list(checkpoints).pop();
        let size = newest.and_then(|f| std::fs::metadata(f.1).ok());
        let size = size.map_or(0, |m| m.len());
        let least = config.memory.disk_act_mib;
        match self.look(&disk, monitor.looks(), patience, size) {
            Step::None => {}
            Step::Save => {
                sinks.pause_events(true);
                tracing::warn!(
                    "{}, less than memory.disk_act_mib = {least} MiB: event files and the replay buffer are not written any more, one checkpoint is kept; if that is not enough, the run saves and ends",
                    disk.pressure()
                );
                return true;
            }
            Step::Spend => {
                sinks.pause_events(false);
                tracing::info!("{}: all is written again", disk.pressure());
            }
            Step::End(pressure) => tracing::warn!(
                "{pressure}, less than memory.disk_act_mib = {least} MiB although less is written: the run saves and ends"
            ),
        }
        false
    }

    /// How many checkpoints stay, and at which multiples of iterations all do (0: none).
    pub(crate) fn keeps(&self, config: &Config) -> (usize, u64) {
        match self.since {
            Some(_) => (1, 0),
            None => (config.runner.keep_checkpoints, config.runner.save_interval),
        }
    }

    /// Saves what the learner remembers for a checkpoint, where there is space for it: the first
    /// buffer, and all others.
    ///
    /// # Errors
    /// Memory does not suffice; another process is gone.
    pub(crate) fn save(
        &mut self,
        memory: &mut dyn Remembers,
    ) -> Result<Option<(Saved, Vec<Saved>)>, RunError> {
        self.without_replay = true;
        let open = memory.buffers().into_iter().flatten();
        if !self.spares(open.map(|buffer| buffer.unsaved_bytes()).sum()) {
            return Ok(None);
        }
        let Some(first) = memory.buffers().into_iter().flatten().next() else {
            return Ok(None);
        };
        let first = first.save().map_err(LearnError::from);
        let saved = first.and_then(|first| Ok((first, memory.save_others()?)));
        match saved.map_err(RunError::from) {
            Ok(saved) => {
                self.without_replay = false;
                Ok(Some(saved))
            }
            Err(e) if e.out_of_memory().is_some() || e.process_is_lost() => Err(e),
            // The weights matter more than what can be collected again.
            Err(e) => {
                tracing::warn!("{e}; this checkpoint is without the replay buffer");
                Ok(None)
            }
        }
    }

    /// Whether the replay buffer may be saved: while less is written only where it lies in a
    /// file anyway, and with the last checkpoint where that leaves half of the space.
    fn spares(&self, bytes: u64) -> bool {
        let enough = match (self.since, self.over) {
            (None, _) => true,
            (Some(_), None) => bytes == 0,
            (Some(_), Some(disk)) => bytes <= disk.left() / 2,
        };
        if !enough {
            tracing::info!(
                "the replay buffer is not saved: it would take up to {} MiB",
                bytes.div_ceil(1 << 20)
            );
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_machine::memory::Source;

    const MIB: u64 = 1 << 20;
    const PATIENCE: Duration = Duration::from_secs(5);

    fn disk(level: Level, left: u64, seconds: u64) -> Snapshot {
        Snapshot {
            level,
            tightest: Source::Disk,
            used: 1000 * MIB - left,
            limit: 1000 * MIB,
            since: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn less_is_written_at_once_and_the_end_comes_if_that_does_not_help() {
        let mut thrift = Thrift::default();
        let mut look = |level, seconds, looks| {
            thrift.look(&disk(level, 90 * MIB, seconds), looks, PATIENCE, MIB)
        };
        assert_eq!(look(Level::Calm, 99, 1), Step::None);
        assert_eq!(look(Level::Warn, 99, 2), Step::None);
        assert_eq!(look(Level::Act, 0, 3), Step::Save);
        // Not before it can be seen, and not at once.
        assert_eq!(look(Level::Act, 6, 4), Step::None);
        assert_eq!(look(Level::Act, 4, 9), Step::None);
        // It helped, but not enough to go back to what was.
        assert_eq!(look(Level::Warn, 0, 10), Step::None);
        assert_eq!(look(Level::Act, 1, 11), Step::None);
        assert_eq!(look(Level::Calm, 0, 12), Step::Spend);
        assert_eq!(look(Level::Act, 0, 13), Step::Save);
        assert!(matches!(look(Level::Act, 5, 15), Step::End(_)));
        assert_eq!(thrift.over().unwrap().left(), 90 * MIB);
    }

    #[test]
    fn the_end_does_not_wait_until_a_checkpoint_does_not_fit() {
        let end = |checkpoint| {
            let mut thrift = Thrift::default();
            let full = disk(Level::Act, 90 * MIB, 1);
            thrift.look(&full, 1, PATIENCE, checkpoint);
            thrift.look(&full, 3, PATIENCE, checkpoint)
        };
        assert_eq!(end(45 * MIB), Step::None);
        assert!(matches!(end(46 * MIB), Step::End(_)));
    }
}
