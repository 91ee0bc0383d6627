//! Writing, into a file that appears when it is whole.

use super::NpzError;
use npyz::WriterBuilder;
use ostler_base::files::{self, NewFile};
use std::io::BufWriter;
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
