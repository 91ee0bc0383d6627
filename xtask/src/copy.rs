//! A copy of the checkout, for what must not be built in it.

use crate::place::{Place, REFEREE};
use crate::{SetupError, cargo, referee};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Files that git knows.
pub(crate) fn tracked(root: &Path) -> Result<Vec<String>, SetupError> {
    let out = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    let out = out.map_err(SetupError::io("start", "git"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect())
}

/// `text` with `to` in the place of `from`, which stands there once; else how often it does.
pub(crate) fn replaced(text: &str, from: &str, to: &str) -> Result<String, usize> {
    match text.matches(from).count() {
        1 => Ok(text.replacen(from, to, 1)),
        count => Err(count),
    }
}

/// The tracked files as they are, in `target/mutants`, where they may be changed and built.
pub(crate) struct Copy {
    pub root: PathBuf,
    pub files: Vec<String>,
    place: Place,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Copy {
    pub(crate) fn new(place: &Place) -> Result<Self, SetupError> {
        let folder = place.root.join("target/mutants");
        let root = folder.join("checkout");
        let files = tracked(&place.root)?;
        let write = |path: &Path, text: &[u8]| {
            // What is the same keeps its time: cargo builds it no second time.
            if fs::read(path).is_ok_and(|there| there == text) {
                return Ok(());
            }
            let parent = path.parent().unwrap_or(&root);
            fs::create_dir_all(parent).and_then(|()| fs::write(path, text))
        };
        for file in &files {
            let from = place.root.join(file);
            // One that is deleted and not yet committed is none.
            let Ok(text) = fs::read(&from) else { continue };
            let to = root.join(file);
            write(&to, &text).map_err(SetupError::io("write", &to))?;
        }
        let link = root.join(".libtorch");
        if !link.exists() {
            let from = place.root.join(".libtorch");
            std::os::unix::fs::symlink(from, &link).map_err(SetupError::io("link", &link))?;
        }
        let mut variables = Vec::new();
        if let Ok(python) = referee::ensure(place) {
            variables.push((REFEREE, python));
        }
        if std::env::var_os("CARGO_TARGET_DIR").is_none() {
            variables.push(("CARGO_TARGET_DIR", folder.join("target")));
        }
        let place = Place { root: root.clone(), ..place.clone() };
        Ok(Self { root, files, place, variables })
    }

    /// Whether the tests pass; none: they have not ended by then.
    pub(crate) fn test(
        &self,
        tests: &[String],
        more: &[&str],
        limit: Option<Duration>,
    ) -> Result<Option<bool>, SetupError> {
        let mut command = cargo::command(&self.place);
        command.args(["test", "--quiet"]).args(more).args(tests);
        command.env("CARGO_INCREMENTAL", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().map_err(SetupError::io("start", "cargo"))?;
        let began = Instant::now();
        loop {
            let ended = child.try_wait().map_err(SetupError::io("wait for", "cargo"))?;
            if let Some(status) = ended {
                return Ok(Some(status.success()));
            }
            if limit.is_some_and(|limit| began.elapsed() > limit) {
                // cargo and all that it started.
                if let Ok(group) = i32::try_from(child.id()) {
                    // SAFETY: the group of a child that has not been waited for.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                }
                let _ = child.wait();
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
