//! Files that grow record by record and hold whole records only.

use ostler_sim::files;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A record is no longer than this (bytes).
const LONGEST: u64 = 1 << 20;

/// Appends records; the part of a record that a failed write left is cut off again.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    /// Where the next record begins.
    length: u64,
    /// A part of a record may lie behind `length`.
    torn: bool,
}

impl Appender {
    /// Opens the file at its end; makes it if there is none.
    ///
    /// # Errors
    /// The file system's; the name is a link's, or no regular file's.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = files::append(path)?;
        Ok(Self { path: path.to_path_buf(), length: file.metadata()?.len(), file, torn: false })
    }

    /// Appends one record in one call, so that readers see it whole.
    ///
    /// # Errors
    /// The file system's, such as a full disk; a later call may succeed.
    pub fn write(&mut self, record: &[u8]) -> std::io::Result<()> {
        self.mend()?;
        let written = self.file.write_all(record);
        if written.is_ok() {
            self.length += record.len() as u64;
        } else {
            self.torn = true;
            // If it fails now, the next call tries again.
            let _ = self.mend();
        }
        written
    }

    /// The last line, with its end; empty where there is none, or one that is no text.
    ///
    /// # Errors
    /// The file system's.
    pub fn last_line(&mut self) -> std::io::Result<String> {
        self.mend()?;
        let (bytes, _) = files::end_of(&self.path, LONGEST)?;
        let end = bytes.len().saturating_sub(1);
        let begin = bytes[..end].iter().rposition(|&b| b == b'\n');
        let line = &bytes[begin.map_or(0, |at| at + 1)..];
        Ok(String::from_utf8(line.to_vec()).unwrap_or_default())
    }

    /// Takes back the last bytes of the last record.
    ///
    /// # Errors
    /// The file system's.
    pub fn take_back(&mut self, bytes: u64) -> std::io::Result<()> {
        self.length = self.length.saturating_sub(bytes);
        self.torn = true;
        self.mend()
    }

    /// Makes the file again, with all that is in it, if its name is gone; whether it was.
    ///
    /// # Errors
    /// The file system's.
    pub fn restore(&mut self) -> std::io::Result<bool> {
        restore(&self.path, &mut self.file, self.length)
    }

    /// Writes elsewhere, such as to a device that is full; gives the file it wrote to.
    #[cfg(test)]
    pub fn swap(&mut self, file: File) -> File {
        self.torn = false;
        std::mem::replace(&mut self.file, file)
    }

    fn mend(&mut self) -> std::io::Result<()> {
        if self.torn {
            self.file.set_len(self.length)?;
            self.torn = false;
        }
        Ok(())
    }
}

/// Makes the file at `path` again, with the first `length` bytes of `file`, which it was, if its
/// name is gone; whether it was. `file` is the new one then.
///
/// # Errors
/// The file system's.
pub fn restore(path: &Path, file: &mut File, length: u64) -> std::io::Result<bool> {
    match path.symlink_metadata() {
        // Its folder may have been moved, with the file.
        Err(e) if e.kind() == ErrorKind::NotFound && path.parent().is_some_and(Path::exists) => {}
        _ => return Ok(false),
    }
    file.rewind()?;
    let mut all = (&mut *file).take(length);
    // Whole or not at all: a disk that is full leaves it for the next call.
    files::replace_with(path, files::SHARED, |new| std::io::copy(&mut all, new).map(|_| ()))?;
    *file = files::append(path)?;
    Ok(true)
}

/// Keeps a log as it is under another name, before what cannot be read in it is left out, and says so.
///
/// # Errors
/// The file system's.
pub fn keep_damaged(path: &Path, name: &str, what: &str) -> std::io::Result<()> {
    let aside = path.with_file_name(name);
    // No copy: a file of holes may claim to be larger than any disk. What follows replaces `path`.
    files::replace_by_link(path, &aside)?;
    tracing::warn!(
        "{}: {what}; as it is now it is kept as {}, and what can be read goes on",
        path.display(),
        aside.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_write_left_is_cut_off_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut a = Appender::open(&path).unwrap();
        a.write(b"one\n").unwrap();
        // As a full disk leaves it.
        std::fs::write(&path, "one\ntw").unwrap();
        a.torn = true;
        a.write(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nthree\n");
        let mut again = Appender::open(&path).unwrap();
        again.write(b"four\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "one\nthree\nfour\n");
    }

    #[test]
    fn a_file_that_was_deleted_comes_back_with_what_was_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut a = Appender::open(&path).unwrap();
        a.write(b"one\n").unwrap();
        assert!(!a.restore().unwrap());
        std::fs::remove_file(&path).unwrap();
        a.write(b"two\n").unwrap();
        assert!(a.restore().unwrap());
        a.write(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_device_that_takes_nothing_is_an_error_every_time() {
        let file = File::options().append(true).open("/dev/full").unwrap();
        let mut full = Appender { path: "/dev/full".into(), file, length: 0, torn: false };
        for _ in 0..2 {
            assert!(full.write(b"x").is_err());
        }
    }
}
