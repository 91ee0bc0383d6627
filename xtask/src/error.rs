//! What can go wrong before the program runs, each with its ways out.

use std::path::PathBuf;

const OTHER_WAYS: &str = "other ways: LIBTORCH=/path/to/a/libtorch-2.11.0, or a Python in PATH \
     that has torch 2.11.0, or OSTLER_CACHE=/folder shared with a machine where \
     `cargo run --bin train -- --fetch-only` was run";

/// A failure of set-up. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Another operating system, processor or C library.
    #[error("Ostler runs on Linux x86-64 with glibc; this is {0}")]
    Platform(String),
    /// The command line makes no sense to the launcher.
    #[error("{0}")]
    Usage(String),
    /// The checkout this program was built in is gone.
    #[error("{0} is no checkout of Ostler: start from inside one, with `cargo run --bin train`")]
    NotACheckout(PathBuf),
    /// `LIBTORCH` names something that does not serve.
    #[error(
        "LIBTORCH={path} does not serve: {why}\nhelp: point it at libtorch {version} (the folder \
         with lib/ and include/), or unset it, and libtorch is found or fetched",
        path = path.display(), version = crate::libtorch::VERSION
    )]
    Libtorch {
        /// The variable's value.
        path: PathBuf,
        /// What is wrong there.
        why: String,
    },
    /// No home, so no place for the cache.
    #[error("no folder for the cache: set OSTLER_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// Neither `python3` nor `python` runs.
    #[error(
        "libtorch is not on this machine, and fetching it needs Python: neither python3 nor python \
         is in PATH\nhelp: install Python 3 with pip (Debian: apt install python3-pip); {OTHER_WAYS}"
    )]
    NoPython,
    /// Python without pip.
    #[error(
        "libtorch is not on this machine, and fetching it needs pip: `{0} -m pip` does not run\n\
         help: install pip (Debian: apt install python3-pip; elsewhere: {0} -m ensurepip); {OTHER_WAYS}"
    )]
    NoPip(String),
    /// pip did not reach its package index.
    #[error(
        "{package} could not be fetched: no connection to pip's package index (its words are above)\n\
         help: check the network and the proxy (pip reads HTTPS_PROXY and PIP_INDEX_URL) and run the \
         same command again: wheels already fetched are kept in {kept}; {OTHER_WAYS}",
        kept = kept.display()
    )]
    Network {
        /// The requirement that was asked for.
        package: String,
        /// Where finished wheels are.
        kept: PathBuf,
    },
    /// What came is not what was asked for.
    #[error(
        "{package} was refused: its sha256 differs from the one in xtask/src/libtorch/wheels.txt\n\
         help: a mirror or proxy hands out another file; fetch from the official index \
         (PIP_INDEX_URL); {OTHER_WAYS}"
    )]
    Hash {
        /// The requirement that was asked for.
        package: String,
    },
    /// The cache's disk is full, or nearly.
    #[error(
        "not enough space in {folder}: {need_mb} MB are needed to fetch and unpack libtorch{have}\n\
         help: free some, or set OSTLER_CACHE to a folder with more room",
        folder = folder.display(),
        have = have_mb.map(|mb| format!(", {mb} MB are free")).unwrap_or_default()
    )]
    Space {
        /// The cache.
        folder: PathBuf,
        /// Needed, in MB.
        need_mb: u64,
        /// Free, in MB, where known.
        have_mb: Option<u64>,
    },
    /// pip failed in a way of its own.
    #[error(
        "{package} could not be fetched: pip said\n{tail}\nhelp: run the same command again after \
         mending it (a newer pip may do: python3 -m pip install --upgrade pip); {OTHER_WAYS}"
    )]
    Pip {
        /// The requirement that was asked for.
        package: String,
        /// The end of pip's complaint.
        tail: String,
    },
    /// Unpacking gave no libtorch.
    #[error("the wheels could not be unpacked in {folder}: {why}", folder = folder.display())]
    Unpack {
        /// The cache.
        folder: PathBuf,
        /// What happened.
        why: String,
    },
    /// `.libtorch/torch` is a folder of someone's own.
    #[error(
        "{path} is a folder, not the launcher's link, and does not serve: {why}\nhelp: move it away",
        path = path.display()
    )]
    LinkTaken {
        /// `.libtorch/torch`.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// torch-sys is C++.
    #[error(
        "a C++ compiler is needed to build: none of $CXX, c++, g++ is in PATH\n\
         help: Debian: apt install g++; Fedora: dnf install gcc-c++"
    )]
    NoCompiler,
    /// The referees' Python could not be set up.
    #[error("the referees' Python could not be set up: {0}")]
    Referee(String),
    /// cargo ended with an error, which it has told itself.
    #[error("`cargo {command}` failed")]
    Cargo {
        /// Its arguments.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// cargo built, but did not say what.
    #[error("cargo built ostler but named no program; run `cargo build --release --bin ostler`")]
    NoProgram,
    /// Reading, writing or starting something failed.
    #[error("{doing} {path}: {source}", path = path.display())]
    Io {
        /// The verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl SetupError {
    /// For `map_err`: the verb and the path.
    pub fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> SetupError {
        let path = path.into();
        move |source| SetupError::Io {
            doing,
            path,
            source,
        }
    }

    /// Exit code: 2 for usage and set-up, cargo's own where it failed.
    pub fn exit_code(&self) -> i32 {
        match self {
            SetupError::Cargo { code, .. } => *code,
            _ => 2,
        }
    }
}
