//! Errors of a replay buffer.

use crate::CollectError;
use crate::memory::out_of_memory;
use ostler_sim::memory::MemoryError;
use std::io;
use std::path::{Path, PathBuf};
use tch::Device;

/// An error of the replay buffer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ReplayError {
    #[error("libtorch: {0}")]
    Torch(tch::TchError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Nothing was stored yet.
    #[error("the replay buffer is empty: collect some transitions before drawing from it")]
    Empty,
    #[error("a batch has no field {name:?}; it has {}", .has.join(", "))]
    NoField { name: String, has: Vec<String> },
    /// F10.
    #[error(
        "field {name:?} is on {got:?} in a batch on {expected:?}: bring it there first, or the \
         whole batch by `Batch::to_device`"
    )]
    Device { name: String, expected: Device, got: Device },
    #[error("{what}: expected {expected}, got {got}")]
    Shape { what: String, expected: String, got: String },
    /// F9.
    #[error("field {name:?} is not in pinned memory after pinning; replay.pin_memory needs a GPU")]
    NotPinned { name: String },
    /// The caller gave nothing that pins.
    #[error("replay.pin_memory needs a GPU, whose driver gives pinned memory")]
    NoPinner,
    /// Of a program's own.
    #[error("replay.transform[{place}]: {why}")]
    Transform { place: usize, why: String },
    /// F14.
    #[error("{what} need {needs} bytes ({each} per transition), {free} are free {place}: {remedy}")]
    TooLarge { what: String, place: String, needs: u64, each: u64, free: u64, remedy: String },
    /// F13. Stored transitions stay readable; nothing has changed.
    #[error(
        "{path}: the disk is full ({source}); the {rows} newest transitions stay readable. Free \
         some space, lower replay.capacity, choose another replay.directory, or set \
         replay.on_full_disk = \"host\""
    )]
    FullDisk { path: PathBuf, rows: u64, source: io::Error },
    #[error("{path}: {what}: {source}")]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// A file of the wrong form.
    #[error("{path}: {why}")]
    Format { path: PathBuf, why: String },
    #[error("{path}: another run uses this replay buffer; choose another replay.directory")]
    Locked { path: PathBuf },
    #[error(
        "{path}: there is a replay buffer already; remove it, choose another replay.directory, or \
         resume the run that it belongs to"
    )]
    InUse { path: PathBuf },
    /// A mark or a saved state that is not of this buffer.
    #[error("the saved state of the replay buffer does not fit: {0}")]
    Saved(String),
    /// The thread that draws ahead.
    #[error("the thread that draws batches ahead ended: {0}; this is a defect, please report it")]
    Prefetch(String),
    /// The rollout could not be read.
    #[error(transparent)]
    Collect(Box<CollectError>),
}

impl From<tch::TchError> for ReplayError {
    fn from(e: tch::TchError) -> Self {
        out_of_memory(&e).map_or_else(|| Self::Torch(e), Self::Memory)
    }
}

impl From<CollectError> for ReplayError {
    fn from(e: CollectError) -> Self {
        match e {
            CollectError::Memory(e) => Self::Memory(e),
            CollectError::Torch(e) => Self::Torch(e),
            e => Self::Collect(Box::new(e)),
        }
    }
}

impl ReplayError {
    /// The allocation that failed, if one did: fewer environments or a smaller capacity may do.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Collect(e) => e.out_of_memory(),
            _ => None,
        }
    }

    /// An error of the system about a file.
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    pub(crate) fn shape(
        what: impl Into<String>,
        expected: impl std::fmt::Display,
        got: impl std::fmt::Display,
    ) -> Self {
        Self::Shape { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }
}
