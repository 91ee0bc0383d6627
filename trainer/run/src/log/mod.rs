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

/// Writes a line to standard output; a closed pipe is the reader's decision, not an
/// error (`println!` would panic and end a run).
///
/// Lines may hold names from files of others: control characters are escaped.
#[macro_export]
macro_rules! outln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($arg)*);
        let _ = writeln!(std::io::stdout().lock(), "{}", $crate::log::harmless::escaped(&text));
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

pub use crate::{errln, outln};
