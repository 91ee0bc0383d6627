//! Transitions in a file: written by calls that return errors, read through a map.
//!
//! Nothing is ever stored into the map: a full disk is then an error of a call, where a
//! store would be a bus error (F13). The map is read only where rows were written: a hole
//! would take space too, on some file systems.
//!
//! Another program that shortens the file takes memory away from under the map. That is
//! looked for before each use, and is an error then; in the midst of one it ends the process
//! with SIGBUS all the same, as no system call makes a map safe from it.

use super::format::{Commit, Head, PLACES, seal, whole};
use super::layout::TRAILER;
use super::make::{FIRST, check, commits, lock, make};
use super::rows::Ring;
use super::window::{Segment, Window};
use super::{Layout, ReplayError};
use memmap2::{Advice, Mmap};
use ostler_sim::files;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the file.
pub const ROWS: &str = "rows.bin";
/// 32-bit words that are written by one call, at least a row: few enough to stay in the
/// processor's cache on their way, and enough that the call does not count.
const PIECE: usize = 1 << 15;

/// Places of transitions in a file, locked for as long as this value lives.
#[derive(Debug)]
pub struct FileRing {
    path: PathBuf,
    file: File,
    map: Mmap,
    /// 32-bit words of a transition, and of a place.
    words: usize,
    stride: usize,
    places: u64,
    piece: Vec<u32>,
    commit: Commit,
    /// Held for its lock.
    _lock: File,
    /// So many bytes can still be written, in tests.
    #[cfg(test)]
    pub room: Option<u64>,
}

/// Whether a file may be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// There must be none.
    New,
    /// If there is one, it is opened.
    Any,
}

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Transitions that can be drawn.
    pub rows: u64,
    /// Transitions that were committed and are damaged, or cut off by damaged ones.
    pub dropped: u64,
}

impl FileRing {
    /// Makes the file in a folder, or opens it and fills `window` with the committed transitions.
    /// Of a file that is damaged or cut the longest whole part is taken; one of which nothing can
    /// be known is set aside. Both are said.
    ///
    /// # Errors
    /// Another run uses it, it is of another layout or size, or the system refuses.
    pub fn open(
        folder: &Path,
        layout: &Layout,
        window: &mut Window,
        expect: Expect,
    ) -> Result<(Self, Found), ReplayError> {
        let path = folder.join(ROWS);
        let io = |what| {
            let path = path.clone();
            move |e| ReplayError::io(what, &path, e)
        };
        std::fs::create_dir_all(folder).map_err(io("cannot make its folder"))?;
        let lock = lock(folder)?;
        let head = Head::new(layout, window.capacity(), window.physical());
        files::remove_leftovers(folder);
        // A link counts, wherever it leads.
        let mut there = path.symlink_metadata().is_ok();
        if there && expect == Expect::New {
            return Err(ReplayError::InUse { path });
        }
        if there {
            let file = files::update(&path).map_err(io("cannot open it"))?;
            there = check(&path, &file, &head)?;
        }
        if !there {
            make(&path, &head)?;
        }
        let file = files::update(&path).map_err(io("cannot open it"))?;
        // SAFETY: the map is read-only. The file is this process's: it is locked, its length
        // was checked and nothing here changes it, so that reads stay within it. Rows are
        // read under the lock of `Core` that their writers hold exclusively; the words are
        // plain data, and each row has a checksum should a stranger write here. That no
        // stranger does, in the midst of a read, is the user's part: see the description above.
        let map = unsafe { Mmap::map(&file) }.map_err(io("cannot map it"))?;
        // Draws go all over the place: reading ahead would read for nothing.
        let _ = map.advise(Advice::Random);
        let (words, stride) = (layout.words(), layout.words() + TRAILER);
        let mut piece = Vec::new();
        let len = PIECE.max(stride);
        piece.try_reserve_exact(len).map_err(|_| ostler_sim::memory::MemoryError {
            what: "rows on their way to a file".into(),
            bytes: 4 * len,
        })?;
        let mut ring = Self {
            path: path.clone(),
            map,
            words,
            stride,
            places: head.places,
            piece,
            commit: Commit::default(),
            _lock: lock,
            #[cfg(test)]
            room: None,
            file,
        };
        let found = match there {
            true => ring.recover(window)?,
            false => {
                ring.commit.sequence = FIRST;
                Found::default()
            }
        };
        Ok((ring, found))
    }

    /// The newest commit, and the transitions that it speaks of.
    fn recover(&mut self, window: &mut Window) -> Result<Found, ReplayError> {
        let commit = commits(&self.file, self.places).ok_or_else(|| ReplayError::Format {
            path: self.path.clone(),
            why: "both its commits are damaged".into(),
        })?;
        self.commit = commit;
        // Transitions that fell out of the window are examined too: a resume may go back to an
        // older state.
        let oldest = commit.oldest(self.places);
        let (mut best, mut start) = (commit.begin..commit.begin, oldest);
        for row in oldest..=commit.end {
            let broken = row == commit.end || whole(self.place(row), row).is_none();
            if broken {
                let here = start.max(commit.begin)..row.max(commit.begin);
                // Of runs of the same length the newest.
                if here.end - here.start >= best.end - best.start && start < row {
                    best = start..row;
                }
                start = row + 1;
            }
        }
        let kept = best.clone().map(|row| {
            let (segment, stride) = whole(self.place(row), row).unwrap_or_default();
            (row, segment, stride)
        });
        window.refill(kept, best.start..best.end, commit.begin, commit.head);
        Ok(Found { rows: window.len(), dropped: (commit.end - commit.begin) - window.len() })
    }

    fn place(&self, row: u64) -> &[u32] {
        let start = (row % self.places) as usize * self.stride;
        &self.words()[start..start + self.stride]
    }

    fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.map[PLACES as usize..])
    }

    /// All places, to read.
    ///
    /// # Errors
    /// Another program made the file shorter, or the system does not say.
    pub fn ring(&self) -> Result<Ring<'_>, ReplayError> {
        let checked = self.check_length();
        checked.map_err(|e| self.error("cannot read it", e))?;
        let words = self.words();
        Ok(Ring::new(words, self.stride, self.words, self.places))
    }

    /// Parts of the map beyond the file's end cannot be read. Nor may a write make the file
    /// as long again as it was: its rows would be zeros.
    fn check_length(&self) -> io::Result<()> {
        let (now, whole) = (self.file.metadata()?.len(), self.map.len() as u64);
        match now < whole {
            true => Err(io::Error::other(format!(
                "another program made it shorter: it has {now} bytes instead of {whole}"
            ))),
            false => Ok(()),
        }
    }

    /// Writes transitions into their places; they do not count before they are
    /// [committed](Self::commit).
    ///
    /// # Errors
    /// The disk is full, or fails; another program made the file shorter.
    pub fn write(
        &mut self,
        first: u64,
        count: usize,
        segment: impl Fn(u64) -> Segment,
        mut fill: impl FnMut(usize, &mut [u32]),
    ) -> io::Result<()> {
        self.check_length()?;
        let mut done = 0;
        while done < count {
            let place = (first + done as u64) % self.places;
            let in_row = usize::try_from(self.places - place).unwrap_or(usize::MAX);
            let n = (PIECE / self.stride).max(1).min(count - done).min(in_row);
            // The old content of the piece is overwritten.
            self.piece.resize(n * self.stride, 0);
            let start = first + done as u64;
            for (i, words) in self.piece.chunks_exact_mut(self.stride).enumerate() {
                let Segment { id, stride, .. } = segment(start + i as u64);
                fill(done + i, &mut words[..self.words]);
                words[self.words] = id;
                words[self.words + 1] = stride;
            }
            seal(&mut self.piece, self.stride, start);
            let at = PLACES + place * 4 * self.stride as u64;
            self.write_at(at)?;
            done += n;
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64) -> io::Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.piece);
        #[cfg(test)]
        if let Some(room) = &mut self.room {
            let part = (*room).min(bytes.len() as u64);
            self.file.write_all_at(&bytes[..part as usize], at)?;
            *room -= part;
            if part < bytes.len() as u64 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            return Ok(());
        }
        self.file.write_all_at(bytes, at)
    }

    /// Sets the window to the file's content.
    ///
    /// # Errors
    /// The disk is full, or fails; earlier commits hold.
    pub fn commit(&mut self, window: &Window) -> io::Result<()> {
        let commit = Commit {
            sequence: self.commit.sequence + 1,
            begin: window.begin(),
            end: window.end(),
            head: window.head(),
        };
        self.file.write_all_at(&commit.to_bytes(), commit.slot())?;
        self.commit = commit;
        Ok(())
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn sync(&self) -> Result<(), ReplayError> {
        let synced = self.file.sync_data();
        synced.map_err(|e| self.error("cannot write it to the disk", e))
    }

    /// An error of the system about this file. `FullDisk` where the disk is full.
    pub fn error(&self, what: &'static str, source: io::Error) -> ReplayError {
        match is_full(&source) {
            true => ReplayError::FullDisk {
                path: self.path.clone(),
                rows: self.commit.end - self.commit.begin,
                source,
            },
            false => ReplayError::io(what, &self.path, source),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a disk, a quota or a limit is exhausted.
pub fn is_full(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Bytes on the disk that a file takes already.
pub fn taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(folder.join(ROWS));
    file.map_or(0, |m| m.blocks() * 512)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
