//! Processes of a training, seen from outside.

use std::time::{Duration, Instant};

/// Nothing that is waited for takes so long.
const LONG: Duration = Duration::from_secs(60);

/// Waits until there is an answer; fails when it takes too long.
pub fn wait<T>(what: &str, mut until: impl FnMut() -> Option<T>) -> T {
    let clock = Instant::now();
    loop {
        if let Some(value) = until() {
            return value;
        }
        assert!(clock.elapsed() < LONG, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers; all processes here are ours.
    unsafe { libc::kill(pid, signal) };
}

/// Parent of a process; `None` when it is gone or nothing but its exit code is left.
pub fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    (state != "Z").then_some(parent.parse().ok()?)
}

/// A training asks git and compilers for things, too.
pub fn is_ostler(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "ostler")
}

/// The process that trains for `supervisor`.
pub fn trainer_of(supervisor: i32) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let mut pids = all.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|&pid| parent_of(pid) == Some(supervisor) && is_ostler(pid))
}
