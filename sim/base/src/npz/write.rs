//! Writing, into a file that appears when it is whole.

use super::NpzError;
use crate::files::{self, NewFile};
use npyz::WriterBuilder;
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Writes arrays one after the other; the file appears under its name when
/// [`finish`](Self::finish)ed.
pub struct NpzWriter {
    path: PathBuf,
    archive: zip::ZipWriter<UntilFailure<BufWriter<NewFile>>>,
}

/// A writer whose first failure is the last that it tells: an archive that is dropped after it
/// still writes its end, which goes nowhere, and would print that it could not.
struct UntilFailure<W> {
    to: W,
    failed: bool,
    /// Where the archive believes it is.
    at: u64,
}

impl<W> UntilFailure<W> {
    fn new(to: W) -> Self {
        Self { to, failed: false, at: 0 }
    }

    fn once<T>(&mut self, after: T, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Ok(after);
        }
        let done = act(&mut self.to);
        self.failed = matches!(&done, Err(e) if e.kind() != ErrorKind::Interrupted);
        done
    }

    fn into_inner(self) -> io::Result<W> {
        match self.failed {
            true => Err(io::Error::other("an earlier part could not be written")),
            false => Ok(self.to),
        }
    }
}

impl<W: Write> Write for UntilFailure<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.once(bytes.len(), |to| to.write(bytes))?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.once((), W::flush)
    }
}

impl<W: Seek> Seek for UntilFailure<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let there = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(_) => self.at,
        };
        self.at = self.once(there, |file| file.seek(to))?;
        Ok(self.at)
    }
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
        let archive = zip::ZipWriter::new(UntilFailure::new(BufWriter::new(file)));
        Ok(Self { path: path.to_path_buf(), archive })
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
    ) -> io::Result<()> {
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
    fn try_texts(&mut self, name: &str, texts: &[&str]) -> io::Result<()> {
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
            .map_err(io::Error::from)
            .and_then(UntilFailure::into_inner)
            .and_then(|file| file.into_inner().map_err(|e| e.into_error()))
            .and_then(NewFile::finish);
        done.map_err(|e| self.error(e))
    }

    fn error(&self, source: io::Error) -> NpzError {
        NpzError::File { action: "write", path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Cursor;

    /// A disk of 100 bytes, and how often it was written to.
    struct Full<'a>(Cursor<Vec<u8>>, &'a Cell<usize>);

    impl Write for Full<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.set(self.1.get() + 1);
            match self.0.get_ref().len() + bytes.len() > 100 {
                true => Err(ErrorKind::StorageFull.into()),
                false => self.0.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_full_disk_is_told_once() {
        let tried = Cell::new(0);
        let full = UntilFailure::new(Full(Cursor::new(Vec::new()), &tried));
        let mut archive = zip::ZipWriter::new(full);
        let stored =
            zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Stored);
        archive.start_file("a.npy", stored).unwrap();
        let e = archive.write_all(&[7; 200]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::StorageFull);
        let before = tried.get();
        drop(archive);
        assert_eq!(tried.get(), before);
        let mut writer = UntilFailure::new(Full(Cursor::new(Vec::new()), &tried));
        assert!(writer.write_all(&[7; 200]).is_err());
        assert_eq!(writer.write(&[7; 200]).unwrap(), 200);
        assert!(writer.into_inner().is_err());
    }
}
