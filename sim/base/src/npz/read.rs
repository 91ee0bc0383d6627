//! Reading: a file's claims are checked before they are used.

use super::directory;
use super::header::{Header, Kind};
use super::{Expected, NpzError};
use crate::files;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use zip::CompressionMethod;

/// All numbers that are read of one file may take so much memory (bytes).
const MOST: u64 = 1 << 30;
/// Most bytes that deflate makes of one; the rest is for what surrounds it.
const INFLATED: u64 = 1032;
/// Numbers are converted so many bytes at a time.
const PIECE: usize = 1 << 16;

/// An `.npz` file that is open for reading, or one that was read into memory.
pub struct Npz<R = BufReader<File>> {
    pub(super) path: PathBuf,
    archive: zip::ZipArchive<R>,
    /// Bytes of the file.
    length: u64,
    /// Bytes of memory that its numbers may still take.
    pub(super) room: u64,
}

/// An array that was checked, and its numbers, still packed.
pub(super) struct Entry<'a> {
    pub(super) header: Header,
    /// Numbers in all.
    pub(super) count: usize,
    rows: usize,
    columns: usize,
    reader: Box<dyn Read + 'a>,
}

impl Npz {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, is no zip archive, or has two arrays of one name.
    pub fn open(path: &Path) -> Result<Self, NpzError> {
        let unread = |source| NpzError::File { action: "read", path: path.to_path_buf(), source };
        let file = files::open(path).map_err(unread)?;
        let length = file.metadata().map_err(unread)?.len();
        Self::of(path, BufReader::new(file), length)
    }
}

impl<'a> Npz<Cursor<&'a [u8]>> {
    /// A file that was read already; `path` names it in messages.
    ///
    /// # Errors
    /// It is no zip archive, or has two arrays of one name.
    pub fn read(path: &Path, bytes: &'a [u8]) -> Result<Self, NpzError> {
        Self::of(path, Cursor::new(bytes), bytes.len() as u64)
    }
}

impl<R: Read + Seek> Npz<R> {
    fn of(path: &Path, mut file: R, length: u64) -> Result<Self, NpzError> {
        let unread = |source| NpzError::File { action: "read", path: path.to_path_buf(), source };
        let format = |why: String| NpzError::Format { path: path.to_path_buf(), why };
        if let Some(why) = directory::refusal(&mut file).map_err(unread)? {
            return Err(format(why));
        }
        let archive = zip::ZipArchive::new(file).map_err(|e| format(e.to_string()))?;
        // One of them would be read, and nobody knows which.
        if archive.len() != archive.file_names().count() {
            return Err(format("it has two entries of the same name".into()));
        }
        Ok(Self { path: path.to_path_buf(), archive, length, room: MOST })
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.archive.file_names().any(|f| npyz::npz::array_name_from_file_name(f) == Some(name))
    }

    /// Names of all arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(npyz::npz::array_name_from_file_name);
        let mut names: Vec<String> = names.map(str::to_string).collect();
        names.sort_unstable();
        names
    }

    /// A float32 or float64 array as float64, row-major, and its number of rows.
    ///
    /// # Errors
    /// There is none of that name, or of another shape or type; it is damaged; all arrays
    /// that were read of this file would take more than 1 GiB.
    pub fn floats(
        &mut self,
        name: &str,
        expected: Expected<'_>,
    ) -> Result<(Vec<f64>, usize), NpzError> {
        let entry = self.entry(name, expected, "float32 or float64", |kind| {
            matches!(kind, Kind::F4 | Kind::F8)
        })?;
        let (rows, columns, fortran) = (entry.rows, entry.columns, entry.header.fortran);
        let four = entry.header.kind == Some(Kind::F4);
        let big = entry.header.big_endian;
        let flat = match four {
            true => entry.collect(|b| single(b, big)),
            false => entry.collect(|b| double(b, big)),
        };
        let flat = flat.map_err(|e| e.named(&self.path, name))?;
        if !fortran || columns == 1 || rows == 1 {
            return Ok((flat, rows));
        }
        let mut sorted = room(flat.len()).map_err(|e| e.named(&self.path, name))?;
        let at = |i: usize| flat.get((i % columns) * rows + i / columns);
        sorted.extend((0..flat.len()).filter_map(at));
        Ok((sorted, rows))
    }

    /// The same where every number must be finite.
    ///
    /// # Errors
    /// As [`floats`](Self::floats), and a number that is not finite, with its place.
    pub fn finite(
        &mut self,
        name: &str,
        expected: Expected<'_>,
    ) -> Result<(Vec<f64>, usize), NpzError> {
        let (values, rows) = self.floats(name, expected)?;
        let columns = expected.columns.unwrap_or(1).max(1);
        if let Some((i, &value)) = values.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(NpzError::NotFinite {
                path: self.path.clone(),
                name: name.into(),
                row: i / columns,
                column: i % columns,
                value,
            });
        }
        Ok((values, rows))
    }

    /// A one-dimensional int32 array of counts.
    ///
    /// # Errors
    /// There is none of that name, of another shape or type, or with negative numbers; it
    /// is damaged, or larger than what is read.
    pub fn counts(&mut self, name: &str, rows: usize) -> Result<Vec<u32>, NpzError> {
        let expected = Expected { rows: Some(rows), columns: None, label: "" };
        let entry = self.entry(name, expected, "int32 counts", |kind| kind == Kind::I4)?;
        let big = entry.header.big_endian;
        let numbers = entry.collect(|b| {
            let word = b.try_into().unwrap_or_default();
            match big {
                true => i32::from_be_bytes(word),
                false => i32::from_le_bytes(word),
            }
        });
        let numbers = numbers.map_err(|e| e.named(&self.path, name))?;
        let wrong = |x: &i32| NpzError::Array {
            path: self.path.clone(),
            name: name.into(),
            found: format!("holds {x}"),
            expected: "int32 counts".into(),
        };
        let count = |x: &i32| u32::try_from(*x).map_err(|_| wrong(x));
        numbers.iter().map(count).collect()
    }

    /// An array, its size checked against what was expected and what the entry can hold.
    fn entry(
        &mut self,
        name: &str,
        expected: Expected<'_>,
        kinds: &str,
        right: impl Fn(Kind) -> bool,
    ) -> Result<Entry<'_>, NpzError> {
        let fits = |shape: &[u64]| {
            let size = |i: usize| shape.get(i).and_then(|n| usize::try_from(*n).ok());
            shape.len() == 1 + usize::from(expected.columns.is_some())
                && expected.columns.is_none_or(|c| size(1) == Some(c))
                && expected.rows.is_none_or(|r| size(0) == Some(r))
        };
        let entry = self.any(name, &expected.to_string(), fits, kinds, right)?;
        Ok(Entry { columns: expected.columns.unwrap_or(1), ..entry })
    }

    /// As `entry`, of any shape that `fits`; `columns` is to be set.
    pub(super) fn any(
        &mut self,
        name: &str,
        expected: &str,
        fits: impl Fn(&[u64]) -> bool,
        kinds: &str,
        right: impl Fn(Kind) -> bool,
    ) -> Result<Entry<'_>, NpzError> {
        let path = self.path.clone();
        if !self.has(name) {
            let found = match self.names().as_slice() {
                [] => "none at all".to_string(),
                names => names.join(", "),
            };
            let (name, expected) = (name.into(), expected.into());
            return Err(NpzError::Missing { path, name, expected, found });
        }
        let format = |why: String| NpzError::Format {
            path: path.clone(),
            why: format!("array {name}: {why}"),
        };
        let array = |found: String, expected: &str| NpzError::Array {
            path: path.clone(),
            name: name.into(),
            found,
            expected: expected.into(),
        };
        let file = npyz::npz::file_name_from_array_name(name);
        let entry = self.archive.by_name(&file).map_err(|e| format(e.to_string()))?;
        let (packed, unpacked) = (entry.compressed_size(), entry.size());
        let possible = match entry.compression() {
            CompressionMethod::Stored => packed == unpacked,
            CompressionMethod::Deflated => unpacked / INFLATED <= packed,
            other => return Err(format(format!("it is packed by {other}"))),
        };
        if packed > self.length || !possible {
            return Err(format(format!(
                "{packed} bytes of the file are to hold {unpacked}, which they cannot"
            )));
        }
        // No more than it claims, whatever is in it, and its end, where the checksum is.
        let mut reader = entry.take(unpacked.saturating_add(1));
        let header = Header::read(&mut reader).map_err(format)?;
        let shape = &header.shape;
        let rows = match shape.first() {
            Some(rows) => usize::try_from(*rows).ok(),
            None => Some(1),
        };
        let rows = rows
            .filter(|_| fits(shape))
            .ok_or_else(|| array(format!("has shape {shape:?}"), expected))?;
        if header.descr == "'|O'" {
            let why =
                "holds Python objects (a pickle), which could run any program and are not read";
            return Err(array(why.into(), kinds));
        }
        let kind = header.kind.filter(|kind| right(*kind));
        let kind = kind.ok_or_else(|| array(format!("holds {}", header.descr), kinds))?;
        let bytes = |width: usize| header.count()?.checked_mul(width as u64);
        let data = unpacked.saturating_sub(header.length);
        if bytes(kind.width()) != Some(data) {
            return Err(format(format!(
                "its shape {shape:?} is not that of the {data} bytes that are there"
            )));
        }
        let held = kind.width().max(8);
        let large = || NpzError::Memory {
            path: path.clone(),
            name: name.into(),
            bytes: bytes(held).unwrap_or(u64::MAX),
        };
        // A row counts where it has no numbers, too: it is looked at all the same.
        let needed = bytes(held).map(|n| n.max((rows as u64).saturating_mul(8)));
        let left = needed.and_then(|n| self.room.checked_sub(n));
        self.room = left.ok_or_else(large)?;
        let count = header.count().and_then(|n| usize::try_from(n).ok());
        let count = count.ok_or_else(large)?;
        Ok(Entry { count, header, rows, columns: 1, reader: Box::new(reader) })
    }
}

/// float32 as float64.
pub(super) fn single(bytes: &[u8], big_endian: bool) -> f64 {
    let word = bytes.try_into().unwrap_or_default();
    f64::from(match big_endian {
        true => f32::from_be_bytes(word),
        false => f32::from_le_bytes(word),
    })
}

/// float64.
pub(super) fn double(bytes: &[u8], big_endian: bool) -> f64 {
    let word = bytes.try_into().unwrap_or_default();
    match big_endian {
        true => f64::from_be_bytes(word),
        false => f64::from_le_bytes(word),
    }
}

/// Why numbers could not be had.
pub(super) enum Failure {
    Damaged(std::io::Error),
    /// For so many bytes.
    Memory(u64),
}

impl Failure {
    pub(super) fn named(self, path: &Path, name: &str) -> NpzError {
        let (path, name) = (path.to_path_buf(), name.to_string());
        match self {
            Self::Damaged(e) => NpzError::Format { path, why: format!("array {name}: {e}") },
            Self::Memory(bytes) => NpzError::Memory { path, name, bytes },
        }
    }
}

/// An empty list with room for so many numbers.
pub(super) fn room<T>(count: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>()) as u64;
    list.try_reserve_exact(count).map_err(|_| Failure::Memory(bytes))?;
    Ok(list)
}

impl Entry<'_> {
    /// All numbers in the file's order. The list grows with what is really there.
    pub(super) fn collect<T>(mut self, number: impl Fn(&[u8]) -> T) -> Result<Vec<T>, Failure> {
        let width = self.header.kind.map_or(1, Kind::width);
        let mut out: Vec<T> = room(self.count.min(PIECE))?;
        let mut piece = vec![0; PIECE];
        while out.len() < self.count {
            let n = (self.count - out.len()).min((PIECE / width).max(1));
            let bytes = piece.get_mut(..n * width).unwrap_or_default();
            self.reader.read_exact(bytes).map_err(Failure::Damaged)?;
            if out.capacity() - out.len() < n {
                let more = out.len().max(n).min(self.count - out.len());
                let whole = self.count.saturating_mul(size_of::<T>()) as u64;
                out.try_reserve_exact(more).map_err(|_| Failure::Memory(whole))?;
            }
            out.extend(bytes.chunks_exact(width).map(&number));
        }
        // Its checksum is compared where it ends.
        match self.reader.read(&mut [0]).map_err(Failure::Damaged)? {
            0 => Ok(out),
            _ => Err(Failure::Damaged(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "it is longer than it claims",
            ))),
        }
    }
}
