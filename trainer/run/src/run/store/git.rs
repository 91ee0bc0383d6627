//! Git's answers about a configuration's folder, asked so that the repository cannot make it
//! run programs: whoever wrote a configuration may have written the repository around it.
//!
//! A repository's own configuration names programs: `core.fsmonitor`, clean filters, diff
//! drivers. A bare repository may lie inside an ordinary one (git-config(1),
//! `safe.bareRepository`). The commit is read without any of them. A diff applies filters,
//! so it is made on request alone (`log.git_diff`), and not where the repository has some.

use ostler_sim::process;
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A larger difference is not kept (bytes).
const MAX_DIFF: usize = 8 << 20;
/// How long git may take, each time it is asked.
const LIMIT: Duration = Duration::from_secs(10);
/// Keys of a repository under which programs are named, or another work tree.
const PROGRAMS: [&str; 3] = ["filter.", "diff.", "core.worktree"];

/// The commit of a folder, and its difference to that commit where it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// The commit's hash.
    pub commit: String,
    /// The diff; none if `log.git_diff` is off.
    pub diff: Option<Diff>,
}

/// Result of asking for a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Diff {
    /// As git prints it; empty where nothing has changed.
    Text(Vec<u8>),
    /// Why there is none.
    Refused(String),
}

/// Asks git about `folder`; none where git is missing or the folder is in no repository
/// that git trusts.
pub(crate) fn ask(folder: &Path, diff: bool) -> Option<State> {
    let commit = output(folder, &["rev-parse", "--verify", "HEAD"], 1 << 10).ok()?;
    let commit = String::from_utf8(commit).ok()?.trim().to_string();
    let diff = diff.then(|| difference(folder).unwrap_or_else(Diff::Refused));
    Some(State { commit, diff })
}

fn difference(folder: &Path) -> Result<Diff, String> {
    // Included files count as the one that includes them.
    let keys = ["config", "--includes", "--show-scope", "--name-only", "-z", "--list"];
    let listed = output(folder, &keys, 1 << 20)?;
    if let Some(key) = program_named(&String::from_utf8_lossy(&listed)) {
        return Err(format!(
            "the repository's own configuration sets {key}, and a diff may start what it names"
        ));
    }
    let diff = [
        "diff",
        "HEAD",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        // Git would start another one in each of them.
        "--ignore-submodules=all",
        "--",
        ".",
    ];
    output(folder, &diff, MAX_DIFF).map(Diff::Text)
}

/// The first key of the repository (scopes `local` and `worktree`) that names a program
/// or another work tree. `listed` has scope and key in turn, each ended by a NUL.
fn program_named(listed: &str) -> Option<&str> {
    let mut words = listed.split('\0');
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        let own = matches!(scope, "local" | "worktree");
        // `diff.renames` is a setting, `diff.NAME.command` a driver.
        let driver = key == "diff.external" || key.matches('.').count() > 1;
        let setting = key.starts_with("diff.") && !driver;
        if own && !setting && PROGRAMS.iter().any(|p| key.starts_with(p)) {
            return Some(key);
        }
    }
    None
}

/// Git's standard output, if it ends well, in time, with at most `most` bytes.
fn output(folder: &Path, args: &[&str], most: usize) -> Result<Vec<u8>, String> {
    let mut command = Command::new("git");
    process::takes_signals(&mut command);
    let mut child = command
        .args(["-c", "safe.bareRepository=explicit"])
        .args(["-c", "core.fsmonitor=false"])
        .args(["-c", "core.hooksPath=/dev/null"])
        .arg("-C")
        .arg(folder)
        .args(args)
        // Objects that a partial clone lacks would be fetched, by programs it names.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_PAGER", "cat")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("git does not start: {e}"))?;
    let pipe = child.stdout.take();
    let reader = std::thread::Builder::new().name("git".into()).spawn(move || {
        let mut text = Vec::new();
        if let Some(pipe) = pipe {
            // One more than allowed shows that there was more.
            pipe.take(most as u64 + 1).read_to_end(&mut text)?;
        }
        Ok::<_, std::io::Error>(text)
    });
    let reader = match reader {
        Ok(reader) => reader,
        Err(e) => {
            end(&mut child);
            return Err(format!("git cannot be read: {e}"));
        }
    };
    let until = Instant::now() + LIMIT;
    while !reader.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !reader.is_finished() {
        end(&mut child);
        return Err(format!("git took more than {} s", LIMIT.as_secs()));
    }
    let text = match reader.join() {
        Ok(Ok(text)) if text.len() <= most => text,
        Ok(Ok(_)) => {
            end(&mut child);
            return Err(format!("it has more than {most} bytes"));
        }
        _ => {
            end(&mut child);
            return Err("git cannot be read".into());
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(text),
            Ok(Some(status)) => return Err(format!("git ended with {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                end(&mut child);
                return Err(format!("git took more than {} s", LIMIT.as_secs()));
            }
        }
    }
}

/// Kills git and all that it started.
fn end(child: &mut Child) {
    crate::supervise::process::send(-(child.id() as i32), libc::SIGKILL);
    let _ = child.wait();
}

impl State {
    /// Its entry in `meta.json`; `kept` is the name of the file that holds the diff.
    pub(crate) fn describe(&self, kept: &str) -> Value {
        let diff = match &self.diff {
            None => json!(null),
            Some(Diff::Text(text)) if text.is_empty() => json!("none"),
            Some(Diff::Text(_)) => json!(kept),
            Some(Diff::Refused(why)) => json!(format!("not kept: {why}")),
        };
        json!({ "commit": self.commit, "diff": diff })
    }
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
