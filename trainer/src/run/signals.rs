//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the run was asked to stop.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// An iteration can take minutes: without a word a second Ctrl-C would follow.
fn say() {
    const LINE: &[u8] =
        b"\nstopping: this iteration is finished and saved; once more stops at once\n";
    // SAFETY: the pointer and length are those of a constant; errno, which the
    // interrupted code may be about to read, is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(libc::STDERR_FILENO, LINE.as_ptr().cast(), LINE.len());
        *errno = before;
    }
}

impl StopFlag {
    /// A flag that SIGINT and SIGTERM raise; unless `quiet` a line says what follows.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub fn install(quiet: bool) -> std::io::Result<Self> {
        // A write beyond a limit on file sizes is then an error like a full disk, not
        // the end of the process.
        // SAFETY: signal takes two numbers; nothing else here handles this signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let flag = Self::default();
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // The order matters: a second signal finds the flag up and ends the
            // process; the first finds it down and raises it.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                super::error::INTERRUPTED,
                flag.0.clone(),
            )?;
            signal_hook::flag::register(signal, flag.0.clone())?;
            if !quiet {
                // SAFETY: the handler only calls write, which signal-safety(7) allows.
                unsafe { signal_hook::low_level::register(signal, say) }?;
            }
        }
        Ok(flag)
    }

    /// Whether a signal came.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
