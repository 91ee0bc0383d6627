//! Errors before the program runs, each with its remedies.

use crate::owner::Foreign;
use std::fmt;
use std::path::PathBuf;

const OTHER_WAYS: &str = "other ways: LIBTORCH=/path/to/a/libtorch-2.11.0, or a Python in PATH \
     that has torch 2.11.0, or OSTLER_CACHE=/folder shared with a machine where \
     `cargo run --bin train -- --fetch-only` was run";

/// A failure of set-up. The text says what to do.
#[derive(Debug)]
pub enum SetupError {
    /// Another operating system, processor or C library.
    Platform(String),
    /// The command line makes no sense to the launcher.
    Usage(String),
    /// The checkout this program was built in is gone.
    NotACheckout(PathBuf),
    /// A tensor is read where none may be.
    TensorRead {
        /// File and line.
        place: String,
        /// Its reader.
        call: &'static str,
    },
    /// A file is written where links may be followed.
    FileWritten {
        /// File and line.
        place: String,
        /// What writes it.
        call: &'static str,
    },
    /// `LIBTORCH` names something that does not serve.
    Libtorch {
        /// The variable's value.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// No home, so no place for the cache.
    NoCacheFolder,
    /// Neither `python3` nor `python` runs.
    NoPython,
    /// Python without pip.
    NoPip(String),
    /// pip did not reach its package index.
    Network {
        /// The requirement that was asked for.
        package: String,
        /// Where finished wheels are.
        kept: PathBuf,
    },
    /// Another file came than was asked for.
    Hash {
        /// The requirement that was asked for.
        package: String,
    },
    /// The cache's disk is full, or nearly.
    Space {
        /// The cache.
        folder: PathBuf,
        /// Needed, in MB.
        need_mb: u64,
        /// Free, in MB, where known.
        have_mb: Option<u64>,
    },
    /// pip failed in a way of its own.
    Pip {
        /// The requirement that was asked for.
        package: String,
        /// The end of pip's complaint.
        tail: String,
    },
    /// Unpacking gave no libtorch.
    Unpack {
        /// The cache.
        folder: PathBuf,
        /// The event.
        why: String,
    },
    /// `.libtorch/torch` is a folder of someone's own.
    LinkTaken {
        /// `.libtorch/torch`.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// Somebody else could have written code in the cache.
    Distrusted(Foreign),
    /// Somebody else could have written the referees' Python in the cache.
    DistrustedReferee(Foreign),
    /// [`owner::VARIABLE`](crate::owner::VARIABLE) names nobody.
    TrustOwner(String),
    /// torch-sys is C++.
    NoCompiler,
    /// The referees' Python could not be set up.
    Referee(String),
    /// cargo ended with an error, which it has told itself.
    Cargo {
        /// Its arguments.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// cargo built, but did not say what.
    NoProgram,
    /// Reading, writing or starting something failed.
    Io {
        /// The verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

// Written out: a derive would make the launcher wait for the crates of one.
impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Platform(this) => {
                write!(f, "Ostler runs on Linux x86-64 with glibc; this is {this}")
            }
            Self::Usage(what) => f.write_str(what),
            Self::FileWritten { place, call } => write!(
                f,
                "{place}: {call}...) follows links that a stranger may have laid\nhelp: \
                 sim/base/src/files.rs has functions that make, replace and extend files"
            ),
            Self::TensorRead { place, call } => write!(
                f,
                "{place}: {call}...) reads a tensor, which waits for its device\nhelp: \
                 collector/src/transfer.rs has functions for what the host has to know; on the \
                 device, select by `where`"
            ),
            Self::NotACheckout(path) => write!(
                f,
                "{} is no checkout of Ostler: start from inside one, with `cargo run --bin train`",
                path.display()
            ),
            Self::Libtorch { path, why } => write!(
                f,
                "LIBTORCH={} does not serve: {why}\nhelp: point it at libtorch {} (the folder \
                 with lib/ and include/), or unset it, and libtorch is found or fetched",
                path.display(),
                crate::libtorch::wheels::VERSION
            ),
            Self::NoCacheFolder => {
                f.write_str("no folder for the cache: set OSTLER_CACHE, XDG_CACHE_HOME or HOME")
            }
            Self::NoPython => write!(
                f,
                "libtorch is not on this machine, and fetching it needs Python: neither python3 \
                 nor python is in PATH\nhelp: install Python 3 with pip (Debian: apt install \
                 python3-pip); {OTHER_WAYS}"
            ),
            Self::NoPip(python) => write!(
                f,
                "libtorch is not on this machine, and fetching it needs pip: `{python} -m pip` \
                 does not run\nhelp: install pip (Debian: apt install python3-pip; elsewhere: \
                 {python} -m ensurepip); {OTHER_WAYS}"
            ),
            Self::Network { package, kept } => write!(
                f,
                "{package} could not be fetched: no connection to pip's package index (its words \
                 are above)\nhelp: check the network and the proxy (pip reads HTTPS_PROXY and \
                 PIP_INDEX_URL) and run the same command again: wheels already fetched are kept \
                 in {}; {OTHER_WAYS}",
                kept.display()
            ),
            Self::Hash { package } => write!(
                f,
                "{package} was refused: its sha256 differs from the one in \
                 xtask/src/libtorch/wheels.txt\nhelp: a mirror or proxy hands out another file; \
                 fetch from the official index (PIP_INDEX_URL); {OTHER_WAYS}"
            ),
            Self::Space { folder, need_mb, have_mb } => {
                let folder = folder.display();
                write!(
                    f,
                    "not enough space in {folder}: {need_mb} MB are needed to fetch and unpack \
                     libtorch"
                )?;
                if let Some(mb) = have_mb {
                    write!(f, ", {mb} MB are free")?;
                }
                f.write_str("\nhelp: free some, or set OSTLER_CACHE to a folder with more room")
            }
            Self::Pip { package, tail } => write!(
                f,
                "{package} could not be fetched: pip said\n{tail}\nhelp: run the same command \
                 again after mending it (a newer pip may do: python3 -m pip install --upgrade \
                 pip); {OTHER_WAYS}"
            ),
            Self::Unpack { folder, why } => {
                let folder = folder.display();
                write!(f, "the wheels could not be unpacked in {folder}: {why}")
            }
            Self::LinkTaken { path, why } => write!(
                f,
                "{} is a folder, not the launcher's link, and does not serve: {why}\nhelp: move \
                 it away",
                path.display()
            ),
            Self::Distrusted(foreign) => write!(
                f,
                "{foreign}: code that others may change is not loaded\nhelp: {}=NAME trusts a \
                 user's files; OSTLER_CACHE=/folder names a cache of your own, into which \
                 libtorch is fetched; {OTHER_WAYS}",
                crate::owner::VARIABLE
            ),
            Self::DistrustedReferee(foreign) => write!(
                f,
                "{foreign}: a Python of the referees that others may change is not started\n\
                 help: {}=NAME trusts a user's files; OSTLER_CACHE=/folder names a cache of your \
                 own, into which they are installed; {}=/path/to/python names one that has them",
                crate::owner::VARIABLE,
                crate::place::REFEREE
            ),
            Self::TrustOwner(why) => f.write_str(why),
            Self::NoCompiler => f.write_str(
                "a C++ compiler is needed to build: none of $CXX, c++, g++ is in PATH\n\
                 help: Debian: apt install g++; Fedora: dnf install gcc-c++",
            ),
            Self::Referee(why) => {
                write!(f, "the referees' Python could not be set up: {why}")
            }
            Self::Cargo { command, .. } => write!(f, "`cargo {command}` failed"),
            Self::NoProgram => f.write_str(
                "cargo built ostler but named no program; run \
                 `cargo build --release --bin ostler`",
            ),
            Self::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl SetupError {
    /// For `map_err`: the verb and the path.
    pub fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> SetupError {
        let path = path.into();
        move |source| SetupError::Io { doing, path, source }
    }

    /// Exit code: 2 for usage and set-up, cargo's own where it failed.
    pub fn exit_code(&self) -> i32 {
        match self {
            SetupError::Cargo { code, .. } => *code,
            _ => 2,
        }
    }
}
