//! How a replay buffer's file is made, and looked at before it is used.

use super::ReplayError;
use super::format::{Commit, Head, PLACES, SLOTS};
use super::layout::TRAILER;
use ostler_sim::files;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const LOCK: &str = ".lock";
/// Sequence number of the last commit of a new file.
pub const FIRST: u64 = 2;

/// Locks a folder for this process.
///
/// # Errors
/// Another holds it; the system refuses.
pub fn lock(folder: &Path) -> Result<File, ReplayError> {
    let path = folder.join(LOCK);
    let file = files::update(&path).map_err(|e| ReplayError::io("cannot make it", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ReplayError::Locked {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(e)) => Err(ReplayError::io("cannot lock it", &path, e)),
    }
}

/// Makes the file under another name first: a file with its final name is whole. Its length is that
/// of a full buffer at once; places take space when they are written.
///
/// # Errors
/// The disk is full, or fails.
pub fn make(path: &Path, head: &Head) -> Result<(), ReplayError> {
    let bytes = head.to_bytes().ok_or_else(|| ReplayError::Format {
        path: path.to_owned(),
        why: "the names of its fields are too long for its head".into(),
    })?;
    let write = |file: &mut File| {
        file.write_all_at(&bytes, 0)?;
        let empty = Commit::default();
        // Both slots: later commits find their space taken.
        for sequence in [FIRST - 1, FIRST] {
            let commit = Commit { sequence, ..empty };
            file.write_all_at(&commit.to_bytes(), commit.slot())?;
        }
        file.set_len(length(head))
    };
    files::replace_with(path, files::SHARED, write)
        .map_err(|e| ReplayError::io("cannot make it", path, e))
}

fn length(head: &Head) -> u64 {
    let place = 4 * (head.layout.words() + TRAILER) as u64;
    PLACES.saturating_add(head.places.saturating_mul(place))
}

/// Refuses a file of another layout or size, and names the difference.
///
/// # Errors
/// It is; or it cannot be read.
pub fn check_head(path: &Path, file: &File, wanted: &Head) -> Result<(), ReplayError> {
    let format = |why: String| ReplayError::Format {
        path: path.to_owned(),
        why,
    };
    let mut bytes = Vec::new();
    let read = io::Read::read_to_end(&mut io::Read::take(file, SLOTS), &mut bytes);
    read.map_err(|e| ReplayError::io("cannot read it", path, e))?;
    let head = Head::from_bytes(&bytes).map_err(format)?;
    let len = file.metadata().map_or(0, |m| m.len());
    let differs = [
        ("fields", head.layout != wanted.layout),
        ("replay.capacity", head.capacity != wanted.capacity),
        ("places", head.places != wanted.places),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        let had = match *what {
            "fields" => String::new(),
            "places" => format!(" ({})", head.places),
            _ => format!(" ({})", head.capacity),
        };
        return Err(format(format!(
            "it was made with other {what}{had}; go on with the configuration that it was made \
             with, or choose another replay.directory"
        )));
    }
    if len != length(&head) {
        return Err(format(format!(
            "it has {len} bytes instead of {}",
            length(&head)
        )));
    }
    Ok(())
}
