//! Signals: SIGINT, SIGTERM and SIGHUP ask for an orderly end, the second one ends at
//! once; SIGUSR1 asks for a checkpoint. As long as a run only begins the first one ends
//! at once too: there is nothing to save yet, and reading a large robot takes minutes.
//!
//! A thread of their own takes them. They must not interrupt a computation: some of
//! oneDNN's products (`gemm:jit`, with AVX-512) have the stack pointer in the heap, and
//! there the kernel would write ten thousand bytes of registers.

use ostler_sim::process::{give_up_after, never_give_up};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Signals that end a run.
const STOP: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Whether a signal asked this process to end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks this process to end because another that trains with it was asked to, unless it was
/// asked itself.
pub(super) fn pass_on() {
    if !ASKED.swap(true, Ordering::SeqCst) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
    }
}

/// Signals only leave a mark: another process decides.
///
/// # Errors
/// The system refuses the handlers or the thread.
pub(super) fn noted() -> std::io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in STOP {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    leave_to_a_thread()?;
    Ok(flag)
}

/// The process that passes signals on to this one; 0: none does.
static FORWARDER: AtomicI32 = AtomicI32::new(0);

/// Tells that process `pid` passes its signals on to this one.
///
/// A signal for both, as from a terminal or from SLURM, then comes twice, and the
/// second must not count as a second wish.
pub fn forwarded_from(pid: i32) {
    FORWARDER.store(pid, Ordering::Relaxed);
}

/// An iteration that takes longer after a signal is given up: who sends one kills after ten
/// seconds or so.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same after a time limit, which nobody else enforces at once.
pub(super) const LATE: Duration = Duration::from_secs(30);

/// Something is in the making: a signal is heeded when that is done.
const RUNNING: u8 = 0;
/// There is nothing yet that an end could leave half done.
const BEGINNING: u8 = 1;
/// Nothing either, but what is being done clears up behind itself.
const MINDED: u8 = 2;

/// Requests to the run.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    stop: AtomicBool,
    save: AtomicBool,
    quiet: AtomicBool,
    /// [`RUNNING`], [`BEGINNING`] or [`MINDED`].
    phase: AtomicU8,
    /// By signal of [`STOP`]: sent to this process, and passed on to it.
    counts: [[AtomicU32; 2]; STOP.len()],
}

impl Asked {
    /// In a signal handler: counts one of [`STOP`]. A signal sent to both processes
    /// counts once.
    fn stop(&self, place: usize, forwarded: bool) {
        let total = || -> u32 {
            let count = |c: &[AtomicU32; 2]| c.each_ref().map(|n| n.load(Ordering::SeqCst));
            self.counts.iter().map(|c| count(c)[0].max(count(c)[1])).sum()
        };
        let before = total();
        self.counts[place][usize::from(forwarded)].fetch_add(1, Ordering::SeqCst);
        let now = total();
        let phase = self.phase.load(Ordering::SeqCst);
        let quiet = self.quiet.load(Ordering::Relaxed);
        if phase == BEGINNING || (now >= 2 && now > before) {
            if phase == BEGINNING && !quiet {
                say(NOTHING);
            }
            signal_hook::low_level::exit(super::error::INTERRUPTED);
        }
        self.stop.store(true, Ordering::SeqCst);
        if before == 0 && phase == RUNNING && !quiet {
            say(STOPPING);
        }
    }
}

/// An iteration can take minutes: without a word a second Ctrl-C would follow.
const STOPPING: &[u8] = b"\nstopping: this iteration is finished, if it is within 5 s, and the run saved; once more stops at once\n";
const NOTHING: &[u8] = b"\nstopped: nothing was started\n";

/// In a signal handler: writes to standard error.
fn say(line: &'static [u8]) {
    // SAFETY: the pointer and length are those of a constant; errno, which the
    // interrupted code may be about to read, is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        *errno = before;
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: the structure is plain data that sigaction fills; null changes nothing.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Leaves what is taken to a thread that does nothing else. Threads that the calling one
/// starts from now on do so too.
fn leave_to_a_thread() -> std::io::Result<()> {
    static THREAD: Mutex<bool> = Mutex::new(false);
    let mut runs = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if !*runs {
        let listen = || {
            // Whoever started this program may have held them back.
            mask(libc::SIG_UNBLOCK);
            loop {
                // SAFETY: waits for a signal; takes nothing.
                unsafe { libc::pause() };
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen)?;
        *runs = true;
    }
    mask(libc::SIG_BLOCK);
    Ok(())
}

/// Lets the calling thread have the signals, or not.
fn mask(how: i32) {
    // SAFETY: a signal set is plain data that sigemptyset fills before it is read; the
    // pointers are those of live values, and null asks for nothing.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in STOP.into_iter().chain([libc::SIGUSR1]) {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

impl StopFlag {
    /// Handlers for all of them, which run in a thread of their own; unless `quiet` a line
    /// says what follows. A signal ends the process at once until [`begun`](Self::begun).
    ///
    /// Call it before there are threads that compute. Programs that are started afterwards
    /// need [`takes_signals`](ostler_sim::process::takes_signals).
    ///
    /// # Errors
    /// The system refuses the handlers or the thread.
    pub fn install(quiet: bool) -> std::io::Result<Self> {
        // A write beyond a limit on file sizes is then an error like a full disk, not
        // the end of the process.
        // SAFETY: signal takes two numbers; nothing else here handles this signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        never_give_up();
        let own = std::process::id() as i32;
        let flag = Self::default();
        flag.0.quiet.store(quiet, Ordering::Relaxed);
        flag.0.phase.store(BEGINNING, Ordering::SeqCst);
        for (place, signal) in STOP.into_iter().enumerate() {
            // `nohup` wants it so.
            if signal == libc::SIGHUP && is_ignored(signal) {
                continue;
            }
            let asked = flag.0.clone();
            let act = move |info: &libc::siginfo_t| {
                let from = FORWARDER.load(Ordering::Relaxed);
                // SAFETY: every signal has the field, zero where nobody sent it.
                let sender = unsafe { info.si_pid() };
                ASKED.store(true, Ordering::SeqCst);
                asked.stop(place, (from != 0 && sender == from) || sender == own);
                give_up_after(PATIENCE);
            };
            // SAFETY: the handler touches atomics, and calls clock_gettime, write and _exit,
            // which signal-safety(7) allows.
            unsafe { signal_hook_registry::register_sigaction(signal, act) }?;
        }
        let asked = flag.0.clone();
        let act = move || asked.save.store(true, Ordering::Relaxed);
        // SAFETY: the handler touches an atomic.
        unsafe { signal_hook::low_level::register(libc::SIGUSR1, act) }?;
        leave_to_a_thread()?;
        Ok(flag)
    }

    /// From now on a signal asks for an orderly end: something is in the making.
    pub fn begun(&self) {
        self.0.phase.store(RUNNING, Ordering::SeqCst);
    }

    /// Calls what looks for [`raised`](Self::raised) itself and clears up behind it.
    pub fn minded<T>(&self, by: impl FnOnce() -> T) -> T {
        let before = self.0.phase.swap(MINDED, Ordering::SeqCst);
        let made = by();
        self.0.phase.store(before, Ordering::SeqCst);
        made
    }

    /// Whether a signal asked for the end.
    pub fn raised(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Whether a signal asked for a checkpoint since this was asked last.
    pub fn take_save(&self) -> bool {
        self.0.save.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_for_both_processes_is_one_wish() {
        // In any order, with nothing but a flag up: a second wish would end this test.
        for order in [[false, true], [true, false]] {
            let asked = Asked::default();
            asked.quiet.store(true, Ordering::Relaxed);
            for forwarded in order {
                asked.stop(0, forwarded);
                assert!(asked.stop.load(Ordering::Relaxed));
            }
        }
    }
}
