//! NVRTC, CUDA's compiler: found and loaded at run time.
//!
//! cudarc has bindings of NVRTC, too, but finds it by name only, in an order of its own,
//! and panics where there is none; ours is most often in a folder that the system's
//! loader does not search (beside libtorch). Hence the dozen functions of `calls`.
//!
//! Reading order: [`find`] (where it may be) -> `calls` -> [`Nvrtc`] -> [`log`] (what it
//! says).

mod calls;
pub mod find;
pub mod log;

use super::Unavailable;
use crate::physics::native::specialize::Library;
use calls::{Calls, Outcome};
use find::{Found, SearchPlace};
use log::Needs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Language and floating point, as for the host: no contraction, so that both compute
/// the same. No warnings: of what a robot does not use there are hundreds. The last makes
/// it say what each function needs.
pub const OPTIONS: [&str; 5] =
    ["--std=c++17", "--fmad=false", "-default-device", "--disable-warnings", "--ptxas-options=-v"];

/// Loaded for the life of the process.
#[derive(Debug)]
pub struct Nvrtc {
    calls: Calls,
    path: PathBuf,
    version: (u32, u32),
    /// `sm_` numbers it makes code for.
    architectures: Vec<u32>,
}

/// Result of a compilation.
#[derive(Debug)]
pub struct Output {
    /// The device's code.
    pub cubin: Vec<u8>,
    /// All that the compiler said.
    pub log: String,
}

/// Error of a compilation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The program's fault; the compiler's whole log.
    #[error("{0}")]
    Program(String),
    /// Not enough host memory.
    #[error("out of memory")]
    Memory,
    /// The compiler's own fault.
    #[error("{0}")]
    Compiler(String),
}

impl Nvrtc {
    /// The first that is found ([`find`] says where) and whose code the driver loads: one
    /// of a CUDA that is no newer in its first number. `driver` is the newest CUDA that
    /// the driver knows; without it any is taken.
    ///
    /// # Errors
    /// There is none.
    pub fn find(driver: Option<(u32, u32)>) -> Result<Self, Unavailable> {
        let variable = |name: &str| std::env::var_os(name);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self::among(&variable, &maps, driver)
    }

    fn among(
        variable: &dyn Fn(&str) -> Option<OsString>,
        maps: &str,
        driver: Option<(u32, u32)>,
    ) -> Result<Self, Unavailable> {
        if let Some(path) = variable("OSTLER_NVRTC").filter(|v| !v.is_empty()) {
            let path = PathBuf::from(path);
            let found = Self::in_folder(&path)
                .map_err(|reason| Unavailable::NamedNvrtc { path: path.clone(), reason })?;
            return found.fits(driver);
        }
        let places = find::places(variable, maps);
        let mut newer = None;
        for place in &places {
            for candidate in place.candidates() {
                match Self::open(&candidate).map(|found| found.fits(driver)) {
                    Ok(Ok(nvrtc)) => return Ok(nvrtc),
                    Ok(Err(too_new)) => newer = newer.or(Some(too_new)),
                    // Often just not there; a broken one does not hide a whole one.
                    Err(reason) => {
                        tracing::debug!(target: "ostler::kernels", "{candidate}: {reason}")
                    }
                }
            }
        }
        Err(newer.unwrap_or_else(|| Unavailable::NoNvrtc {
            tried: places.iter().map(SearchPlace::to_string).collect(),
        }))
    }

    /// From a folder, or a file.
    ///
    /// # Errors
    /// It has none, or a broken one: the system's reason.
    pub fn in_folder(path: &Path) -> Result<Self, String> {
        let mut why = "there is no libnvrtc.so in it".to_string();
        for candidate in SearchPlace::Folder(path.to_path_buf()).candidates() {
            match Self::open(&candidate) {
                Ok(found) => return Ok(found),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn fits(self, driver: Option<(u32, u32)>) -> Result<Self, Unavailable> {
        match driver {
            Some(driver) if self.version.0 > driver.0 => {
                Err(Unavailable::NvrtcTooNew { nvrtc: self.version, path: self.path, driver })
            }
            _ => Ok(self),
        }
    }

    fn open(found: &Found) -> Result<Self, String> {
        // SAFETY: NVRTC, from where this user's environment, Python or system has it.
        let library = unsafe { Library::open(found.path()) }.map_err(|e| e.to_string())?;
        let calls = Calls::of(&library)?;
        let version = calls.version()?;
        let architectures = calls.architectures()?;
        // Where it was found by its name only, the process's map of files knows more.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let path = find::mapped(&maps, found.path()).unwrap_or_else(|| found.path().into());
        // NVRTC loads its built-in functions by name when it first compiles: a library that
        // is loaded already is found under its name.
        for builtins in find::builtins(&path, version) {
            // SAFETY: it lies beside NVRTC, and is a part of it.
            match unsafe { Library::open(&builtins) } {
                Ok(library) => std::mem::forget(library),
                Err(reason) => tracing::debug!(target: "ostler::kernels", "{reason}"),
            }
        }
        // It keeps threads and thread-local memory: unloading it is not safe.
        std::mem::forget(library);
        Ok(Self { calls, path, version, architectures })
    }

    /// Major, minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it makes code for `sm_90` and the like.
    pub fn knows(&self, architecture: &str) -> bool {
        self.architectures.iter().any(|n| architecture == format!("sm_{n}"))
    }

    /// Architecture to compile for, for a device of that compute capability: itself, else the
    /// nearest before it of the same first number, whose code it runs, too.
    ///
    /// # Errors
    /// It knows none of these.
    pub fn architecture(
        &self,
        device: &str,
        (major, minor): (u32, u32),
    ) -> Result<String, Unavailable> {
        let number = major * 10 + minor;
        let fitting = self.architectures.iter().copied();
        let best = fitting.filter(|&n| n / 10 == major && n <= number).max().ok_or_else(|| {
            Unavailable::Architecture {
                nvrtc: self.version,
                path: self.path.clone(),
                device: device.to_string(),
                capability: (major, minor),
                older: self.architectures.iter().max().is_none_or(|&n| n < number),
            }
        })?;
        Ok(format!("sm_{best}"))
    }

    /// All options for an architecture.
    pub fn options(architecture: &str) -> Vec<String> {
        let mut options = vec![format!("--gpu-architecture={architecture}")];
        options.extend(OPTIONS.map(String::from));
        options
    }

    /// Compiles a text to a cubin for `sm_90` and the like. May be called from several
    /// threads at once.
    ///
    /// # Errors
    /// It does not compile.
    pub fn compile(&self, text: &str, architecture: &str) -> Result<Output, Failure> {
        let options = Self::options(architecture);
        match self.calls.compile(text, "program.cu", &options) {
            Outcome::Done { cubin, log } => Ok(Output { cubin, log }),
            Outcome::Refused { log } => Err(Failure::Program(log)),
            Outcome::OutOfMemory => Err(Failure::Memory),
            Outcome::Broken(reason) => Err(Failure::Compiler(format!(
                "NVRTC {}.{} ({}): {reason}",
                self.version.0,
                self.version.1,
                self.path.display()
            ))),
        }
    }
}

impl Output {
    /// Needs of an entry, if the log has them.
    pub fn needs(&self, entry: &str) -> Option<Needs> {
        log::needs(&self.log, entry)
    }
}
