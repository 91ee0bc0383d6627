//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the run was asked to stop.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that SIGINT and SIGTERM raise.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub fn install() -> std::io::Result<Self> {
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
        }
        Ok(flag)
    }

    /// Whether a signal came.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
