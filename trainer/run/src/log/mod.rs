//! Metrics, TensorBoard events, Weights & Biases, logged events, progress line, learning curve.

pub mod append;
pub mod curve;
pub mod curves;
pub mod harmless;
pub mod lines;
pub mod metrics;
pub mod progress;
pub mod sinks;
pub mod tensorboard;
pub mod trace;
pub mod wandb;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Writes a line to standard output; a closed pipe is the reader's decision, not an
/// error (`println!` would panic and end a run).
///
/// Lines may hold names from files of others: control characters are escaped.
#[macro_export]
macro_rules! outln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($arg)*);
        let text = $crate::log::harmless::escaped(&text);
        let written = writeln!(std::io::stdout().lock(), "{text}");
        $crate::log::note_written(&written);
    }};
}

/// The same to standard error, for messages: lines that no reader would read to their end
/// are cut.
#[macro_export]
macro_rules! errln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($arg)*);
        let text = $crate::log::harmless::cut(&text);
        let _ = writeln!(std::io::stderr().lock(), "{}", $crate::log::harmless::escaped(&text));
    }};
}

/// What was to be printed could not be.
static NOT_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Notes whether a line was written: a full disk is said once. Whoever reads no further, such as
/// `head`, has what he wanted.
pub fn note_written(written: &std::io::Result<()>) {
    if let Err(e) = written
        && e.kind() != std::io::ErrorKind::BrokenPipe
        && !NOT_WRITTEN.swap(true, Relaxed)
    {
        errln!("error: standard output cannot be written to: {e}");
    }
}

/// Whether all that was to be printed was.
pub fn all_written() -> bool {
    !NOT_WRITTEN.load(Relaxed)
}

pub use crate::{errln, outln};
