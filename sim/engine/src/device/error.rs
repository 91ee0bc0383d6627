//! Errors of a device.

use ostler_base::memory::MemoryError;
use ostler_base::snapshot::SnapshotError;

/// A device that refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Out of memory: fewer environments may do.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A program that does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// There is no such device, or it cannot be used here.
    #[error("{0}")]
    Unavailable(String),
    /// The driver refused a call.
    #[error("CUDA error: {name} ({code}) from {call}: {message}")]
    Driver {
        /// The function: `cuLaunchKernel`.
        call: &'static str,
        /// Its number.
        code: i32,
        /// Its name: `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
        /// The driver's sentence.
        message: String,
    },
    /// A defect of this program.
    #[error("{0}; this is a defect, please report it")]
    Defect(String),
}

/// A program that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environments' program does not compile for {target}: {message}{}",
    .place.as_ref().map(|(name, text)| format!("\n  in {name} = \"{text}\"")).unwrap_or_default())]
pub struct CompileError {
    /// `sm_90`, or the host's compiler.
    pub target: String,
    /// The compiler's first error.
    pub message: String,
    /// The part of a user's file that it is in: name and text.
    pub place: Option<(String, String)>,
    /// All that the compiler said.
    pub log: String,
}

impl DeviceError {
    /// The allocation that failed, if one did.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            _ => None,
        }
    }
}

impl From<DeviceError> for SnapshotError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Memory(e) => Self::Memory(e),
            other => Self::Unfit(other.to_string()),
        }
    }
}
