//! Structured events: those that the filter lets through go into the run's `log.txt`, the
//! warnings among them to standard error too.

use super::{append, harmless};
use ostler_learn::config::filter::{self, FilterError};
use ostler_learn::config::{LogConfig, LogFormat};
use ostler_sim::files;
use std::fmt::Debug;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{FilterExt, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, fmt};

/// Name of the log, in either format.
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

/// The log of the process's run.
static LOGGED: Mutex<Option<(PathBuf, File)>> = Mutex::new(None);

fn logged() -> MutexGuard<'static, Option<(PathBuf, File)>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes into that log.
#[derive(Debug, Default)]
struct Logged;

impl std::io::Write for Logged {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match &mut *logged() {
            Some((_, file)) => file.write_all(line).map(|()| line.len()),
            None => Ok(line.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes the run's log again if it was deleted; whether it was.
///
/// # Errors
/// The file system's.
pub fn restore() -> std::io::Result<bool> {
    match &mut *logged() {
        Some((path, file)) => append::restore(path, file, u64::MAX),
        None => Ok(false),
    }
}

/// Why events cannot be logged.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    File(#[from] std::io::Error),
}

/// A field as text: names from files of others may be in it.
fn field(to: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = format!("{value:?}");
    let text = harmless::record(&text);
    match field.name() {
        "message" => to.write_str(&text),
        name => write!(to, "{name}={text}"),
    }
}

/// Lines of text, or a JSON object a line: level, message, fields, and the span with
/// the iteration. `aside`: to standard error, coloured on a terminal, text without times.
fn lines<S, W>(log: &LogConfig, writer: W, aside: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // no-color.org: colours on a terminal only, and not where NO_COLOR is set.
    let no_color = || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let ansi = aside && std::io::stderr().is_terminal() && !no_color();
    let all = fmt::layer().with_writer(writer);
    match log.format {
        LogFormat::Json => {
            all.with_ansi(false).json().flatten_event(true).with_span_list(false).boxed()
        }
        LogFormat::Text => {
            // Who chooses among modules wants to see their names.
            let text = all.with_ansi(ansi).with_target(log.level.contains('='));
            let text = text.fmt_fields(debug_fn(field).delimited(" "));
            match aside {
                true => text.without_time().boxed(),
                false => text.boxed(),
            }
        }
    }
}

/// Directs events to `dir/log.txt` and warnings to standard error, for the rest of
/// the process. A second call in one process changes nothing.
///
/// # Errors
/// The file cannot be opened; `log.level` cannot be read.
pub fn install(dir: &Path, log: &LogConfig) -> Result<(), TraceError> {
    let path = dir.join(LOG);
    let file = files::append(&path).map_err(files::named(&path))?;
    let wanted = filter::parse(&log.level)?;
    let warnings = wanted.clone().and(LevelFilter::WARN);
    // The file's first: both write the span as the first of them formats it, and the
    // file's has no colours.
    let set = tracing_subscriber::registry()
        .with(lines(log, Logged::default, false).with_filter(wanted))
        .with(lines(log, Clear::default, true).with_filter(warnings))
        .try_init();
    if set.is_ok() {
        *logged() = Some((path, file));
    }
    Ok(())
}

/// Directs events that `level` lets through to standard error: for commands without a run.
///
/// # Errors
/// `level` cannot be read.
pub fn to_stderr(level: &str) -> Result<(), FilterError> {
    let log = LogConfig { level: level.into(), ..LogConfig::default() };
    let wanted = filter::parse(level)?;
    let _ = tracing_subscriber::registry()
        .with(lines(&log, Clear::default, true).with_filter(wanted))
        .try_init();
    Ok(())
}

/// A warning of the supervising process as the log has lines.
pub fn supervisors(format: LogFormat, line: &str) -> String {
    let now = jiff::Timestamp::now();
    match format {
        LogFormat::Text => format!("{now:.6}  WARN supervisor: {}", harmless::record(line)),
        LogFormat::Json => serde_json::json!({
            "timestamp": format!("{now:.6}"),
            "level": "WARN",
            "message": line,
            "target": "supervisor",
        })
        .to_string(),
    }
}
