//! Other programs that are started; and when this one gives up what it is in the midst of.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When what is in the making is given up, by the monotonic clock (ms). Signals are the
/// process's, and so is this.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// What is in the making is given up where it is not done after this time; an earlier limit
/// stays. A signal handler may call it.
pub fn give_up_after(time: Duration) {
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    LIMIT.fetch_min(now().saturating_add(time), Ordering::Relaxed);
}

/// Nothing is given up any more.
pub fn never_give_up() {
    LIMIT.store(u64::MAX, Ordering::Relaxed);
}

/// Whether to give up: asked by what takes long, between two of its steps.
pub fn gives_up() -> bool {
    let limit = LIMIT.load(Ordering::Relaxed);
    limit != u64::MAX && now() >= limit
}

/// The monotonic clock (ms).
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is that of a live value, which the call fills; it is one of those
    // that signal-safety(7) allows.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |n: i64| u64::try_from(n).unwrap_or_default();
    part(time.tv_sec) * 1000 + part(time.tv_nsec) / 1_000_000
}

/// A process that `command` starts takes signals, though a thread starts it that leaves them to
/// another one: a signal mask is inherited.
pub fn takes_signals(command: &mut Command) {
    // SAFETY: between fork and exec it makes one system call and takes no lock and no
    // memory.
    unsafe { command.pre_exec(unmask) };
}

fn unmask() -> Result<()> {
    // SAFETY: a signal set is plain data that sigemptyset fills before it is read; the
    // pointer is that of a live value, and null asks for nothing.
    let failed = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_child_takes_what_its_parents_thread_does_not() {
        let ended = |prepare: fn(&mut Command)| {
            let of_a_thread_without_signals = move || {
                // SAFETY: the set is filled before it is read; the pointer is live.
                unsafe {
                    let mut all: libc::sigset_t = std::mem::zeroed();
                    libc::sigfillset(&mut all);
                    libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
                }
                let mut command = Command::new("sh");
                command.args(["-c", "kill -TERM $$; exit 7"]);
                prepare(&mut command);
                command.status().unwrap()
            };
            std::thread::spawn(of_a_thread_without_signals).join().unwrap()
        };
        assert_eq!(ended(|_| {}).code(), Some(7));
        assert_eq!(ended(takes_signals).signal(), Some(libc::SIGTERM));
    }
}
