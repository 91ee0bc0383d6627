//! Structured events: everything into the run's `log.txt`, warnings to standard
//! error too.

use std::fs::{File, OpenOptions};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Name of the log.
pub const LOG: &str = "log.txt";

/// Standard error; on a terminal the progress bar is wiped away first.
#[derive(Debug, Default)]
struct Clear;

impl std::io::Write for Clear {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut out = std::io::stderr().lock();
        if out.is_terminal() {
            out.write_all(b"\r\x1b[2K")?;
        }
        out.write_all(line).map(|()| line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

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
    // no-color.org: colours on a terminal only, and not where NO_COLOR is set.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let to_stderr = fmt::layer()
        .with_ansi(std::io::stderr().is_terminal() && !no_color)
        .without_time()
        .with_target(false)
        .with_writer(Clear::default)
        .with_filter(LevelFilter::WARN);
    let _ = tracing_subscriber::registry()
        .with(to_file)
        .with(to_stderr)
        .try_init();
    Ok(())
}
