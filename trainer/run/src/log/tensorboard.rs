//! TensorBoard event files: scalars only, written without protobuf's machinery.
//!
//! A file is a sequence of TFRecords (TensorFlow, "TFRecord and tf.train.Example",
//! section "TFRecords format details"): length `u64`, masked CRC-32C of the length
//! `u32`, data, masked CRC-32C of the data `u32`, all little-endian. The data are
//! `Event` messages (tensorflow/core/util/event.proto), of which four fields are
//! used: `wall_time` = 1, `step` = 2, `file_version` = 3, `summary` = 5; a summary
//! is repeated `value` = 1 with `tag` = 1 and `simple_value` = 2.

use super::append::{Appender, keep_damaged};
use ostler_sim::files;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The file's name within a run's folder. TensorBoard looks for `tfevents`.
pub const FILE_NAME: &str = "events.out.tfevents.0.ostler";

/// Longest record that is believed; ours are a few kilobytes.
const MAX_RECORD: u64 = 1 << 26;

/// An event file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {action} the TensorBoard file {}: {source}; check that the folder can be written and the disk is not full",
    path.display()
)]
pub struct EventError {
    /// "write", "read", ...
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: std::io::Error,
}

/// Appends scalars to an event file.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: Appender,
    /// The record being built; kept, so that a write allocates nothing.
    record: Vec<u8>,
    summary: Vec<u8>,
}

impl EventWriter {
    /// Starts a new file in `dir`, over one that may be there.
    pub fn create(dir: &Path) -> Result<Self, EventError> {
        let path = dir.join(FILE_NAME);
        let file = files::replace(&path, files::SHARED, b"")
            .and_then(|()| Appender::open(&path))
            .map_err(at("create", &path))?;
        let mut writer = Self::over(path, file);
        writer.begin(now());
        put_bytes(&mut writer.record, 3, b"brain.Event:2");
        writer.end()?;
        Ok(writer)
    }

    /// Goes on with the file in `dir` after dropping records after `step` (and a half-written
    /// record at the end); creates it if there is none.
    pub fn resume(dir: &Path, step: i64) -> Result<Self, EventError> {
        let path = dir.join(FILE_NAME);
        if !path.exists() {
            return Self::create(dir);
        }
        truncate_to_step(&path, step)?;
        if std::fs::metadata(&path).map_err(at("read", &path))?.len() == 0 {
            return Self::create(dir);
        }
        let file = Appender::open(&path).map_err(at("open", &path))?;
        Ok(Self::over(path, file))
    }

    fn over(path: PathBuf, file: Appender) -> Self {
        Self { path, file, record: Vec::with_capacity(4096), summary: Vec::with_capacity(4096) }
    }

    /// [`Appender::restore`].
    ///
    /// # Errors
    /// The file system's.
    pub fn restore(&mut self) -> std::io::Result<bool> {
        self.file.restore()
    }

    /// Writes one event with all `scalars` at `step` and hands it to the system.
    ///
    /// `wall_time` is in seconds since 1970 ([`now`]).
    pub fn scalars<'a>(
        &mut self,
        step: i64,
        wall_time: f64,
        scalars: impl IntoIterator<Item = (&'a str, f32)>,
    ) -> Result<(), EventError> {
        self.begin(wall_time);
        put_key(&mut self.record, 2, VARINT);
        put_varint(&mut self.record, step as u64);
        self.summary.clear();
        for (tag, value) in scalars {
            // A value message: 1 + varint(length) + tag, then 1 + 4 bytes of float.
            let length = 1 + varint_len(tag.len() as u64) + tag.len() + 5;
            put_key(&mut self.summary, 1, BYTES);
            put_varint(&mut self.summary, length as u64);
            put_bytes(&mut self.summary, 1, tag.as_bytes());
            put_key(&mut self.summary, 2, FIXED32);
            self.summary.extend_from_slice(&value.to_le_bytes());
        }
        put_bytes(&mut self.record, 5, &self.summary);
        self.end()
    }

    /// Leaves room for the record's header and writes the time.
    fn begin(&mut self, wall_time: f64) {
        self.record.clear();
        self.record.extend_from_slice(&[0; 12]);
        put_key(&mut self.record, 1, FIXED64);
        self.record.extend_from_slice(&wall_time.to_le_bytes());
    }

    /// Frames the record and writes it in one call, so that readers see it whole.
    fn end(&mut self) -> Result<(), EventError> {
        let length = (self.record.len() as u64 - 12).to_le_bytes();
        self.record[..8].copy_from_slice(&length);
        self.record[8..12].copy_from_slice(&masked_crc(&length).to_le_bytes());
        let crc = masked_crc(&self.record[12..]);
        self.record.extend_from_slice(&crc.to_le_bytes());
        self.file.write(&self.record).map_err(at("write", &self.path))
    }
}

/// Seconds since 1970.
pub fn now() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

/// Drops events after `step`, damaged ones, and everything behind one whose length is damaged;
/// then the file is kept as it was beside it.
///
/// The kept records are written to a temporary file that then takes the place of
/// the old one: a crash in between leaves one of the two, whole. One record at a time is
/// in memory: the file may be somebody else's, and of any size.
pub fn truncate_to_step(path: &Path, step: i64) -> Result<(), EventError> {
    let open = || files::open(path).map(BufReader::new);
    let length = || open()?.get_ref().metadata().map(|m| m.len());
    let kept = |record: &Record| event_step(record.data()).unwrap_or(0) <= step;
    let mut damaged = false;
    let all: u64 = records(open().map_err(at("read", path))?, &mut damaged)
        .filter(kept)
        .map(|record| record.0.len() as u64)
        .sum();
    if all == length().map_err(at("read", path))? {
        return Ok(());
    }
    if damaged {
        // TensorBoard would look into one that had `tfevents` in its name.
        let kept = keep_damaged(path, "events.damaged", "some of its records are damaged");
        kept.map_err(at("copy", path))?;
    }
    let put = |file: &mut File| {
        let mut out = BufWriter::new(file);
        for record in records(open()?, &mut false).filter(kept) {
            out.write_all(&record.0)?;
        }
        out.flush()
    };
    files::replace_with(path, files::SHARED, put).map_err(at("truncate", path))
}

/// One record of an event file: header, data and checksum.
struct Record(Vec<u8>);

impl Record {
    /// The event.
    fn data(&self) -> &[u8] {
        let end = self.0.len().saturating_sub(4);
        self.0.get(12..end).unwrap_or_default()
    }
}

/// The whole records of a file, up to the first that is cut short or whose length is damaged;
/// `damaged`: whether some are.
fn records(mut from: impl Read, damaged: &mut bool) -> impl Iterator<Item = Record> {
    let mut next = move || {
        let mut record = Vec::new();
        let mut more = |record: &mut Vec<u8>, n: u64| {
            let got = from.by_ref().take(n).read_to_end(record).ok()?;
            (got as u64 == n).then_some(())
        };
        more(&mut record, 12)?;
        let length = u64::from_le_bytes(record[..8].try_into().ok()?);
        let length_crc = u32::from_le_bytes(record[8..12].try_into().ok()?);
        if length_crc != masked_crc(&record[..8]) || length > MAX_RECORD {
            return Some(Err(true));
        }
        // It grows with what is there, whatever the length claims.
        more(&mut record, length + 4)?;
        let record = Record(record);
        let data_crc = record.0.last_chunk().map(|b| u32::from_le_bytes(*b));
        match data_crc == Some(masked_crc(record.data())) {
            true => Some(Ok(record)),
            false => Some(Err(false)),
        }
    };
    std::iter::from_fn(move || {
        loop {
            match next()? {
                Ok(record) => return Some(record),
                Err(lost) => {
                    *damaged = true;
                    if lost {
                        return None;
                    }
                }
            }
        }
    })
}

/// The `step` field of an event, if it has one (0 is left out by some writers).
fn event_step(mut data: &[u8]) -> Option<i64> {
    while !data.is_empty() {
        let key = take_varint(&mut data)?;
        match key & 7 {
            VARINT => {
                let value = take_varint(&mut data)?;
                if key >> 3 == 2 {
                    return Some(value as i64);
                }
            }
            FIXED64 => data = data.get(8..)?,
            FIXED32 => data = data.get(4..)?,
            BYTES => {
                let length = usize::try_from(take_varint(&mut data)?).ok()?;
                data = data.get(length..)?;
            }
            _ => return None,
        }
    }
    None
}

/// CRC-32C, rotated and offset as TFRecord wants it, so that a checksum of data
/// that hold checksums stays strong.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

fn put_key(out: &mut Vec<u8>, field: u64, wire: u64) {
    put_varint(out, field << 3 | wire);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Seven bits a byte, the lowest first, the top bit set on all but the last.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn take_varint(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn at<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> EventError + 'a {
    move |source| EventError { action, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(path: &Path) -> Vec<i64> {
        let bytes = std::fs::read(path).unwrap();
        let step = |r: Record| event_step(r.data()).unwrap_or(0);
        records(&bytes[..], &mut false).map(step).collect()
    }

    #[test]
    fn checksum_is_crc32c_masked() {
        // CRC-32C's check value (RFC 3720, B.4: 32 bytes of zeros -> aa 36 91 8a).
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        // By hand: (crc >> 15 | crc << 17) + 0xa282ead8.
        assert_eq!(masked_crc(&[0; 32]), 0x0fd7_fffa);
    }

    #[test]
    fn an_event_has_exactly_these_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(dir.path()).unwrap();
        writer.scalars(300, 1.5, [("a", 2.0)]).unwrap();
        let bytes = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
        let all: Vec<_> = records(&bytes[..], &mut false).collect();
        assert_eq!(all.len(), 2);
        // Encoded by hand from event.proto and summary.proto.
        assert_eq!(&all[0].data()[9..], b"\x1a\x0dbrain.Event:2");
        let expected = [
            &[0x09][..],
            &1.5f64.to_le_bytes(),
            &[0x10, 0xac, 0x02], // step 300
            &[0x2a, 10, 0x0a, 8, 0x0a, 1, b'a', 0x15],
            &2.0f32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(all[1].data(), expected);
    }

    #[test]
    fn resume_drops_later_steps_and_a_torn_tail() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut writer = EventWriter::create(dir.path()).unwrap();
        for step in 1..=5 {
            writer.scalars(step, 0.0, [("x", step as f32)]).unwrap();
        }
        drop(writer);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let mut writer = EventWriter::resume(dir.path(), 3).unwrap();
        writer.scalars(4, 0.0, [("x", 40.0)]).unwrap();
        assert_eq!(steps(&path), [0, 1, 2, 3, 4]);
        // A torn tail alone goes too, even when no step is dropped.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        drop(EventWriter::resume(dir.path(), 100).unwrap());
        assert_eq!(steps(&path), [0, 1, 2, 3]);
    }

    #[test]
    fn a_damaged_record_costs_itself_and_the_file_is_kept_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut writer = EventWriter::create(dir.path()).unwrap();
        let mut ends = Vec::new();
        for step in 1..=5 {
            writer.scalars(step, 0.0, [("x", step as f32)]).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
        drop(writer);
        let whole = std::fs::read(&path).unwrap();
        let aside = dir.path().join("events.damaged");
        // The third's data, and the length of the fourth.
        for (at, left) in [(ends[1] + 20, vec![0, 1, 2, 4, 5]), (ends[2], vec![0, 1, 2, 3])] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            drop(EventWriter::resume(dir.path(), 5).unwrap());
            assert_eq!(steps(&path), left);
            assert_eq!(std::fs::read(&aside).unwrap(), bytes);
        }
    }

    #[test]
    fn garbage_is_replaced_by_a_fresh_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        std::fs::write(&path, [0xff; 100]).unwrap();
        drop(EventWriter::resume(dir.path(), 3).unwrap());
        assert_eq!(steps(&path), [0]);
    }

    proptest::proptest! {
        #[test]
        fn damaged_files_never_panic(bytes in proptest::collection::vec(0u8.., 0..200)) {
            for record in records(&bytes[..], &mut false) {
                event_step(record.data());
            }
            event_step(&bytes);
        }

        #[test]
        fn varints_read_back(value: u64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            proptest::prop_assert_eq!(bytes.len(), varint_len(value));
            proptest::prop_assert_eq!(take_varint(&mut &bytes[..]), Some(value));
        }
    }
}
