//! Whether the policy is believed, whether memory suffices, who wants the run to end, and
//! who is told.

pub(crate) mod health;
mod learning;
mod suspects;
mod trouble;
mod watch;

pub(crate) use health::Health;
pub(crate) use trouble::Trouble;
pub(crate) use watch::{Watch, causes};

use super::signals::StopFlag;
use crate::supervise::{Message, Reporter};
use ostler_learn::drill::RunDrill;
use ostler_machine::memory::{Hook, Level, MemoryMonitor};

/// The guards of a run.
pub(crate) struct Guards {
    /// Whether the policy is believed, and the weights to go back to.
    pub health: Health,
    /// Whether memory suffices.
    pub memory: MemoryGuard,
    /// Who wants the run to end.
    pub stop: StopFlag,
    /// Faults on order.
    pub drill: RunDrill,
    /// The process that supervises this one.
    pub reporter: Reporter,
}

/// Whether memory suffices.
pub(crate) struct MemoryGuard {
    /// Measures it.
    pub monitor: MemoryMonitor,
    /// After how many iterations memory did not suffice the last time.
    pub crowded: Option<u64>,
    /// The last iteration with pressure on memory.
    pub last_pressure: u64,
    /// It was said that there is pressure, and nothing left to give.
    pub floor_said: bool,
}

impl MemoryGuard {
    /// `last_pressure`: the last iteration with pressure, 0 if there was none.
    pub(crate) fn new(monitor: MemoryMonitor, last_pressure: u64) -> Self {
        Self { monitor, crowded: None, last_pressure, floor_said: false }
    }
}

/// Tells the supervising process when memory is tight, and when it is no longer.
pub(crate) fn tell_pressure(reporter: Reporter) -> Hook {
    let mut before = Level::Calm;
    Box::new(move |memory, _| {
        if memory.level != Level::Calm || before != Level::Calm {
            before = memory.level;
            reporter.say(&Message::Memory {
                level: memory.level.name().into(),
                share: memory.share(),
                what: memory.pressure().to_string(),
            });
        }
    })
}
