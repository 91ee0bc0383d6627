//! Other programs that are started.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;

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
            std::thread::spawn(of_a_thread_without_signals)
                .join()
                .unwrap()
        };
        assert_eq!(ended(|_| {}).code(), Some(7));
        assert_eq!(ended(takes_signals).signal(), Some(libc::SIGTERM));
    }
}
