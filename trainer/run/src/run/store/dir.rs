//! The folder of one run: made, locked, filled with what repeats the run.
//!
//! ```text
//! runs/<name>/latest -> <date>_<time>
//! runs/<name>/<date>_<time>/
//!   config.toml       resolved configuration; training it repeats the run
//!   robot/            copies of the MJCF and all files that it names
//!   native/           copies of the headers of native functions
//!   teacher/          the run whose policy is imitated: its configuration, robot and checkpoint
//!   checkpoints/      iter_<n>.safetensors, best.safetensors
//!   metrics.jsonl     one object per iteration
//!   events.out.*      the same for TensorBoard
//!   wandb/            the same for Weights & Biases, where that is asked for
//!   log.txt           decisions and warnings
//!   meta.json         command line, versions, hardware, git commit; on request git.diff beside it
//! ```

use super::write::{make, write_atomically};
use super::{motions, native, robot, terrain};
use crate::log::tensorboard::FILE_NAME;
use crate::log::wandb;
use crate::run::error::RunError;
use ostler_collector::replay;
use ostler_learn::config::Config;
use ostler_sim::Model;
use ostler_sim::files;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the resolved configuration.
pub const CONFIG: &str = "config.toml";
/// Name of the metrics file.
pub const METRICS: &str = "metrics.jsonl";
/// Folder of all reports in a run's folder.
pub(in crate::run) const FAILURES: &str = "failure";
pub(in crate::run) const CHECKPOINTS: &str = "checkpoints";
/// The run whose policy is imitated, as it was when the run began.
pub(in crate::run) const TEACHER: &str = "teacher";
pub(in crate::run) const LOCK: &str = ".lock";
/// How long a lock is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// The link to the newest run.
const LATEST: &str = "latest";
/// All that a folder holds before its configuration is there, but for files that are not
/// finished.
pub(in crate::run) const FIRST: [&str; 7] =
    [LOCK, CHECKPOINTS, TEACHER, robot::FOLDER, native::FOLDER, terrain::FOLDER, motions::FOLDER];
/// Folders that may be there before a run, which fills them.
const FILLED: [&str; 3] = [CHECKPOINTS, FAILURES, replay::FOLDER];
/// Folders below a run's that are looked into for links.
const DEPTH: u32 = 32;

/// A run's folder, locked for as long as this value lives. Of a run that does not get as far as
/// [`RunDir::begun`] nothing is left in it.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held for its lock; the system drops it with the process, however it ends.
    lock: File,
    /// Until the run begins: what was there before it.
    before: Option<Before>,
}

/// A folder as a start found it.
#[derive(Debug)]
struct Before {
    /// Whether it was there.
    there: bool,
    entries: HashSet<OsString>,
}

impl Drop for RunDir {
    /// A start that fails says why itself: what cannot be removed stays.
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !before.entries.contains(&entry.file_name())) {
            let _ = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => std::fs::remove_dir_all(entry.path()),
                false => std::fs::remove_file(entry.path()),
            };
        }
        if !before.there {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

impl RunDir {
    /// Makes `<log.dir>/<name>/<date>_<time>` or, where given, exactly `out`.
    ///
    /// # Errors
    /// It cannot be made or written, or a run is in it already.
    pub fn create(config: &Config, out: Option<&Path>) -> Result<Self, RunError> {
        let (path, there) = match out {
            Some(out) => {
                let there = out.exists();
                make(out)?;
                (out.to_path_buf(), there)
            }
            None => {
                let parent = Path::new(&config.log.dir).join(&config.name);
                make(&parent)?;
                (fresh(&parent)?, false)
            }
        };
        let locked_before = path.join(LOCK).symlink_metadata().is_ok();
        let mut dir = Self::lock(&path)?;
        // Nobody else writes there from now on.
        let entries = std::fs::read_dir(&path).map_err(RunError::file("read", &path))?;
        let entries = entries.flatten().map(|entry| entry.file_name());
        let entries = entries.filter(|name| locked_before || name != LOCK).collect();
        dir.before = Some(Before { there, entries });
        if out.is_some() {
            dir.refuse_if_used()?;
        }
        make(&dir.checkpoints())?;
        Ok(dir)
    }

    /// The run begins: its folder stays, and is the `latest` of those beside it where `config`
    /// names it.
    pub fn begun(&mut self, config: &Config) {
        let parent = Path::new(&config.log.dir).join(&config.name);
        if self.before.take().is_some() && self.path.parent() == Some(&parent) {
            link_latest(&parent, &self.path);
        }
    }

    /// A folder may hold other things, but nothing that this run would overwrite.
    fn refuse_if_used(&self) -> Result<(), RunError> {
        let folder = self.path.display();
        let resumable = !super::keep::list(&self.checkpoints()).is_empty();
        Err(RunError::Usage(if self.path.join(CONFIG).exists() {
            match resumable {
                true => format!(
                    "{folder} already holds a run: go on with it by --resume {folder}, or choose another --out"
                ),
                false => format!(
                    "{folder} already holds a run, one without a checkpoint: remove the folder or choose another --out"
                ),
            }
        } else {
            let copies = [robot::FOLDER, native::FOLDER, terrain::FOLDER, motions::FOLDER];
            let ours = [METRICS, "log.txt", "meta.json", FILE_NAME].into_iter().chain(copies);
            // A link counts, wherever it leads.
            let there = |name: &&str| self.path.join(name).symlink_metadata().is_ok();
            let mut found = ours.filter(there);
            match found.next() {
                Some(name) => format!(
                    "{folder} holds a {name} that this run would overwrite: choose another --out"
                ),
                None if resumable => {
                    format!("{folder} holds checkpoints but no {CONFIG}: choose another --out")
                }
                None => match FILLED.iter().find_map(|n| self.link_at(n)) {
                    Some(link) => format!(
                        "{} is a link, and a run does not write through links: choose another --out",
                        link.display()
                    ),
                    None => return Ok(()),
                },
            }
        }))
    }

    /// The first link in a part of the folder, which may be one itself.
    fn link_at(&self, part: &str) -> Option<PathBuf> {
        let part = self.path.join(part);
        match part.is_symlink() {
            true => Some(part),
            false => files::link_below(&part, DEPTH),
        }
    }

    /// Takes the folder of an earlier run.
    ///
    /// # Errors
    /// It cannot be written, another process runs in it, or there are links in it: whoever
    /// made the folder would decide what this process overwrites.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        if let Some(link) = link_in(path) {
            return Err(RunError::Usage(format!(
                "{} is a link, and a run does not write through links: put what it leads to in its place",
                link.display()
            )));
        }
        let dir = Self::lock(path)?;
        make(&dir.checkpoints())?;
        for folder in [dir.path(), &dir.checkpoints()] {
            files::remove_leftovers(folder);
        }
        Ok(dir)
    }

    fn lock(path: &Path) -> Result<Self, RunError> {
        let name = path.join(LOCK);
        let file = files::update(&name).map_err(RunError::file("write", &name))?;
        // A run that was killed a moment ago may not be gone yet.
        let until = Instant::now() + LOCK_WAIT;
        let locked = loop {
            match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => break result,
            }
        };
        match locked {
            Ok(()) => Ok(Self { path: path.to_path_buf(), lock: file, before: None }),
            Err(std::fs::TryLockError::WouldBlock) => Err(RunError::Usage(format!(
                "{} is in use by another process: wait for it to end, or choose another folder",
                path.display()
            ))),
            Err(std::fs::TryLockError::Error(e)) => Err(RunError::file("lock", &name)(e)),
        }
    }

    /// Whether the path still leads to the folder that this process has locked; asked before
    /// anything is written there. A lock that was deleted, with the folder or without it, is
    /// made again; of a folder that was moved this value is the new path's from now on.
    ///
    /// # Errors
    /// [`RunError::Taken`] where it leads to another one's lock, [`RunError::Moved`].
    pub fn still_ours(&mut self) -> Result<(), RunError> {
        let name = self.path.join(LOCK);
        let id = |m: &Metadata| (m.dev(), m.ino());
        // A file system that does not answer says so where it is written to.
        let Ok(own) = self.lock.metadata() else {
            return Ok(());
        };
        match name.symlink_metadata() {
            Ok(now) if id(&now) == id(&own) => return Ok(()),
            Ok(_) => return Err(self.taken()),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(_) => return Ok(()),
        }
        let link = format!("/proc/self/fd/{}", self.lock.as_raw_fd());
        let now = std::fs::read_link(link).unwrap_or_default();
        if now.ends_with(LOCK)
            && now.symlink_metadata().is_ok_and(|m| id(&m) == id(&own))
            && let Some(to) = now.parent()
        {
            let from = std::mem::replace(&mut self.path, to.to_path_buf());
            let to = to.to_path_buf();
            return Err(RunError::Moved { from, to });
        }
        let _ = std::fs::create_dir_all(&self.path);
        match files::create(&name) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(self.taken()),
            Err(_) => return Ok(()),
            Ok(file) => match file.try_lock() {
                Ok(()) => self.lock = file,
                // Somebody was faster.
                Err(_) => return Err(self.taken()),
            },
        }
        tracing::warn!("{} vanished and is made again", name.display());
        Ok(())
    }

    fn taken(&self) -> RunError {
        RunError::Taken(self.path.clone())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where checkpoints go.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// Writes the resolved configuration, with its robot in the run's own copy; its text.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write_config(&self, config: &Config, model: &Model) -> Result<String, RunError> {
        self.write_config_into(&self.path, config, model)
    }

    /// The same into another folder, from which it can be used as well.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write_config_into(
        &self,
        folder: &Path,
        config: &Config,
        model: &Model,
    ) -> Result<String, RunError> {
        let mut config = config.clone();
        let copies = robot::copy(folder, model)?;
        config.task.robot = copies.main;
        if copies.spread || config.task.robot_folder.is_some() {
            config.task.robot_folder = Some(robot::FOLDER.into());
        }
        native::copy(folder, &mut config.task)?;
        terrain::copy(folder, &mut config.task)?;
        motions::copy(folder, &mut config.task)?;
        let body = toml::to_string(&config)
            .map_err(|e| RunError::Usage(format!("the configuration cannot be written: {e}")))?;
        let text = format!(
            "# Resolved configuration: every default and every \"auto\" is spelt out.\n\
             # `ostler train` with this file repeats the run.\n\n{body}"
        );
        let path = folder.join(CONFIG);
        write_atomically(&path, text.as_bytes()).map_err(RunError::file("write", &path))?;
        Ok(text)
    }
}

/// The first link in a run's folder. The client of Weights & Biases makes some in its own, where
/// nothing else writes; they are taken away before it is started.
fn link_in(path: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        match kind.is_dir() && entry.file_name() != wandb::FOLDER {
            true => files::link_below(&entry.path(), DEPTH - 1),
            false => kind.is_symlink().then(|| entry.path()),
        }
    });
    found.next()
}

/// A new folder named by the local date and time.
fn fresh(parent: &Path) -> Result<PathBuf, RunError> {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d_%H-%M-%S").to_string();
    for attempt in 1..1000 {
        let name = match attempt {
            1 => now.clone(),
            n => format!("{now}_{n}"),
        };
        let path = parent.join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(RunError::file("make the folder", &path)(e)),
        }
    }
    Err(RunError::Usage(format!("{} holds too many runs of this second", parent.display())))
}

/// Points `latest` at the newest run; a convenience, so failing only warns. What is there
/// and no link to a run beside it stays.
fn link_latest(parent: &Path, path: &Path) {
    let Some(name) = path.file_name() else { return };
    let latest = parent.join(LATEST);
    if latest.symlink_metadata().is_ok() && !is_ours(&latest) {
        tracing::warn!("{} is no link to a run: it stays as it is", latest.display());
        return;
    }
    let temporary = parent.join(format!(".latest.{}.tmp", std::process::id()));
    let _ = std::fs::remove_file(&temporary);
    let linked = std::os::unix::fs::symlink(name, &temporary)
        .and_then(|()| std::fs::rename(&temporary, &latest));
    if let Err(e) = linked {
        tracing::warn!("cannot point {}/latest at this run: {e}", parent.display());
    }
}

/// Whether this is a link to a folder beside it, as [`link_latest`] makes them.
fn is_ours(latest: &Path) -> bool {
    std::fs::read_link(latest).is_ok_and(|target| {
        let mut parts = target.components();
        matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
    })
}

#[cfg(test)]
#[path = "dir_tests.rs"]
mod tests;
