//! What the run was made with: command line, versions, hardware, source code.

use super::checkpoint::write_atomically;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// A difference to the commit larger than this is not kept (bytes).
const MAX_DIFF: usize = 8 << 20;

/// The mean return with which the run ended, where it reached its goal.
pub const REACHED: &str = "reached_return";

/// Writes `meta.json` and later completes it with what git says.
#[derive(Debug)]
pub struct MetaWriter {
    path: PathBuf,
    value: Map<String, Value>,
    git: Option<JoinHandle<()>>,
}

impl MetaWriter {
    /// Writes what is known at once; `facts` are added as they are.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(dir: &Path, facts: Map<String, Value>) -> std::io::Result<Self> {
        let mut value = Map::new();
        let line: Vec<String> = std::env::args().collect();
        value.insert("command_line".into(), json!(line));
        value.insert(
            "working_directory".into(),
            json!(std::env::current_dir().ok()),
        );
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
        let earlier = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).ok());
        if let Some(mut last) = earlier {
            let mut sessions = match last.remove("earlier_sessions") {
                Some(Value::Array(sessions)) => sessions,
                _ => Vec::new(),
            };
            sessions.push(Value::Object(last));
            value.insert("earlier_sessions".into(), Value::Array(sessions));
        }
        let writer = Self {
            path,
            value,
            git: None,
        };
        writer.write()?;
        Ok(writer)
    }

    fn write(&self) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.value)?;
        text.push(b'\n');
        write_atomically(&self.path, &text)
    }

    /// Asks git about the folder `of` in a thread of its own; it can take a second in
    /// a large repository.
    pub fn ask_git(&mut self, of: PathBuf) {
        let mut writer = Self {
            path: self.path.clone(),
            value: self.value.clone(),
            git: None,
        };
        let thread = std::thread::Builder::new()
            .name("git".into())
            .spawn(move || {
                let git = match git(&of, &writer.path.with_file_name("git.diff")) {
                    Some(git) => git,
                    None => json!(null),
                };
                writer.value.insert("git".into(), git);
                if let Err(e) = writer.write() {
                    tracing::warn!("meta.json: {e}");
                }
            });
        self.git = thread.ok();
    }

    /// Records that the goal was reached, for `--resume auto`; after [`finish`](Self::finish).
    pub fn reached(&self, value: f64) {
        let write = || {
            let text = std::fs::read(&self.path)?;
            let mut value_of: Map<String, Value> = serde_json::from_slice(&text)?;
            value_of.insert(REACHED.into(), json!(value));
            write_atomically(&self.path, &serde_json::to_vec_pretty(&value_of)?)
        };
        if let Err(e) = write() {
            tracing::warn!("meta.json: {e}");
        }
    }

    /// Waits for git's answer.
    pub fn finish(&mut self) {
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

fn git(folder: &Path, diff_file: &Path) -> Option<Value> {
    let run = |args: &[&str]| {
        let out = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        out.status.success().then_some(out.stdout)
    };
    let commit = String::from_utf8(run(&["rev-parse", "HEAD"])?).ok()?;
    let diff = run(&["diff", "HEAD", "--no-ext-diff", "--no-color"]).unwrap_or_default();
    let kept = diff.len() <= MAX_DIFF;
    if kept && !diff.is_empty() {
        let _ = write_atomically(diff_file, &diff);
    }
    Some(json!({
        "commit": commit.trim(),
        "changed": !diff.is_empty(),
        "diff": if diff.is_empty() { json!(null) }
                else if kept { json!("git.diff") }
                else { json!(format!("not kept: {} bytes", diff.len())) },
    }))
}
