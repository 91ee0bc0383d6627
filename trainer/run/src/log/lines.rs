//! Lines of a file that somebody else may have written: each has a bound.

use ostler_sim::files;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Result};
use std::path::Path;

/// Longest line (bytes): a record of thousands of tags.
const LONGEST: usize = 4 << 20;

/// A file, line by line.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    /// A line was too long.
    over: bool,
}

impl Lines {
    /// Opens a regular file.
    ///
    /// # Errors
    /// As [`files::open`].
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { reader: BufReader::new(files::open(path)?), line: Vec::new(), over: false })
    }

    /// The next line with its end; the last one may lack that. Of a line that is too
    /// long there is a piece, which ends with nothing, and then no more: it is no record.
    ///
    /// # Errors
    /// The system's.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>> {
        self.line.clear();
        if self.over {
            return Ok(None);
        }
        let mut piece = (&mut self.reader).take(LONGEST as u64);
        piece.read_until(b'\n', &mut self.line)?;
        self.over = self.line.len() >= LONGEST && self.line.last() != Some(&b'\n');
        Ok((!self.line.is_empty()).then_some(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_no_more_than_its_bound_and_ends_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        std::fs::write(&path, "one\n\ntwo").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        let mut next = || lines.next_line().unwrap().map(<[u8]>::to_vec);
        let text = |t: &str| Some(t.as_bytes().to_vec());
        assert_eq!(
            [next(), next(), next(), next()],
            [text("one\n"), text("\n"), text("two"), None]
        );
        // A hole of a terabyte takes no space on the disk, and would take all memory.
        let file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut lines = Lines::open(&path).unwrap();
        assert_eq!(lines.next_line().unwrap().unwrap().len(), LONGEST);
        assert_eq!(lines.next_line().unwrap(), None);
        assert!(lines.line.capacity() <= 2 * LONGEST);
        let e = Lines::open(dir.path()).unwrap_err();
        assert_eq!(e.kind(), std::io::ErrorKind::InvalidInput);
    }
}
