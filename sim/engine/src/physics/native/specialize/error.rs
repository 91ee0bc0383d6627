//! Why there is no kernel for the robot.

use ostler_base::owner::Foreign;
use std::path::{Path, PathBuf};

/// Why a run gets the generic kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecializeError {
    /// Nobody asked.
    #[error("sim.specialize = \"off\"")]
    Off,
    /// No C++ compiler.
    #[error(
        "no C++ compiler found (tried {tried}); install g++ or clang++, or set OSTLER_CXX to one"
    )]
    NoCompiler {
        /// The wanted file.
        tried: String,
    },
    /// The compiler that was named does not run.
    #[error("the C++ compiler `{command}` does not run: {reason}; set OSTLER_CXX to one that does")]
    CompilerDoesNotRun {
        /// As given.
        command: String,
        /// The event.
        reason: String,
    },
    /// `OSTLER_OPTIMISE` has an unknown value.
    #[error("OSTLER_OPTIMISE=`{value}` is neither full nor little")]
    Optimise {
        /// As given.
        value: String,
    },
    /// The compiler lacks a feature that kernels need.
    #[error(
        "{version} lacks C++17 or GNU vector extensions; set OSTLER_CXX to g++ 9, clang++ 12 \
         or newer. It says:\n{message}"
    )]
    Unsuitable {
        /// First line of its `--version`.
        version: String,
        /// First lines of its errors.
        message: String,
    },
    /// The compiler refused the kernel.
    #[error("{version} did not compile the kernel ({status}):\n{message}")]
    Failed {
        /// First line of its `--version`.
        version: String,
        /// Its exit status.
        status: String,
        /// First lines of its errors.
        message: String,
    },
    /// No place for the cache.
    #[error("no folder for compiled kernels: set OSTLER_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// The cache cannot be read or written.
    #[error("cannot {what} {path} in the cache of compiled kernels: {reason}; set OSTLER_CACHE to a folder that can be written", path = path.display())]
    Cache {
        /// Read, write, lock, ...
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// There is no such kernel.
    #[error("kernel {0} is not in the cache of compiled kernels")]
    NotCached(String),
    /// The file is not as it was written.
    #[error("kernel {path} is damaged (its checksum differs)", path = .0.display())]
    Damaged(PathBuf),
    /// Somebody else could have written the code.
    #[error(
        "compiled code is not loaded: {0}; {variable}=NAME trusts a user's files, OSTLER_CACHE=FOLDER names another cache",
        variable = ostler_base::owner::VARIABLE
    )]
    Distrusted(Foreign),
    /// `OSTLER_TRUST_OWNER` names nobody.
    #[error("{0}")]
    TrustOwner(String),
    /// The file was written for something else.
    #[error("kernel {path} is another one's", path = .0.display())]
    Foreign(PathBuf),
    /// The system's loader refused.
    #[error("cannot load {path}: {reason}", path = path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// Given up on request.
    #[error("the compilation of the kernel was stopped")]
    Stopped,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}

impl SpecializeError {
    pub(crate) fn cache(
        what: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |error| Self::Cache { what, path, reason: error.to_string() }
    }
}
