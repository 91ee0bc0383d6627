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

    /// What to do where a checkpoint could not be written.
    pub fn remedy(&self) -> &'static str {
        use std::io::ErrorKind::{
            NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle,
            StorageFull,
        };
        let Self::File { source, .. } = self else { return "see to its cause" };
        match source.kind() {
            StorageFull | QuotaExceeded => "free some space",
            StaleNetworkFileHandle | NotFound => {
                "the folder is no longer what it was: mount it again or move it back"
            }
            PermissionDenied | ReadOnlyFilesystem => "make the folder writable",
            _ if source.raw_os_error() == Some(libc::EIO) => {
                "the disk or its connection failed (dmesg says more): move the run to another one"
            }
            _ => "see to its cause",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_asks_for_space() {
        let remedy = |code: i32| {
            let source = std::io::Error::from_raw_os_error(code);
            CheckpointError::File { action: "write", path: "x".into(), source }.remedy()
        };
        for code in [libc::ENOSPC, libc::EDQUOT] {
            assert_eq!(remedy(code), "free some space");
        }
        for (code, said) in
            [(libc::EIO, "failed"), (libc::ESTALE, "mount"), (libc::EROFS, "writable")]
        {
            assert!(remedy(code).contains(said), "{code}: {}", remedy(code));
        }
    }
}
