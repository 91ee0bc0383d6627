//! Structured events: everything into the run's `log.txt`, warnings to standard
//! error too.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Name of the log.
pub const LOG: &str = "log.txt";

/// Directs events to `dir/log.txt` and warnings to standard error, for the rest of
/// the process. A second call in one process changes nothing.
///
/// # Errors
/// The file cannot be opened.
pub fn install(dir: &Path) -> std::io::Result<()> {
    let file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(LOG))?;
    let to_file = fmt::layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(Mutex::new(file))
        .with_filter(LevelFilter::INFO);
    let to_stderr = fmt::layer()
        .without_time()
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_filter(LevelFilter::WARN);
    let _ = tracing_subscriber::registry()
        .with(to_file)
        .with(to_stderr)
        .try_init();
    Ok(())
}
