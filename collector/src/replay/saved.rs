//! State for a resume of the run.
//!
//! Transitions are kept in the file of their storage, or are appended to one like it when a
//! checkpoint is written; the checkpoint itself holds little: the positions of the buffer and of
//! its draws.

use super::ReplayError;
use super::core::{Core, Inner};
use super::disk::segment_of;
use super::draw::Progress;
use super::file::FileRing;
use super::format::MOST;
use super::window::{Position, Window};
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// State of a replay buffer for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// Which transitions there were.
    pub(super) place: Position,
    /// One behind the newest of them that is in a file.
    pub(super) in_file: u64,
    /// How far its draws were.
    pub(super) progress: Progress,
    /// Version of the policy that acted last.
    pub(super) version: i32,
    /// Priorities, where draws go by them.
    pub(super) priorities: Option<SavedPriorities>,
}

impl Saved {
    /// Whether a buffer of this capacity can have been in this state; otherwise the reason.
    pub(super) fn plausible(&self, capacity: u64) -> Result<(), &'static str> {
        let place = &self.place;
        if place.begin > place.end || place.end > MOST || self.in_file > MOST {
            return Err("its transitions");
        }
        match self.progress.plausible(capacity) {
            true => Ok(()),
            false => Err("its draws"),
        }
    }
}

/// A file of priorities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedPriorities {
    /// Its name in the folder.
    file: String,
    /// CRC32C of its bytes.
    check: u32,
    /// The largest priority so far.
    largest: f64,
}

/// Result of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Transitions that can be drawn.
    pub rows: u64,
    /// Oldest transitions that were overwritten since.
    pub lost_oldest: u64,
    /// Newest transitions that never came to the disk.
    pub lost_newest: u64,
    /// Priorities that were overwritten by a later checkpoint: all are as new.
    pub lost_priorities: bool,
}

impl Restored {
    /// Whether the same bits follow as without the interruption.
    pub fn exact(&self) -> bool {
        self.lost_oldest == 0 && self.lost_newest == 0 && !self.lost_priorities
    }
}

/// A copy in a file of the transitions in memory.
#[derive(Debug)]
pub struct FileCopy {
    file: FileRing,
    /// One behind the newest transition that is in it and still the same in memory.
    kept: u64,
}

impl FileCopy {
    /// Over a file that holds transitions up to this one.
    pub fn new(file: FileRing, kept: u64) -> Self {
        Self { file, kept }
    }

    /// The buffer went back.
    pub fn went_back(&mut self, end: u64) {
        self.kept = self.kept.min(end);
    }

    /// Appends the new transitions.
    ///
    /// # Errors
    /// The disk is full, or fails; the device fails.
    pub fn append(&mut self, inner: &Inner) -> Result<(), ReplayError> {
        let window = &inner.window;
        let first = self.kept.max(window.begin());
        let count = (window.end() - first) as usize;
        let segment = segment_of(window);
        inner.store.copy_out(first, count, |first, count, rows| {
            let written = self.file.write(first, count, &segment, rows);
            written.map_err(|e| self.file.error("cannot write to it", e))
        })?;
        let committed = self.file.commit(window);
        committed.map_err(|e| self.file.error("cannot write to it", e))?;
        self.kept = window.end();
        self.file.sync()
    }

    /// How many transitions of the window are not in it.
    pub fn behind(&self, window: &Window) -> u64 {
        window.end() - self.kept.max(window.begin()).min(window.end())
    }

    /// All that is in it.
    ///
    /// # Errors
    /// Another program made it shorter.
    pub fn rows(&self) -> Result<super::rows::Rows<'_>, ReplayError> {
        Ok(super::rows::Rows::one(self.file.ring()?))
    }
}

/// Writes the priorities of the window into one of two files in turn, so that those of the
/// checkpoint before stay.
///
/// # Errors
/// The disk is full, or fails.
pub fn save_priorities(
    core: &Core,
    folder: &Path,
    turn: u64,
) -> Result<Option<SavedPriorities>, ReplayError> {
    let inner = core.read();
    let Some(priorities) = &inner.priorities else {
        return Ok(None);
    };
    let (window, places) = (&inner.window, inner.window.physical());
    let leaves = priorities.leaves();
    let bytes: Vec<u8> =
        (window.range()).flat_map(|row| leaves[(row % places) as usize].to_le_bytes()).collect();
    let file = format!("priorities-{}.bin", turn % 2);
    let path = folder.join(&file);
    files::replace(&path, files::SHARED, &bytes)
        .map_err(|e| ReplayError::io("cannot write it", &path, e))?;
    Ok(Some(SavedPriorities { file, check: crc32c::crc32c(&bytes), largest: priorities.largest() }))
}

/// Reads the priorities of the window; `false` where the file is another's now.
pub fn restore_priorities(inner: &mut Inner, folder: &Path, saved: &SavedPriorities) -> bool {
    let Some(priorities) = &mut inner.priorities else {
        return true;
    };
    let mut name: PathBuf = folder.into();
    // A name from a checkpoint stays within the folder.
    name.push(Path::new(&saved.file).file_name().unwrap_or_default());
    let length = 8 * inner.window.len();
    let bytes = files::read(&name, length).unwrap_or_default();
    let values = || {
        bytes.chunks_exact(8).map(|b| {
            let bytes = b.try_into().unwrap_or_default();
            f64::from_le_bytes(bytes)
        })
    };
    // Draws go by sums over them, to which one that is no number gives no share.
    let usable = |value: f64| value.is_finite() && value >= 0.0;
    let fits = bytes.len() as u64 == length
        && crc32c::crc32c(&bytes) == saved.check
        && usable(saved.largest)
        && values().all(usable);
    if fits {
        priorities.fill(&inner.window, values(), saved.largest);
    }
    fits
}
