//! Processes that end with this one, and all their own children with them.

use ostler_base::{files, process};
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The most that is kept of a process's output.
const KEPT: u64 = 64 << 10;

/// A compiler's driver starts further processes. The shell in between leads their
/// group and ends it when it is told to (when this process ends, by the kernel).
const SHELL: &str = "trap 'kill -KILL 0' TERM HUP INT; \"$@\" & wait $!";

/// Limits of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long, if not for ever.
    pub time: Option<Duration>,
    /// How much it gives way to others, 1 to 19; 0 leaves it as this process is.
    pub niceness: i32,
}

/// Result of a process.
#[derive(Debug)]
pub(crate) struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// The beginning of all it printed.
    pub text: String,
}

/// A group of processes, killed when this is dropped.
struct Group(Child);

impl Group {
    fn kill(&mut self) {
        if let (Ok(None), Ok(group)) = (self.0.try_wait(), i32::try_from(self.0.id())) {
            // SAFETY: no memory is involved. The leader has not been waited for, so
            // that the number is still its group's.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a process to its end, asking every 50 ms or so whether to go on.
///
/// # Errors
/// It cannot be started; it took longer than allowed (`TimedOut`) or was given up
/// (`Interrupted`): then it and its children are gone.
pub(crate) fn output(
    command: Command,
    limits: Limits,
    progress: &mut dyn FnMut(Duration) -> ControlFlow<()>,
) -> io::Result<Output> {
    // A process can print into it without anybody reading.
    let mut printed = files::unnamed(0)?;
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", SHELL, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed.try_clone()?)
        .process_group(0);
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    process::takes_signals(&mut shell);
    let parent = std::process::id();
    let niceness = limits.niceness;
    // SAFETY: between fork and exec the closure only makes system calls, allocates
    // nothing and takes no lock.
    unsafe {
        shell.pre_exec(move || end_with_parent(parent, niceness));
    }
    let start = Instant::now();
    let mut group = Group(shell.spawn()?);
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = group.0.try_wait()? {
            break status;
        }
        let elapsed = start.elapsed();
        if limits.time.is_some_and(|limit| elapsed > limit) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if progress(elapsed).is_break() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    printed.rewind()?;
    let mut bytes = Vec::new();
    printed.take(KEPT).read_to_end(&mut bytes)?;
    Ok(Output { status, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// In the new process: a signal when the thread that started it ends.
fn end_with_parent(parent: u32, niceness: i32) -> io::Result<()> {
    // SAFETY: a system call that takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if std::os::unix::process::parent_id() != parent {
        // The parent ended before the signal was asked for.
        return Err(io::ErrorKind::Interrupted.into());
    }
    // A shell cannot trap what its parent ignores.
    // SAFETY: allowed between fork and exec; the default action is no function.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
    if niceness > 0 {
        // That it is refused is no reason not to compile.
        // SAFETY: a system call that takes numbers only.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
    }
    Ok(())
}
