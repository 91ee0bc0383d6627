//! The files of a run: its folder, configuration, checkpoints, origin; and how little it
//! writes where its disk is nearly full.

pub mod checkpoint;
pub mod dir;
pub(in crate::run) mod error;
mod git;
pub(in crate::run) mod hash;
pub mod keep;
pub(crate) mod meta;
mod motions;
mod native;
mod robot;
mod terrain;
mod thrift;
pub(in crate::run) mod write;

use super::error::RunError;
use crate::log::sinks::Sinks;
use checkpoint::Checkpoint;
use dir::{CONFIG, RunDir};
use meta::MetaWriter;
use ostler_collector::replay::Saved;
use ostler_learn::config::Config;
use ostler_learn::learner::Remembers;
use ostler_machine::memory::{MemoryMonitor, Pressure};
use ostler_sim::Model;
use ostler_sim::files;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thrift::Thrift;

/// A checkpoint is written at least this often, so that little is lost to a kill.
const AUTOSAVE: Duration = Duration::from_secs(60);

/// The files of a run.
pub(super) struct Store {
    dir: RunDir,
    /// The text of `config.toml`, and the hash of the robot's files.
    pub config: String,
    pub sources: String,
    thrift: Thrift,
    meta: MetaWriter,
    /// The folder that git is asked about, until it has been.
    git_folder: Option<PathBuf>,
    /// When a checkpoint was written, or tried to be.
    saved: Instant,
    /// The iteration of the newest checkpoint.
    saved_iteration: Option<u64>,
}

impl Store {
    /// `written`: the text of `config.toml` and the hash of the robot's files; `git_folder`: the folder that git is asked about; `saved_iteration`: that of the
    /// newest checkpoint.
    pub(crate) fn new(
        dir: RunDir,
        written: (String, String),
        meta: MetaWriter,
        git_folder: PathBuf,
        saved_iteration: Option<u64>,
    ) -> Self {
        let (config, sources) = written;
        Self {
            dir,
            config,
            sources,
            thrift: Thrift::default(),
            meta,
            git_folder: Some(git_folder),
            saved: Instant::now(),
            saved_iteration,
        }
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// As [`RunDir::still_ours`].
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn still_ours(&mut self) -> Result<(), RunError> {
        self.dir.still_ours()
    }

    /// The checkpoint's file of an iteration.
    pub(crate) fn file_of(&self, iteration: u64) -> PathBuf {
        keep::file_of(&self.dir.checkpoints(), iteration)
    }

    /// Whether a checkpoint is due after `iteration`, evaluations apart.
    pub(crate) fn due(&self, config: &Config, iteration: u64) -> bool {
        let every = config.runner.save_interval;
        every > 0 && iteration.is_multiple_of(every) || self.saved.elapsed() >= AUTOSAVE
    }

    /// A checkpoint could not be written: the next try comes when the next one is due.
    pub(crate) fn failed(&mut self) {
        self.saved = Instant::now();
    }

    /// The newest checkpoint lacks something that came after it.
    pub(crate) fn outdated(&mut self) {
        self.saved_iteration = None;
    }

    /// Whether this iteration has a checkpoint with all that it should have.
    pub(crate) fn has(&self, iteration: u64) -> bool {
        self.saved_iteration == Some(iteration) && !self.thrift.lacks_replay()
    }

    /// Writes the checkpoint of an iteration.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, checkpoint: &Checkpoint) -> Result<(), RunError> {
        let path = self.file_of(checkpoint.meta.iteration);
        checkpoint.write(&path).map_err(RunError::Save)
    }

    /// The checkpoint of `iteration` is written: marks it as the `best` if it is, removes
    /// those that need not stay.
    pub(crate) fn wrote(&mut self, config: &Config, iteration: u64, best: bool) {
        let folder = self.dir.checkpoints();
        if best && let Err(e) = keep::mark_best(&folder, &self.file_of(iteration)) {
            tracing::warn!("cannot mark the best checkpoint: {e}");
        }
        self.prune(config);
        self.saved = Instant::now();
        self.saved_iteration = Some(iteration);
    }

    /// Writes a checkpoint that its own folder does not take into the system's temporary
    /// one, and returns its file.
    pub(crate) fn rescue(&self, checkpoint: &Checkpoint) -> Option<PathBuf> {
        // A folder of its own: the temporary one is open to everyone.
        let folder = files::scratch("rescued").ok()?;
        let rescued = keep::file_of(folder.path(), checkpoint.meta.iteration);
        checkpoint.write(&rescued).ok()?;
        let _ = folder.keep();
        Some(rescued)
    }

    /// Makes the folder of checkpoints again if it vanished; whether the configuration is gone,
    /// with it or alone. A folder that cannot be made shows when the checkpoint is written.
    pub(crate) fn restore_folder(&self) -> bool {
        let folder = self.dir.checkpoints();
        if !folder.exists() {
            tracing::warn!("{} vanished and is made again", folder.display());
            let _ = files::own_folder(&folder);
        }
        // After it: without a folder there is nothing to write meta.json into.
        self.meta.restore();
        !self.dir.path().join(CONFIG).exists()
    }

    /// Writes the configuration into the run's folder.
    pub(crate) fn write_config(&mut self, config: &Config, model: &Model) {
        match self.dir.write_config(config, model) {
            Ok(text) => self.config = text,
            Err(e) => tracing::warn!("the run's config.toml is not up to date: {e}"),
        }
    }

    /// Saves the replay buffers for a checkpoint, where there are some and space for them: the
    /// first, and all others.
    ///
    /// # Errors
    /// Memory does not suffice; another process is gone.
    pub(crate) fn save_replay(
        &mut self,
        memory: Option<&mut dyn Remembers>,
    ) -> Result<Option<(Saved, Vec<Saved>)>, RunError> {
        match memory {
            Some(memory) => self.thrift.save(memory),
            None => Ok(None),
        }
    }

    /// Looks at the disk between two iterations.
    pub(crate) fn mind_the_disk(
        &mut self,
        config: &Config,
        monitor: &MemoryMonitor,
        sinks: &mut Sinks,
    ) {
        let checkpoints = self.dir.checkpoints();
        if self.thrift.mind(config, monitor, &checkpoints, sinks) {
            self.prune(config);
        }
    }

    /// Why the run ends, or was to end, for want of space on its disk; nothing if it was not.
    pub(crate) fn disk_full(&self) -> Option<Pressure> {
        self.thrift.over()
    }

    /// Removes checkpoints that need not stay.
    fn prune(&self, config: &Config) {
        let (count, interval) = self.thrift.keeps(config);
        keep::prune(&self.dir.checkpoints(), count, interval);
    }

    /// Asks git about the run's sources, once: in a thread, after the first iteration, which
    /// it would delay.
    pub(crate) fn ask_git(&mut self, diff: bool) {
        if let Some(folder) = self.git_folder.take() {
            self.meta.ask_git(folder, diff);
        }
    }

    /// Completes `meta.json`. `reached`: the mean return with which the goal was reached.
    pub(crate) fn finish(&mut self, reached: Option<f64>) {
        self.meta.finish();
        if let Some(value) = reached {
            self.meta.reached(value);
        }
    }
}
