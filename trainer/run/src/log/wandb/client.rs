//! The client's process. Its other side is `python/ostler/wandb.py`, as a program.

use super::{WandbConfig, WandbMode};
use ostler_collector::pipes::Piped;
use ostler_sim::files;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("../../../../../python/ostler/wandb.py");
/// Folder of all that the client writes, in the run's own; in it the run's name there.
pub(crate) const FOLDER: &str = "wandb";
const ID: &str = "run-id";
/// Characters of a run's name there, as Weights & Biases makes them.
const ID_LENGTH: usize = 8;
/// Folders below it that are looked into.
const DEPTH: u32 = 8;
/// The longest line that the client answers with (bytes).
const LONGEST_LINE: usize = 1 << 16;
/// Of what the client printed, so much is shown (bytes).
const SHOWN: i64 = 1000;

/// Why there is no client, or none any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot start {python}: {source}; log.wandb.python names a Python that has wandb")]
    Start { python: String, source: std::io::Error },
    /// It has no client.
    #[error(
        "{python} has no client ({why}): {python} -m pip install wandb, or name a Python that has it in log.wandb.python"
    )]
    Missing { python: String, why: String },
    /// The client's own words.
    #[error("the client refuses: {why}{}", remedy(.why))]
    Refused { why: String },
    /// It ended or hangs.
    #[error("the client {why}{words}")]
    Gone { why: String, words: String },
}

/// What helps against the commonest refusals.
fn remedy(why: &str) -> &'static str {
    let asks = ["api_key", "API key", "login", "permission"];
    match asks.iter().any(|word| why.contains(word)) {
        true => "; `wandb login` gives it an account, log.wandb.mode = \"offline\" needs none",
        false => "",
    }
}

/// What it is to begin with.
#[derive(Debug)]
pub(crate) struct Begin {
    python: String,
    request: Value,
    timeout: Duration,
}

impl Begin {
    /// For a run in `folder`.
    ///
    /// # Errors
    /// The file with the run's name there can neither be read nor written.
    pub(crate) fn new(
        config: &WandbConfig,
        folder: &Path,
        default_project: &str,
        all: Value,
    ) -> std::io::Result<Self> {
        let folder = std::path::absolute(folder)?;
        let own = folder.join(FOLDER);
        if own.is_symlink() {
            let why = format!("{} is a link", own.display());
            return Err(std::io::Error::other(why));
        }
        std::fs::create_dir_all(&own)?;
        unlink(&own, DEPTH);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
        let last = folder.file_name().map(|n| n.to_string_lossy().into_owned());
        let request = json!({
            "mode": config.mode,
            "project": some(&config.project).unwrap_or_else(|| default_project.to_string()),
            "name": some(&config.name).or(last),
            "entity": some(&config.entity),
            "group": some(&config.group),
            "tags": config.tags,
            // The client makes a folder of this name in it.
            "dir": folder,
            "id": id(&own.join(ID))?,
            "resume": config.mode == WandbMode::Online,
            "timeout": config.timeout_s,
            "process": std::process::id(),
            "config": all,
        });
        Ok(Self {
            python: config.python.clone(),
            request,
            timeout: Duration::from_secs_f64(config.timeout_s),
        })
    }
}

/// Removes links below a folder: whoever made them would decide where the client writes.
fn unlink(folder: &Path, depth: u32) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => {
                let _ = std::fs::remove_file(entry.path());
            }
            Ok(kind) if kind.is_dir() && depth > 0 => unlink(&entry.path(), depth - 1),
            _ => {}
        }
    }
}

/// The run's name at Weights & Biases: that of the file, or a new one, which is kept there.
fn id(file: &Path) -> std::io::Result<String> {
    let plain = |id: &&str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        !id.is_empty() && id.len() <= 64 && id.chars().all(fits)
    };
    let kept = files::read(file, 1000).unwrap_or_default();
    if let Some(id) = std::str::from_utf8(&kept).ok().map(str::trim).filter(plain) {
        return Ok(id.to_string());
    }
    let mut random = fastrand::Rng::new();
    let new: String = (0..ID_LENGTH).map(|_| random.digit(36)).collect();
    files::replace(file, files::SHARED, new.as_bytes())?;
    Ok(new)
}

/// The process.
#[derive(Debug)]
pub(crate) struct Client {
    piped: Piped,
    python: String,
    /// Its standard error.
    errors: File,
    timeout: Duration,
}

/// Its first line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reply {
    Ready { id: String, url: Option<String> },
    Error { error: String, missing: bool },
}

impl Client {
    /// Starts it; [`ready`](Self::ready) waits for it.
    ///
    /// # Errors
    /// There is no such Python.
    pub(crate) fn start(begin: &Begin) -> Result<Self, Fault> {
        let at = |source| Fault::Start { python: begin.python.clone(), source };
        let errors = tempfile::tempfile().map_err(at)?;
        let mut command = ostler_sim::python::text(&begin.python, SCRIPT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(errors.try_clone().map_err(at)?);
        // Neither do the programs that it starts import from where the user stands.
        command.current_dir("/");
        // Ctrl-C is the run's, which has more to say to it.
        command.process_group(0);
        let child = command.spawn().map_err(at)?;
        let mut client = Self {
            piped: Piped::of(child).map_err(at)?,
            python: begin.python.clone(),
            errors,
            timeout: begin.timeout,
        };
        let line = format!("{}\n", begin.request);
        // One that has ended already says why in what it wrote.
        let _ = client.piped.write(line.as_bytes(), client.until());
        Ok(client)
    }

    /// The process, for somebody else to end it.
    pub(crate) fn handle(&self) -> Option<OwnedFd> {
        let pid = rustix::process::Pid::from_child(&self.piped.child);
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    }

    /// Waits until it has begun.
    ///
    /// # Errors
    /// It has no client of Weights & Biases, which refuses, or does not answer.
    pub(crate) fn ready(&mut self) -> Result<(), Fault> {
        // It has a time limit of its own, and says more about what took so long.
        let until = self.until() + Duration::from_secs(5);
        let line = self.piped.line(LONGEST_LINE, until);
        let line = line.map_err(|e| self.gone(&e))?;
        match serde_json::from_slice(&line) {
            Ok(Reply::Ready { id, url }) => {
                let at = url.map_or(String::new(), |url| format!(", {url}"));
                tracing::info!("log.wandb: run {id}{at}");
                Ok(())
            }
            Ok(Reply::Error { error: why, missing }) => Err(match missing {
                true => Fault::Missing { python: self.python.clone(), why },
                false => Fault::Refused { why },
            }),
            Err(e) => Err(Fault::Gone {
                why: format!("said what makes no sense: {e}"),
                words: String::new(),
            }),
        }
    }

    /// Hands it the line of an iteration, with its end.
    ///
    /// # Errors
    /// It is gone, or takes nothing any more.
    pub(crate) fn send(&mut self, line: &str) -> Result<(), Fault> {
        let until = self.until();
        let written = self.piped.write(line.as_bytes(), until);
        written.map_err(|e| self.gone(&e))
    }

    /// Tells it how the run ended and waits until it has finished.
    ///
    /// # Errors
    /// It is gone, refuses, or does not finish.
    pub(crate) fn finish(mut self, code: i32) -> Result<(), Fault> {
        self.send(&format!("{{\"exit\":{code}}}\n"))?;
        self.piped.close();
        let until = self.until() + Duration::from_secs(5);
        let line = self.piped.line(LONGEST_LINE, until);
        let line = line.map_err(|e| self.gone(&e))?;
        match serde_json::from_slice(&line) {
            Ok(Reply::Error { error: why, .. }) => Err(Fault::Refused { why }),
            _ => Ok(()),
        }
    }

    fn until(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// What became of it, with the last that it printed.
    fn gone(&mut self, e: &std::io::Error) -> Fault {
        let mut why = self.piped.said(e);
        if e.kind() == std::io::ErrorKind::TimedOut {
            why = format!(
                "does not answer for {} s (log.wandb.timeout_s)",
                self.timeout.as_secs_f64()
            );
        }
        let mut words = String::new();
        let length = self.errors.seek(SeekFrom::End(0)).unwrap_or(0);
        let from = length.saturating_sub(SHOWN as u64);
        if self.errors.seek(SeekFrom::Start(from)).is_ok() {
            let mut bytes = Vec::new();
            let _ = (&self.errors).take(SHOWN as u64).read_to_end(&mut bytes);
            words = String::from_utf8_lossy(&bytes).trim().replace('\n', " | ");
        }
        if !words.is_empty() {
            words = format!("; it printed: {words}");
        }
        Fault::Gone { why, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn begin(folder: &Path) -> std::io::Result<Begin> {
        Begin::new(&WandbConfig::default(), folder, "task", json!({}))
    }

    #[test]
    fn the_run_is_asked_for_by_the_words_of_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let request = |config: &WandbConfig| {
            Begin::new(config, dir.path(), "task", json!({})).unwrap().request
        };
        let plain = request(&WandbConfig::default());
        assert_eq!([&plain["entity"], &plain["group"]], [&json!(null); 2]);
        let config = WandbConfig {
            entity: "lab".into(),
            group: "seeds".into(),
            name: "first".into(),
            ..WandbConfig::default()
        };
        let asked = request(&config);
        assert_eq!([&asked["entity"], &asked["group"], &asked["name"]], ["lab", "seeds", "first"]);
        assert_eq!(asked["project"], "task");
    }

    #[test]
    fn a_runs_name_there_stays_and_a_damaged_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let id = || begin(dir.path()).unwrap().request["id"].clone();
        let first = id();
        assert_eq!(id(), first);
        let file = dir.path().join("wandb/run-id");
        for damaged in ["", "../x", "A b", &"x".repeat(2000)] {
            std::fs::write(&file, damaged).unwrap();
            let new = id();
            assert_eq!(new.as_str().unwrap().len(), ID_LENGTH);
            assert!(new != first && id() == new);
        }
    }

    #[test]
    fn the_client_writes_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("run/wandb/offline-run-1/logs");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(dir.path().join("precious")).unwrap();
        symlink(dir.path().join("precious"), inner.join("debug-core.log")).unwrap();
        begin(&dir.path().join("run")).unwrap();
        assert!(!inner.join("debug-core.log").is_symlink());
        assert!(dir.path().join("precious").is_dir());
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        symlink(dir.path().join("precious"), other.join("wandb")).unwrap();
        assert!(begin(&other).unwrap_err().to_string().contains("is a link"));
    }
}
