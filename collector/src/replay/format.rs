//! The file of a replay buffer.
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

use super::checksum;
use super::layout::TRAILER;
use super::{FieldKind, Layout};
use serde::{Deserialize, Serialize};

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"OSTLERRB";
/// Raised whenever a program of the previous version could not read the file.
pub const VERSION: u32 = 1;
/// Transitions, and all other counts of a buffer, are fewer than this in any run: larger numbers
/// in a file are damage.
pub const MOST: u64 = 1 << 62;
/// First byte of the commit slots.
pub const SLOTS: u64 = 8192;
/// From one slot to the next.
pub const SLOT: u64 = 512;
/// First byte of the first place: a multiple of the page, so that it can be mapped.
pub const PLACES: u64 = 12_288;

/// Head of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The fields.
    pub layout: Layout,
    /// The most transitions that can be drawn.
    pub capacity: u64,
    /// Places.
    pub places: u64,
    /// First byte of the first place.
    pub offset: u64,
    /// For `numpy.dtype`: (name, type) or (name, type, shape) per field of a place.
    pub dtype: serde_json::Value,
}

impl Head {
    /// Of a buffer of this size.
    pub fn new(layout: &Layout, capacity: u64, places: u64) -> Self {
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
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let json = serde_json::to_vec(self).ok()?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::try_from(json.len()).ok()?.to_le_bytes());
        bytes.extend(crc32c::crc32c(&json).to_le_bytes());
        bytes.extend(json);
        (bytes.len() as u64 <= SLOTS).then_some(bytes)
    }

    /// Whether these first bytes of a file are of a version that this program reads.
    pub fn has_known_version(bytes: &[u8]) -> bool {
        word(bytes, 8) == VERSION
    }

    /// Reads them, or says what they are not.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
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
pub struct Commit {
    /// Commits since the file was made.
    pub sequence: u64,
    /// Oldest transition that can be drawn.
    pub begin: u64,
    /// One behind the newest.
    pub end: u64,
    /// One behind the newest that was ever written.
    pub head: u64,
}

impl Commit {
    /// Its slot.
    pub fn slot(&self) -> u64 {
        SLOTS + SLOT * (self.sequence % 2)
    }

    /// The oldest transition that is still in a file of so many places:
    /// one that fell out of the window stays until its place is written again.
    pub fn oldest(&self, places: u64) -> u64 {
        self.head.saturating_sub(places).min(self.begin)
    }

    /// Whether a file of so many places can hold the transitions that it names.
    pub fn fits(&self, places: u64) -> bool {
        self.end - self.oldest(places) <= places
    }

    /// The bytes of the slot.
    pub fn to_bytes(self) -> [u8; 36] {
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
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
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
pub fn seal(places: &mut [u32], stride: usize, first: u64) {
    const MANY: usize = 4;
    let mut row = first;
    let mut groups = places.chunks_exact_mut(MANY * stride);
    for group in &mut groups {
        let rows = std::array::from_fn(|i| &group[i * stride..(i + 1) * stride - 1]);
        let checks: [u32; MANY] = checksum::of_rows(rows, row);
        for (place, check) in group.chunks_exact_mut(stride).zip(checks) {
            place[stride - 1] = check;
        }
        row += MANY as u64;
    }
    for place in groups.into_remainder().chunks_exact_mut(stride) {
        place[stride - 1] = checksum::of_row(&place[..stride - 1], row);
        row += 1;
    }
}

/// Segment and stride of a place, if it holds transition `row` and is whole.
pub fn whole(place: &[u32], row: u64) -> Option<(u32, u32)> {
    let at = place.len().checked_sub(TRAILER)?;
    (place[at + 2] == checksum::of_row(&place[..at + 2], row)).then_some((place[at], place[at + 1]))
}

#[cfg(test)]
mod tests {
    use super::super::Field;
    use super::*;

    #[test]
    fn heads_and_commits_are_read_as_they_were_written() {
        let fields = vec![Field::float("obs", 3), Field::integer("version")];
        let head = Head::new(&Layout::new(fields).unwrap(), 10, 14);
        let mut bytes = head.to_bytes().unwrap();
        assert_eq!(Head::from_bytes(&bytes), Ok(head));
        assert!(Head::from_bytes(&bytes[..30]).is_err());
        for (at, expected) in [(0, "no replay"), (8, "format"), (40, "damaged")] {
            bytes[at] ^= 1;
            assert!(Head::from_bytes(&bytes).unwrap_err().contains(expected));
            bytes[at] ^= 1;
        }
        let commit = Commit { sequence: 7, begin: 1, end: 2, head: 3 };
        let bytes = commit.to_bytes();
        assert_eq!(Commit::from_bytes(&bytes), Some(commit));
        for at in 0..36 {
            let mut torn = bytes;
            torn[at] ^= 4;
            assert_eq!(Commit::from_bytes(&torn), None, "byte {at}");
        }
        assert_eq!(Commit::from_bytes(&[0; 512]), None);
    }

    #[test]
    fn a_transition_proves_that_it_is_whole_and_the_right_one() {
        let mut place = [1, 2, 3, 4, 5, 0];
        seal(&mut place, 6, 9);
        assert_eq!(whole(&place, 9), Some((4, 5)));
        assert_eq!(whole(&place, 10), None);
        for at in 0..6 {
            let mut torn = place;
            torn[at] ^= 1;
            assert_eq!(whole(&torn, 9), None, "word {at}");
        }
        assert_eq!(whole(&[0; 6], 0), None, "a hole in the file");
        // Several at once, and what is left over.
        let mut places: Vec<u32> = (0..7 * 11).collect();
        seal(&mut places, 7, 100);
        for (place, row) in places.chunks(7).zip(100..) {
            assert_eq!(whole(place, row), Some((place[4], place[5])));
        }
    }
}
