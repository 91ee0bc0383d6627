//! Fork, signals and the end of a child, through libc.

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Signals that the supervising process takes instead of dying of them. All but
/// SIGCHLD are passed on.
const TAKEN: [i32; 6] =
    [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Its largest resident size (bytes).
    pub peak: u64,
}

/// The two sides of a [`fork`].
#[derive(Debug)]
pub enum Forked {
    /// The new process.
    Child,
    /// The old one, with the new one's number.
    Parent(i32),
}

/// Threads of this process; `None` where the system does not say.
pub(crate) fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Taken signals come out of a descriptor for as long as this lives.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks them and opens the descriptor.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(crate) fn take() -> Result<Self> {
        // SAFETY: a signal set is plain data that sigemptyset fills before anything
        // reads it; the pointers are those of live values, and null where nothing is
        // to be set or told.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            let mut hup: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut hup);
            // As `nohup` has it: then nobody is to take it.
            let nohup = hup.sa_sigaction == libc::SIG_IGN;
            // Where it is ignored, children cannot be waited for.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            for signal in TAKEN {
                if !(signal == libc::SIGHUP && nohup) {
                    libc::sigaddset(&mut set, signal);
                }
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            // The descriptor is new and nobody else's.
            let fd = OwnedFd::from_raw_fd(fd);
            if libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before) != 0 {
                return Err(Error::last_os_error());
            }
            Ok(Self { fd, before })
        }
    }

    /// The next signal that came, if one did.
    pub(crate) fn next(&self) -> Option<i32> {
        // SAFETY: the structure is plain data; read writes at most its size into it, and
        // it is used only if all of it was written.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&info);
            let got = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (got == size as isize).then_some(info.ssi_signo as i32)
        }
    }

    /// Restores the earlier handlers of signals.
    pub(crate) fn restore(&self) {
        // SAFETY: `before` was filled by sigprocmask.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Waits until one of both can be read, or `millis` have passed; -1: however long.
pub(super) fn wait_for(signals: &Signals, pipe: Option<BorrowedFd<'_>>, millis: i32) {
    let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let pipe = pipe.map_or(-1, |p| p.as_raw_fd());
    let mut fds = [entry(signals.fd.as_raw_fd()), entry(pipe)];
    // SAFETY: the pointer and length are those of a live array; poll skips negative
    // descriptors.
    unsafe { libc::poll(fds.as_mut_ptr(), 2, millis) };
}

/// Forks. Only for a process with one thread: another thread's locks would stay
/// locked in the child for ever.
///
/// # Errors
/// The system has no process or memory left.
pub fn fork() -> Result<Forked> {
    // Buffered output would be written twice.
    let _ = std::io::Write::flush(&mut std::io::stdout());
    // SAFETY: the caller has one thread, see above, so the child is a whole copy.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// In a child: the kernel kills it when `parent` dies, however that dies. Returns
/// whether `parent` was still there.
pub(crate) fn die_with(parent: i32) -> bool {
    // SAFETY: both calls take and return numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It may have died before the kernel was told.
        libc::getppid() == parent
    }
}

/// The kernel kills the process of `command` when this process dies, however it dies.
pub fn die_with_this(command: &mut Command) {
    ostler_sim::process::takes_signals(command);
    let parent = std::process::id() as i32;
    let follow = move || match die_with(parent) {
        true => Ok(()),
        false => Err(Error::from_raw_os_error(libc::ESRCH)),
    };
    // SAFETY: between fork and exec it makes two system calls and takes no lock and no
    // memory.
    unsafe { command.pre_exec(follow) };
}

/// Sends a signal to a child that has not been waited for.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: takes two numbers; a child that has not been waited for keeps its own.
    unsafe { libc::kill(pid, signal) };
}

/// Processor time of this process and of all children that it has waited for, with
/// theirs.
pub fn processor_time_in_all() -> Duration {
    let span = |t: libc::timeval| {
        let (s, us) = (u64::try_from(t.tv_sec), u64::try_from(t.tv_usec));
        Duration::from_secs(s.unwrap_or_default()) + Duration::from_micros(us.unwrap_or_default())
    };
    let of = |who| {
        // SAFETY: the structure is plain data that getrusage fills; it fails for no
        // value of `who` that is given here.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        span(usage.ru_utime) + span(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// The end of child `pid`, if it has ended.
pub fn try_wait(pid: i32) -> Result<Option<Ended>> {
    // SAFETY: the structures are plain data that wait4 fills where it returns `pid`.
    unsafe {
        let mut status = 0;
        let mut usage: libc::rusage = std::mem::zeroed();
        match libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) {
            0 => Ok(None),
            -1 => match Error::last_os_error() {
                e if e.kind() == std::io::ErrorKind::Interrupted => Ok(None),
                e => Err(e),
            },
            _ => {
                let end = if libc::WIFSIGNALED(status) {
                    End::Signal(libc::WTERMSIG(status))
                } else {
                    End::Code(libc::WEXITSTATUS(status))
                };
                let peak = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
                Ok(Some(Ended { end, peak }))
            }
        }
    }
}

/// Ends this process by `signal`, without a second core file: as if it had been hit
/// itself. Returns where that cannot be, as for the first process of a container.
pub(super) fn die_of(signal: i32) {
    // SAFETY: the structures are plain data; the pointers are those of live values.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// `SIGSEGV`, or a number.
pub fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal)
        .map_or_else(|| format!("signal {signal}"), str::to_string)
}
