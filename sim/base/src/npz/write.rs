//! Writing, into a file that appears when it is whole.

use super::NpzError;
use crate::files::{self, NewFile};
use npyz::WriterBuilder;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes arrays one after the other; the file appears under its name when
/// [`finish`](Self::finish)ed.
pub struct NpzWriter {
    path: PathBuf,
    archive: zip::ZipWriter<BufWriter<NewFile>>,
}

impl NpzWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> Result<Self, NpzError> {
        let file = NewFile::replacing(path, files::SHARED);
        let file = file.map_err(|source| NpzError::File {
            action: "write",
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Self { path: path.to_path_buf(), archive: zip::ZipWriter::new(BufWriter::new(file)) })
    }

    /// Adds an array; `shape`'s product must be the number of values.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn array<T: npyz::AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[T],
    ) -> Result<(), NpzError> {
        let result = self.try_array(name, shape, values);
        result.map_err(|e| self.error(e))
    }

    fn try_array<T: npyz::AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[T],
    ) -> std::io::Result<()> {
        let options = zip::write::FileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .large_file(values.len() > 1 << 28);
        self.archive.start_file(npyz::npz::file_name_from_array_name(name), options)?;
        let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(&shape)
            .writer(&mut self.archive)
            .begin_nd()?;
        writer.extend(values.iter().copied())?;
        writer.finish()
    }

    /// Adds a row of texts.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn texts(&mut self, name: &str, texts: &[&str]) -> Result<(), NpzError> {
        let result = self.try_texts(name, texts);
        result.map_err(|e| self.error(e))
    }

    /// npyz writes no text of four bytes a character, so the head is written here.
    fn try_texts(&mut self, name: &str, texts: &[&str]) -> std::io::Result<()> {
        let long = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0).max(1);
        let count = texts.len();
        let dict =
            format!("{{'descr': '<U{long}', 'fortran_order': False, 'shape': ({count},), }}");
        // The numbers begin at a multiple of 64 bytes, and a line ends the head.
        let head = (10 + dict.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((head as u16).to_le_bytes());
        bytes.extend(format!("{dict:<width$}\n", width = head - 1).bytes());
        for text in texts {
            let characters = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(long);
            bytes.extend(characters.flat_map(u32::to_le_bytes));
        }
        let options =
            zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        self.archive.start_file(npyz::npz::file_name_from_array_name(name), options)?;
        self.archive.write_all(&bytes)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(), NpzError> {
        let done = self
            .archive
            .finish()
            .map_err(std::io::Error::from)
            .and_then(|file| file.into_inner().map_err(|e| e.into_error()))
            .and_then(NewFile::finish);
        done.map_err(|e| self.error(e))
    }

    fn error(&self, source: std::io::Error) -> NpzError {
        NpzError::File { action: "write", path: self.path.clone(), source }
    }
}
