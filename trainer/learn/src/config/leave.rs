//! Leave to compile and run the headers of `[[task.native]]`.
//!
//! Only the command line of this process gives it. No file can: neither a configuration nor a
//! run's folder has a key for it.

use ostler_sim::config::Leave;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The flag.
pub const FLAG: &str = "--allow-native";

static GIVEN: AtomicU8 = AtomicU8::new(0);

/// What configurations that are read from now on may do with their headers.
pub fn set_leave(leave: Leave) {
    let number = match leave {
        Leave::Refused => 0,
        Leave::Describe => 1,
        Leave::Run => 2,
    };
    GIVEN.store(number, Relaxed);
}

/// What a configuration may do with its headers.
pub(super) fn leave() -> Leave {
    match GIVEN.load(Relaxed) {
        2 => Leave::Run,
        1 => Leave::Describe,
        _ => Leave::Refused,
    }
}

/// Whether code that a configuration names may be run.
pub fn may_run_code() -> bool {
    leave() == Leave::Run
}

/// Gives a process of this program's the same leave.
pub fn pass_on(command: &mut Command) {
    if leave() == Leave::Run {
        command.arg(FLAG);
    }
}
