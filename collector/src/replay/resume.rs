//! State for a resume of the run: a replay buffer across the end of its process.
//!
//! Transitions are kept in the file of their storage, or are appended to one like it when a
//! checkpoint is written; the checkpoint itself holds little: the positions of the buffer and of
//! its draws.

use super::core::{Core, Inner};
use super::draw::Progress;
use super::transition::{MOST, Position, TRAILER};
use crate::error::ReplayError;
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// State of a replay buffer for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// Which transitions there were.
    place: Position,
    /// One behind the newest of them that is in a file.
    in_file: u64,
    /// How far its draws were.
    pub(super) progress: Progress,
    /// Version of the policy that acted last.
    pub(super) version: i32,
    /// Priorities, where draws go by them.
    priorities: Option<SavedPriorities>,
}

impl Saved {
    /// Whether a buffer of this capacity can have been in this state; otherwise the reason.
    fn plausible(&self, capacity: u64) -> Result<(), &'static str> {
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
struct SavedPriorities {
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

/// A checkpoint's part of a buffer whose transitions, and whose priorities, are kept in a
/// folder, if in any. Everything is on the disk when this returns. `turn` counts checkpoints.
///
/// # Errors
/// The disk is full, or fails.
pub(crate) fn save(
    core: &Core,
    folder: Option<&Path>,
    turn: u64,
    progress: Progress,
    version: i32,
) -> Result<Saved, ReplayError> {
    let inner = &mut *core.write();
    let (in_file, priorities) = match folder {
        Some(folder) => (inner.storage.save(&inner.window)?, save_priorities(inner, folder, turn)?),
        None => (0, None),
    };
    Ok(Saved { place: inner.window.place(), in_file, progress, version, priorities })
}

/// Bytes that [`save`] would write at the most.
pub(crate) fn unsaved_bytes(core: &Core, saves: bool) -> u64 {
    let inner = core.read();
    let row = core.plan.layout.bytes_per_transition() + 4 * TRAILER;
    let priorities = match inner.priorities {
        Some(_) if saves => 8 * inner.window.len(),
        _ => 0,
    };
    inner.storage.unsaved(&inner.window).saturating_mul(row as u64).saturating_add(priorities)
}

/// Goes back to a saved state, as far as the storage's file holds it.
///
/// # Errors
/// The saved state cannot be; the device fails.
pub(crate) fn restore(
    core: &Core,
    folder: Option<&Path>,
    saved: &Saved,
) -> Result<Restored, ReplayError> {
    let inner = &mut *core.write();
    saved
        .plausible(inner.window.capacity())
        .map_err(|what| ReplayError::Saved(format!("{what} cannot be: it is damaged")))?;
    let (there, wanted) = (inner.window.end(), saved.place);
    let mut place = wanted;
    // Damage, or another program, may have taken the newest.
    place.end = wanted.end.min(saved.in_file).min(there);
    place.begin = wanted.begin.min(place.end);
    // It is in the past, whatever the file holds.
    let lost_oldest = inner.window.rewind(&place).unwrap_or_default();
    let lost_newest = (wanted.end - place.end).min(wanted.end - wanted.begin);
    if lost_newest > 0 {
        inner.window.cut();
    }
    inner.storage.went_back(&inner.window, u64::MAX)?;
    let (range, places) = (inner.window.range(), inner.window.physical());
    if let Some(tree) = &mut inner.priorities {
        tree.start_anew(range, places);
    }
    let lost = lost_oldest + lost_newest > 0;
    let lost_priorities = match (&saved.priorities, folder) {
        _ if inner.priorities.is_none() => false,
        (Some(priorities), Some(folder)) if !lost => !restore_priorities(inner, folder, priorities),
        _ => wanted.end > 0,
    };
    Ok(Restored { rows: inner.window.len(), lost_oldest, lost_newest, lost_priorities })
}

/// Writes the priorities of the window into one of two files in turn, so that those of the
/// checkpoint before stay.
fn save_priorities(
    inner: &Inner,
    folder: &Path,
    turn: u64,
) -> Result<Option<SavedPriorities>, ReplayError> {
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
fn restore_priorities(inner: &mut Inner, folder: &Path, saved: &SavedPriorities) -> bool {
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

#[cfg(test)]
#[path = "tests/resume.rs"]
mod tests;
