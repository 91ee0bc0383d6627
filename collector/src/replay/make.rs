//! How a replay buffer's file is made, and looked at before it is used.

use super::ReplayError;
use super::format::{Commit, Head, PLACES, SLOT, SLOTS};
use super::layout::TRAILER;
use ostler_sim::files;
use std::cmp::Ordering;
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
        Err(TryLockError::WouldBlock) => Err(ReplayError::Locked { path: folder.to_owned() }),
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

/// Refuses a file of another layout or size, and names the difference; one that is damaged or
/// cut is [mended](mend). Whether the file is still there.
///
/// # Errors
/// It is; or it cannot be read or mended.
pub fn check(path: &Path, file: &File, wanted: &Head) -> Result<bool, ReplayError> {
    let mut bytes = Vec::new();
    let read = io::Read::read_to_end(&mut io::Read::take(file, SLOTS), &mut bytes);
    read.map_err(|e| ReplayError::io("cannot read it", path, e))?;
    let length = file.metadata().map_or(0, |m| m.len());
    let damage = match Head::from_bytes(&bytes) {
        Ok(head) => {
            fits(path, &head, wanted)?;
            match length.cmp(&self::length(wanted)) {
                Ordering::Less => {
                    format!("it has {length} bytes instead of {}", self::length(wanted))
                }
                // Whatever is behind the places is not looked at.
                Ordering::Equal | Ordering::Greater => String::new(),
            }
        }
        Err(why) => why,
    };
    let commits = commits(file, wanted.places).is_some();
    match () {
        () if damage.is_empty() && commits => Ok(true),
        () if commits && !is_newer(&bytes, wanted) => {
            mend(path, file, wanted, &damage)?;
            Ok(true)
        }
        () => {
            let why = match damage.is_empty() {
                true => "both its commits are damaged".into(),
                false => damage,
            };
            set_aside(path, &why)?;
            Ok(false)
        }
    }
}

/// Whether a head is that of another program's version, and not a damaged one of this one's.
fn is_newer(bytes: &[u8], wanted: &Head) -> bool {
    let known = wanted.to_bytes().unwrap_or_default();
    let but_for_version = |b: &[u8]| Some([b.get(..8)?, b.get(12..known.len())?].concat());
    !Head::has_known_version(bytes) && but_for_version(bytes) != but_for_version(&known)
}

/// Puts the head that the file must have had in the place of a damaged one, and gives it the
/// length that it had: each transition proves by itself that it is whole.
fn mend(path: &Path, file: &File, head: &Head, why: &str) -> Result<(), ReplayError> {
    let put = || {
        let bytes = head.to_bytes().unwrap_or_default();
        file.write_all_at(&bytes, 0)?;
        match file.metadata()?.len() < length(head) {
            true => file.set_len(length(head)),
            false => Ok(()),
        }
    };
    put().map_err(|e| ReplayError::io("cannot mend it", path, e))?;
    let path = path.display();
    tracing::warn!("{path}: {why}; it is mended, and what is whole in it is taken");
    Ok(())
}

/// Moves a file of which nothing can be known out of the way.
fn set_aside(path: &Path, why: &str) -> Result<(), ReplayError> {
    let aside = path.with_extension("damaged");
    let moved = std::fs::rename(path, &aside);
    moved.map_err(|e| ReplayError::io("cannot set it aside", path, e))?;
    let (path, aside) = (path.display(), aside.display());
    tracing::warn!(
        "{path}: {why}; it is {aside} now, and the replay buffer begins empty: the run does not \
         repeat bit for bit"
    );
    Ok(())
}

/// The newest commit that is whole and can be.
pub fn commits(file: &File, places: u64) -> Option<Commit> {
    let slots = [0, 1].map(|i| {
        let mut bytes = [0; 36];
        let read = file.read_exact_at(&mut bytes, SLOTS + i * SLOT);
        read.ok().and_then(|()| Commit::from_bytes(&bytes))
    });
    // One that speaks of more than the file holds would be looked for row by row.
    let slots = slots.into_iter().flatten().filter(|c| c.fits(places));
    slots.max_by_key(|c| c.sequence)
}

fn fits(path: &Path, head: &Head, wanted: &Head) -> Result<(), ReplayError> {
    let format = |why: String| ReplayError::Format { path: path.to_owned(), why };
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
    Ok(())
}
