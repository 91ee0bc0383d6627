//! The file of a replay buffer: its form, how it is made and looked at, written and read.
//!
//! ```text
//! rows.bin
//!      0  "OSTLERRB", version u32, length u32 of the JSON, crc32c u32 of the JSON, the JSON
//!   8192  commit slot 0 (512 bytes): sequence, begin, end, head u64, crc32c u32
//!   8704  commit slot 1
//!  12288  place 0: the fields in order, segment u32, stride u32, check u32
//!         place 1, ... `places` of them
//! ```
//! All numbers are little-endian. The JSON holds the layout, `capacity`, `places`, and for
//! numpy the `dtype` of a place and the `offset` of the first. Transition `r` lies in place
//! `r % places`. The transition that follows it in time is `r + stride`, if that one has the
//! same `segment`. `check` is the CRC32C of the words before it and of `r` (u64), so that
//! each transition proves by itself that it is whole and the one that it is taken for.
//!
//! A commit is written after the rows that it speaks of, into the slot of its sequence
//! number modulo 2: whatever a killed process was in the middle of, the other slot and all
//! that it speaks of are whole.
//!
//! The file is written by calls that return errors, and read through a map. Nothing is ever
//! stored into the map: a full disk is then an error of a call, where a store would be a bus
//! error (F13). The map is read only where rows were written: a hole would take space too, on
//! some file systems.
//!
//! Another program that shortens the file takes memory away from under the map. That is
//! looked for before each use, and is an error then; in the midst of one it ends the process
//! with SIGBUS all the same, as no system call makes a map safe from it.

use super::transition::{FieldKind, Layout, MOST, Ring, Segment, TRAILER, Window};
use crate::error::ReplayError;
use memmap2::{Advice, Mmap};
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(crate) const ROWS: &str = "rows.bin";
/// 32-bit words that are written by one call, at least a row: few enough to stay in the
/// processor's cache on their way, and enough that the call does not count.
const PIECE: usize = 1 << 15;

/// Places of transitions in a file, locked for as long as this value lives.
#[derive(Debug)]
pub(crate) struct FileRing {
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
pub(crate) enum Expect {
    /// There must be none.
    New,
    /// If there is one, it is opened.
    Any,
}

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Transitions that can be drawn.
    pub rows: u64,
    /// Transitions that were committed and are damaged, or cut off by damaged ones.
    pub dropped: u64,
}

impl FileRing {
    /// Makes the file in a folder, or opens it and fills `window` with the committed transitions.
    /// Of a file that is damaged or cut the longest whole part is taken; one of which nothing can
    /// be known is set aside. Both are said.
    pub(crate) fn open(
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
        let mut head = Head::new(layout, window.capacity(), window.physical());
        files::remove_leftovers(folder);
        // A link counts, wherever it leads.
        let mut there = path.symlink_metadata().is_ok();
        if there && expect == Expect::New {
            return Err(ReplayError::InUse { path });
        }
        if there {
            let file = files::update(&path).map_err(io("cannot open it"))?;
            // A run whose environments or checkpoints have become more or fewer goes on in the
            // places that it began with.
            let places = check(&path, &file, &head)?;
            there = places.is_some();
            if let Some(places) = places {
                *window = Window::new(window.capacity(), places);
                head.places = places;
            }
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

    pub(crate) fn ring(&self) -> Result<Ring<'_>, ReplayError> {
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
    pub(crate) fn write(
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
    pub(crate) fn commit(&mut self, window: &Window) -> io::Result<()> {
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
    pub(crate) fn sync(&self) -> Result<(), ReplayError> {
        let synced = self.file.sync_data();
        synced.map_err(|e| self.error("cannot write it to the disk", e))
    }

    /// An error of the system about this file. `FullDisk` where the disk is full.
    pub(crate) fn error(&self, what: &'static str, source: io::Error) -> ReplayError {
        match is_full(&source) {
            true => ReplayError::FullDisk {
                path: self.path.clone(),
                rows: self.commit.end - self.commit.begin,
                source,
            },
            false => ReplayError::io(what, &self.path, source),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a disk, a quota or a limit is exhausted.
pub(crate) fn is_full(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Bytes on the disk that a file takes already.
pub(crate) fn taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(folder.join(ROWS));
    file.map_or(0, |m| m.blocks() * 512)
}

const MAGIC: [u8; 8] = *b"OSTLERRB";
/// Raised whenever a program of the previous version could not read the file.
const VERSION: u32 = 1;
/// First byte of the commit slots.
const SLOTS: u64 = 8192;
/// From one slot to the next.
const SLOT: u64 = 512;
/// First byte of the first place: a multiple of the page, so that it can be mapped.
pub(crate) const PLACES: u64 = 12_288;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    layout: Layout,
    /// The most transitions that can be drawn.
    capacity: u64,
    places: u64,
    /// First byte of the first place.
    offset: u64,
    /// For `numpy.dtype`: (name, type) or (name, type, shape) per field of a place.
    dtype: serde_json::Value,
}

impl Head {
    fn new(layout: &Layout, capacity: u64, places: u64) -> Self {
        let fields = layout.fields().iter().map(|f| {
            let kind = match f.kind {
                FieldKind::F32 => "<f4",
                FieldKind::I32 => "<i4",
            };
            match f.width {
                1 => serde_json::json!([f.name, kind]),
                n => serde_json::json!([f.name, kind, [n]]),
            }
        });
        let trailer = ["segment", "stride", "check"].map(|n| serde_json::json!([n, "<u4"]));
        Self {
            layout: layout.clone(),
            capacity,
            places,
            offset: PLACES,
            dtype: fields.chain(trailer).collect(),
        }
    }

    /// The first bytes of the file; `None` where the layout's names are too long for them.
    fn to_bytes(&self) -> Option<Vec<u8>> {
        let json = serde_json::to_vec(self).ok()?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::try_from(json.len()).ok()?.to_le_bytes());
        bytes.extend(crc32c::crc32c(&json).to_le_bytes());
        bytes.extend(json);
        (bytes.len() as u64 <= SLOTS).then_some(bytes)
    }

    /// Whether these first bytes of a file are of a version that this program reads.
    fn has_known_version(bytes: &[u8]) -> bool {
        word(bytes, 8) == VERSION
    }

    /// Reads them, or says what they are not.
    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let word = |at| word(bytes, at);
        if !bytes.starts_with(&MAGIC) {
            return Err("this is no replay buffer".into());
        }
        if !Self::has_known_version(bytes) {
            let got = word(8);
            return Err(format!("its format is {got}, this program reads {VERSION}"));
        }
        let json = bytes.get(20..20 + word(12) as usize);
        let json = json.filter(|json| crc32c::crc32c(json) == word(16));
        let head = json.and_then(|json| serde_json::from_slice::<Self>(json).ok());
        let head = head.ok_or("its head is damaged")?;
        if head.offset != PLACES || head.places < head.capacity || head.capacity == 0 {
            return Err("its head makes no sense".into());
        }
        Ok(head)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

/// The committed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Commit {
    /// Commits since the file was made.
    sequence: u64,
    /// Oldest transition that can be drawn.
    begin: u64,
    /// One behind the newest.
    end: u64,
    /// One behind the newest that was ever written.
    head: u64,
}

impl Commit {
    fn slot(&self) -> u64 {
        SLOTS + SLOT * (self.sequence % 2)
    }

    /// The oldest transition that is still in a file of so many places:
    /// one that fell out of the window stays until its place is written again.
    fn oldest(&self, places: u64) -> u64 {
        self.head.saturating_sub(places).min(self.begin)
    }

    /// Whether a file of so many places can hold the transitions that it names.
    fn fits(&self, places: u64) -> bool {
        self.end - self.oldest(places) <= places
    }

    fn to_bytes(self) -> [u8; 36] {
        let mut bytes = [0; 36];
        let numbers = [self.sequence, self.begin, self.end, self.head];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let check = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads a slot; `None` where it holds no whole commit.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |i: usize| {
            let bytes = bytes.get(8 * i..8 * i + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let check = u32::from_le_bytes(bytes.get(32..36)?.try_into().ok()?);
        let commit =
            Self { sequence: number(0)?, begin: number(1)?, end: number(2)?, head: number(3)? };
        let sane = commit.begin <= commit.end
            && commit.end <= commit.head
            && commit.head <= MOST
            && commit.sequence <= MOST;
        (check == crc32c::crc32c(&bytes[..32]) && sane && commit.sequence > 0).then_some(commit)
    }
}

/// Fills in the checks of places that follow each other, of `stride` words each, the first of
/// which holds transition `first`; all else is written.
fn seal(places: &mut [u32], stride: usize, first: u64) {
    const MANY: usize = 4;
    let mut row = first;
    let mut groups = places.chunks_exact_mut(MANY * stride);
    for group in &mut groups {
        let rows = std::array::from_fn(|i| &group[i * stride..(i + 1) * stride - 1]);
        let checks: [u32; MANY] = checks_of(rows, row);
        for (place, check) in group.chunks_exact_mut(stride).zip(checks) {
            place[stride - 1] = check;
        }
        row += MANY as u64;
    }
    for place in groups.into_remainder().chunks_exact_mut(stride) {
        place[stride - 1] = check_of(&place[..stride - 1], row);
        row += 1;
    }
}

/// Segment and stride of a place, if it holds transition `row` and is whole.
fn whole(place: &[u32], row: u64) -> Option<(u32, u32)> {
    let at = place.len().checked_sub(TRAILER)?;
    (place[at + 2] == check_of(&place[..at + 2], row)).then_some((place[at], place[at + 1]))
}

/// [`check_of`] four rows of the same length that begin with number `first`. The processor's
/// instruction gives a result after three cycles and takes another every cycle: one short row
/// after the other would leave it idle for most of the time.
fn checks_of(rows: [&[u32]; 4], first: u64) -> [u32; 4] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { interleaved(rows, first) };
    }
    let mut number = first;
    rows.map(|row| {
        let check = check_of(row, number);
        number += 1;
        check
    })
}

/// CRC32C of the row number (u64, little-endian) and the words.
fn check_of(words: &[u32], number: u64) -> u32 {
    let seed = crc32c::crc32c(&number.to_le_bytes());
    crc32c::crc32c_append(seed, bytemuck::cast_slice(words))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn interleaved(rows: [&[u32]; 4], first: u64) -> [u32; 4] {
    use std::arch::x86_64::{_mm_crc32_u32, _mm_crc32_u64};
    let len = rows[0].len();
    let mut states = [u64::from(u32::MAX); 4];
    for (state, number) in states.iter_mut().zip(first..) {
        *state = _mm_crc32_u64(*state, number);
    }
    // All of one length, so that no access has to be checked.
    let [a, b, c, d] = rows.map(|row| row[..len].as_chunks::<2>());
    for (((a, b), c), d) in a.0.iter().zip(b.0).zip(c.0).zip(d.0) {
        for (state, &[low, high]) in states.iter_mut().zip([a, b, c, d]) {
            *state = _mm_crc32_u64(*state, u64::from(high) << 32 | u64::from(low));
        }
    }
    for (state, rest) in states.iter_mut().zip([a.1, b.1, c.1, d.1]) {
        for &word in rest {
            *state = u64::from(_mm_crc32_u32(*state as u32, word));
        }
    }
    states.map(|state| !(state as u32))
}

const LOCK: &str = ".lock";
/// Sequence number of the last commit of a new file.
const FIRST: u64 = 2;

/// Locks a folder for this process.
fn lock(folder: &Path) -> Result<File, ReplayError> {
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
fn make(path: &Path, head: &Head) -> Result<(), ReplayError> {
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
    PLACES.saturating_add(head.places.saturating_mul(place(head)))
}

/// Bytes of a place.
fn place(head: &Head) -> u64 {
    4 * (head.layout.words() + TRAILER) as u64
}

/// The places of a file of this length for this memory: those that its head has, or, where that is
/// damaged, as many as there is room for. Those that are wanted, where it cannot be.
fn own_places(head: Option<&Head>, length: u64, wanted: &Head) -> u64 {
    let room = || {
        let (place, all) = (place(wanted), length.saturating_sub(PLACES));
        all.is_multiple_of(place).then(|| all / place)
    };
    let own = head.map_or_else(room, |head| Some(head.places));
    own.filter(|own| (wanted.capacity..=MOST).contains(own)).unwrap_or(wanted.places)
}

/// Refuses a file of another layout or capacity, and names the difference; one that is damaged or
/// cut is [mended](mend). The places of the file, if it is still there.
fn check(path: &Path, file: &File, wanted: &Head) -> Result<Option<u64>, ReplayError> {
    let mut bytes = Vec::new();
    let read = io::Read::read_to_end(&mut io::Read::take(file, SLOTS), &mut bytes);
    read.map_err(|e| ReplayError::io("cannot read it", path, e))?;
    let length = file.metadata().map_or(0, |m| m.len());
    let head = Head::from_bytes(&bytes);
    let places = own_places(head.as_ref().ok(), length, wanted);
    let wanted = &Head { places, ..wanted.clone() };
    let damage = match head {
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
        () if damage.is_empty() && commits => Ok(Some(places)),
        () if commits && !is_newer(&bytes, wanted) => {
            mend(path, file, wanted, &damage)?;
            Ok(Some(places))
        }
        () => {
            let why = match damage.is_empty() {
                true => "both its commits are damaged".into(),
                false => damage,
            };
            set_aside(path, &why)?;
            Ok(None)
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
fn commits(file: &File, places: u64) -> Option<Commit> {
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

#[cfg(test)]
#[path = "tests/file.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "tests/format.rs"]
mod format_tests;
