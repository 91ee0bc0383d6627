//! numpy's `.npz` files: arrays of floats, of whole numbers and of text.
//!
//! A file's claims are checked before anything is allocated: an array must have
//! the shape that the caller expects, its bytes must be there, and all that is read of a
//! file together has a bound.

mod any;
mod directory;
mod header;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use any::Numbers;
pub use read::Npz;
use std::path::PathBuf;
pub use write::NpzWriter;

/// Why an `.npz` file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum NpzError {
    /// The file system refuses.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// "read", "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Not a zip archive, or a damaged one.
    #[error("{path} is no .npz file: {why}; numpy.savez writes one")]
    Format {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// An array is not there.
    #[error("{path} has no array \"{name}\" (expected {expected}); it has {found}")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Expected shape.
        expected: String,
        /// Names of the arrays there are.
        found: String,
    },
    /// An array of the wrong form.
    #[error("{path}: {name} {found}, expected {expected}")]
    Array {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The found shape.
        found: String,
        /// The expected shape.
        expected: String,
    },
    /// A number is not finite.
    #[error("{path}: {name}[{row},{column}] is {value}, expected finite numbers")]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Row (the state).
        row: usize,
        /// Column.
        column: usize,
        /// The number.
        value: f64,
    },
    /// More than memory holds, or than is read of one file.
    #[error(
        "{path}: {name} needs {bytes} bytes of memory, which are more than there are or than is read of one file (1 GiB); split it into several"
    )]
    Memory {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its size.
        bytes: u64,
    },
}

/// An array's shape as a caller expects it.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Rows, if known already.
    pub rows: Option<usize>,
    /// Columns; `None`: the array has one dimension.
    pub columns: Option<usize>,
    /// The columns' name, for messages: "nq".
    pub label: &'a str,
}

impl std::fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.columns {
            Some(columns) => write!(f, "shape [K,{0}] with {0} = {columns}", self.label)?,
            None => write!(f, "shape [K]")?,
        }
        if let Some(rows) = self.rows {
            write!(f, " and K = {rows} as in the array before")?;
        }
        Ok(())
    }
}
