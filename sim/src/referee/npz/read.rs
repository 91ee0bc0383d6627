//! Reading: what a file claims is checked before it is believed.

use super::{Expected, NpzError};
use npyz::{DType, NpyFile, Order, TypeChar};
use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Longest header of an array that is read: numpy's own take 128 bytes, and what
/// parses them recurses.
const MAX_HEADER: usize = 1024;

/// An `.npz` file that is open for reading.
pub struct Npz {
    path: PathBuf,
    archive: zip::ZipArchive<BufReader<File>>,
}

impl Npz {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is no zip archive.
    pub fn open(path: &Path) -> Result<Self, NpzError> {
        let file = File::open(path).map_err(|source| NpzError::File {
            action: "read",
            path: path.to_path_buf(),
            source,
        })?;
        let archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| NpzError::Format {
            path: path.to_path_buf(),
            why: e.to_string(),
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            archive,
        })
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.archive
            .file_names()
            .any(|f| npyz::npz::array_name_from_file_name(f) == Some(name))
    }

    /// A float32 or float64 array as float64, row-major, and its number of rows.
    ///
    /// # Errors
    /// There is none of that name, or of another shape or type.
    pub fn floats(
        &mut self,
        name: &str,
        expected: Expected<'_>,
    ) -> Result<(Vec<f64>, usize), NpzError> {
        let path = self.path.clone();
        let (header, rows, columns, reader) = self.entry(name, expected)?;
        let wrong = |found: String| NpzError::Array {
            path: path.clone(),
            name: name.into(),
            found,
            expected: "float32 or float64".into(),
        };
        let width = float_width(&header.dtype())
            .ok_or_else(|| wrong(format!("holds {}", header.dtype().descr())))?;
        let fortran = header.order() == Order::Fortran;
        let flat = if width == 4 {
            collect::<f32>(header, reader, &path, name)?
        } else {
            collect::<f64>(header, reader, &path, name)?
        };
        if !fortran || columns == 1 || rows == 1 {
            return Ok((flat, rows));
        }
        let at = |i: usize| flat.get((i % columns) * rows + i / columns);
        Ok(((0..flat.len()).filter_map(at).copied().collect(), rows))
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
    /// There is none of that name, of another shape or type, or with negative numbers.
    pub fn counts(&mut self, name: &str, rows: usize) -> Result<Vec<u32>, NpzError> {
        let expected = Expected {
            rows: Some(rows),
            columns: None,
            label: "",
        };
        let path = self.path.clone();
        let (header, _, _, reader) = self.entry(name, expected)?;
        let descr = header.dtype().descr();
        let wrong = |found: String| NpzError::Array {
            path: path.clone(),
            name: name.into(),
            found,
            expected: "int32 counts".into(),
        };
        let data = NpyFile::with_header(header, reader)
            .data::<i32>()
            .map_err(|_| wrong(format!("holds {descr}")))?;
        data.map(|x| {
            let x = x.map_err(|e| damaged(&path, name, &e))?;
            u32::try_from(x).map_err(|_| wrong(format!("holds {x}")))
        })
        .collect()
    }

    /// The entry's header, rows and columns, checked, and its data.
    fn entry(
        &mut self,
        name: &str,
        expected: Expected<'_>,
    ) -> Result<(npyz::NpyHeader, usize, usize, impl Read + '_), NpzError> {
        let path = self.path.clone();
        if !self.has(name) {
            let mut names: Vec<&str> = self
                .archive
                .file_names()
                .filter_map(npyz::npz::array_name_from_file_name)
                .collect();
            names.sort_unstable();
            let found = match names.as_slice() {
                [] => "none at all".to_string(),
                names => names.join(", "),
            };
            return Err(NpzError::Missing {
                path,
                name: name.into(),
                expected: expected.to_string(),
                found,
            });
        }
        let format = |why: String| NpzError::Format {
            path: path.clone(),
            why: format!("array {name}: {why}"),
        };
        let file = npyz::npz::file_name_from_array_name(name);
        let mut reader = self
            .archive
            .by_name(&file)
            .map_err(|e| format(e.to_string()))?;
        let header = header(&mut reader).map_err(format)?;
        let shape = header.shape();
        let size = |i: usize| shape.get(i).and_then(|n| usize::try_from(*n).ok());
        let fits = shape.len() == 1 + usize::from(expected.columns.is_some())
            && expected.columns.is_none_or(|c| size(1) == Some(c))
            && expected.rows.is_none_or(|r| size(0) == Some(r));
        let rows = size(0).filter(|_| fits).ok_or_else(|| NpzError::Array {
            path: path.clone(),
            name: name.into(),
            found: format!("has shape {shape:?}"),
            expected: expected.to_string(),
        })?;
        Ok((header, rows, expected.columns.unwrap_or(1), reader))
    }
}

/// The header of an array, at which the reader stands.
fn header(reader: &mut impl Read) -> Result<npyz::NpyHeader, String> {
    // Its length is in the first bytes; what parses it would believe any.
    let mut head = Vec::new();
    fill(reader, &mut head, 12)?;
    let end = match *head.as_slice() {
        [_, _, _, _, _, _, 1, _, a, b, ..] => usize::from(u16::from_le_bytes([a, b])) + 10,
        [_, _, _, _, _, _, _, _, a, b, c, d, ..] => {
            (u32::from_le_bytes([a, b, c, d]) as usize).saturating_add(12)
        }
        _ => return Err("too short".into()),
    };
    if end > MAX_HEADER {
        return Err(format!("a header of {end} bytes"));
    }
    fill(reader, &mut head, end.saturating_sub(12))?;
    // The crate multiplies the sizes it finds, whatever they are.
    catch_unwind(AssertUnwindSafe(|| {
        npyz::NpyHeader::from_reader(head.as_slice())
    }))
    .map_err(|_| "a header that makes no sense".to_string())?
    .map_err(|e| e.to_string())
}

/// Appends the next `n` bytes.
fn fill(reader: &mut impl Read, to: &mut Vec<u8>, n: usize) -> Result<(), String> {
    let at = to.len();
    to.resize(at + n, 0);
    let into = to.get_mut(at..).unwrap_or_default();
    reader.read_exact(into).map_err(|e| e.to_string())
}

/// 4 or 8 for the floats that are read.
fn float_width(dtype: &DType) -> Option<u64> {
    match dtype {
        DType::Plain(t) if t.type_char() == TypeChar::Float => {
            Some(t.size_field()).filter(|w| [4, 8].contains(w))
        }
        _ => None,
    }
}

fn damaged(path: &Path, name: &str, error: &std::io::Error) -> NpzError {
    NpzError::Format {
        path: path.to_path_buf(),
        why: format!("array {name}: {error}"),
    }
}

/// All elements in the file's order. The buffer grows with what is really there.
fn collect<T: npyz::Deserialize + Into<f64>>(
    header: npyz::NpyHeader,
    reader: impl Read,
    path: &Path,
    name: &str,
) -> Result<Vec<f64>, NpzError> {
    let n = header.len();
    let data = NpyFile::with_header(header, BufReader::new(reader))
        .data::<T>()
        .map_err(|e| NpzError::Format {
            path: path.to_path_buf(),
            why: format!("array {name}: {e}"),
        })?;
    let mut out: Vec<f64> = Vec::new();
    for x in data {
        if out.len() == out.capacity() {
            let more = out.len().max(1024);
            out.try_reserve(more).map_err(|_| NpzError::Memory {
                path: path.to_path_buf(),
                name: name.into(),
                bytes: n.saturating_mul(8),
            })?;
        }
        out.push(x.map_err(|e| damaged(path, name, &e))?.into());
    }
    Ok(out)
}
