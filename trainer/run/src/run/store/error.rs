//! Why a checkpoint could not be written or read.

use ostler_collector::memory::out_of_memory;
use ostler_sim::memory::MemoryError;
use std::path::PathBuf;

/// Why a checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file system refused.
    #[error("cannot {action} the checkpoint {path}: {source}")]
    File {
        /// The attempt.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a whole checkpoint of this program.
    #[error("{path} cannot be used: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The mistake and its remedy.
        why: String,
    },
    /// libtorch refused to copy a tensor.
    #[error("libtorch: {0}")]
    Torch(tch::TchError),
    /// Out of memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl From<tch::TchError> for CheckpointError {
    fn from(e: tch::TchError) -> Self {
        out_of_memory(&e).map_or_else(|| Self::Torch(e), Self::Memory)
    }
}

impl CheckpointError {
    /// The failed allocation, if that is why.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            _ => None,
        }
    }
}
