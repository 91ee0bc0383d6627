//! MJCF files -> [`Model`](super::Model), strictly.

use super::Model;
use std::path::Path;

/// Why a model file was refused. `Display` is `file:line:column: message`.
#[derive(Debug, thiserror::Error)]
pub enum MjcfError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file says something that is wrong or not supported.
    #[error("{place}: {message}")]
    Invalid {
        /// `file:line:column`.
        place: String,
        /// What is wrong and what to write instead.
        message: String,
    },
}

/// Reads an MJCF file.
pub fn load(_path: &Path) -> Result<Model, MjcfError> {
    todo!()
}
