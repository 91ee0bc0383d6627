//! Origin of a run: command line, versions, hardware, source code.

use super::git::{self, Diff};
use super::write::write_atomically;
use ostler_sim::files;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A file longer than this is not one of ours (bytes).
pub(crate) const MOST: u64 = 16 << 20;

/// Changes that git finds, if `log.git_diff` is on.
const DIFF: &str = "git.diff";

/// The mean return with which the run ended, where it reached its goal.
pub(crate) const REACHED: &str = "reached_return";

/// Writes `meta.json` and later completes it with what git says.
#[derive(Debug)]
pub(crate) struct MetaWriter {
    path: PathBuf,
    value: Arc<Mutex<Map<String, Value>>>,
    git: Option<JoinHandle<()>>,
}

impl MetaWriter {
    /// Writes what is known at once; `facts` are added as they are.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn create(dir: &Path, facts: Map<String, Value>) -> std::io::Result<Self> {
        let mut value = Map::new();
        let line: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        value.insert("command_line".into(), json!(line));
        value.insert("working_directory".into(), json!(std::env::current_dir().ok()));
        value.insert("started".into(), json!(jiff::Zoned::now().to_string()));
        value.insert(
            "versions".into(),
            json!({
                "ostler": env!("CARGO_PKG_VERSION"),
                "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
            }),
        );
        value.insert("hardware".into(), hardware());
        value.extend(facts);
        let path = dir.join("meta.json");
        // Each session of a resumed run keeps what the ones before it recorded.
        let read = files::read(&path, MOST).ok();
        let earlier = read
            .as_ref()
            .and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(bytes).ok());
        if let (Some(bytes), None) = (&read, &earlier) {
            let aside = path.with_extension("damaged");
            files::replace(&aside, files::SHARED, bytes)?;
            tracing::warn!(
                "{} cannot be read: it is kept as {}, and what earlier sessions recorded is missing",
                path.display(),
                aside.display()
            );
        }
        if let Some(mut last) = earlier {
            let mut sessions = match last.remove("earlier_sessions") {
                Some(Value::Array(sessions)) => sessions,
                _ => Vec::new(),
            };
            sessions.push(Value::Object(last));
            value.insert("earlier_sessions".into(), Value::Array(sessions));
        }
        let writer = Self { path, value: Arc::new(Mutex::new(value)), git: None };
        writer.write()?;
        Ok(writer)
    }

    fn write(&self) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&*self.value())?;
        text.push(b'\n');
        write_atomically(&self.path, &text)
    }

    fn value(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes it again if it was deleted.
    pub(crate) fn restore(&self) {
        // Its folder may have been moved.
        let there = |path: &Path| path.symlink_metadata().is_ok();
        if there(&self.path) || !self.path.parent().is_some_and(there) {
            return;
        }
        match self.write() {
            Ok(()) => tracing::warn!("meta.json vanished from the run's folder: made again"),
            Err(e) => tracing::warn!("meta.json vanished and cannot be made again: {e}"),
        }
    }

    /// Asks git about the folder `of` in a thread of its own, for its `diff`, too, where
    /// that is wanted: it can take a second in a large repository.
    pub(crate) fn ask_git(&mut self, of: PathBuf, diff: bool) {
        let writer = Self { path: self.path.clone(), value: Arc::clone(&self.value), git: None };
        let thread = std::thread::Builder::new().name("git".into()).spawn(move || {
            let state = git::ask(&of, diff);
            if let Some(Diff::Text(text)) = state.as_ref().and_then(|s| s.diff.as_ref())
                && !text.is_empty()
                && let Err(e) =
                    files::replace(&writer.path.with_file_name(DIFF), files::PRIVATE, text)
            {
                tracing::warn!("{DIFF}: {e}");
            }
            let said = state.map_or(json!(null), |s| s.describe(DIFF));
            writer.value().insert("git".into(), said);
            if let Err(e) = writer.write() {
                tracing::warn!("meta.json: {e}");
            }
        });
        self.git = thread.ok();
    }

    /// Records that the goal was reached, for `--resume auto`; after [`finish`](Self::finish).
    pub(crate) fn reached(&self, value: f64) {
        self.value().insert(REACHED.into(), json!(value));
        if let Err(e) = self.write() {
            tracing::warn!("meta.json: {e}");
        }
    }

    /// Waits for git's answer.
    pub(crate) fn finish(&mut self) {
        if let Some(thread) = self.git.take() {
            let _ = thread.join();
        }
    }
}

fn hardware() -> Value {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        text.lines()
            .find(|l| l.starts_with(key))
            .and_then(|l| l.split(':').nth(1))
            .map(|v| v.trim().to_string())
    };
    json!({
        "processor": field(&read("/proc/cpuinfo"), "model name"),
        "cores": ostler_sim::physics::pool::Pool::available(),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "host": read("/proc/sys/kernel/hostname").trim(),
        "system": read("/proc/sys/kernel/osrelease").trim(),
    })
}
