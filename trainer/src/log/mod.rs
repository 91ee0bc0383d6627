//! Metrics, TensorBoard events, logged events, progress line, learning curve.

pub mod append;
pub mod curve;
pub mod curves;
pub mod filter;
pub mod metrics;
pub mod progress;
pub mod sinks;
pub mod tensorboard;
pub mod trace;

/// Writes a line to standard output; a closed pipe is the reader's decision, not an
/// error (`println!` would panic and end a training).
macro_rules! outln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($arg)*);
    }};
}

/// The same to standard error.
macro_rules! errln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($arg)*);
    }};
}

pub(crate) use {errln, outln};
