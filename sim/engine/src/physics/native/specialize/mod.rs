//! Kernels compiled for one robot: the host's C++ compiler, a cache, a loader.
//!
//! Nothing is written but the cache: `$OSTLER_CACHE/kernels`, else
//! `$XDG_CACHE_HOME/ostler/kernels`, else `~/.cache/ostler/kernels`. An entry's name
//! is a hash of everything its code depends on, so that an entry never goes stale;
//! its own checksum tells whether it is whole. A missing kernel is compiled once, by
//! the first process, into a folder beside it, and renamed when it is complete.
//!
//! Reading order: [`Compiler`] -> [`Cache`] -> `child`, `build` (one compilation)
//! -> [`Library`] -> [`Specializer`], which puts them together.

mod background;
mod build;
mod cache;
mod child;
mod compiler;
mod error;
mod library;
#[cfg(test)]
mod tests;

pub use background::Background;
pub use cache::{Cache, SIZE_LIMIT};
pub(crate) use cache::{ContentHash, Lock, root};
pub use compiler::{Compiler, Optimise};
pub use error::SpecializeError;
pub use library::{Function, Library};

use super::InstructionSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// `sim.specialize`: when kernels are compiled for the robot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A kernel that is in the cache is used; one that is not is compiled in the
    /// background, for the next run.
    #[default]
    Auto,
    /// Compiled before the run starts.
    Wait,
    /// Never.
    Off,
}

/// C++ text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Code to compile.
    pub text: String,
    /// Files it includes by `#include "name"`: name (without folders) and text.
    pub headers: Vec<(String, String)>,
}

/// How far a compilation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process compiles the same kernel; for how long this one waits.
    Waiting(Duration),
    /// For how long the compiler has been running.
    Compiling(Duration),
}

/// Called about twenty times a second while something takes long; `Break` gives up.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A loaded kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The loaded code.
    pub library: Arc<Library>,
    /// Hash of source, compiler, flags, instruction set and engine version.
    pub hash: String,
}

/// The kernel of a run.
#[derive(Debug)]
pub enum Outcome {
    /// The kernel for this robot.
    Ready(Kernel),
    /// The generic kernel now; the robot's own is being compiled for the next run.
    Background(Background),
    /// The generic kernel, and why.
    Generic(SpecializeError),
}

/// Finds, compiles and loads kernels.
#[derive(Debug, Clone)]
pub struct Specializer {
    cache: Cache,
    compiler: Result<Compiler, SpecializeError>,
}

impl Specializer {
    /// With this process's environment: where the cache is, which compiler.
    ///
    /// # Errors
    /// No place for the cache. That there is no compiler is no error yet: kernels in
    /// the cache can still be [found by their hash](Self::find).
    pub fn from_environment() -> Result<Self, SpecializeError> {
        let variable = |name: &str| std::env::var_os(name);
        Ok(Self::new(Cache::from_environment(&variable)?, &variable))
    }

    /// With a cache, and a compiler from the variables given (`OSTLER_CXX`, `CXX`,
    /// `PATH`).
    pub fn new(cache: Cache, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { cache, compiler: Compiler::find(variable) }
    }

    /// The same, whose compiler optimises so much.
    pub fn optimising(mut self, optimise: Optimise) -> Self {
        if let Ok(compiler) = &mut self.compiler {
            compiler.optimise = optimise;
        }
        self
    }

    /// The compiler, or why there is none.
    pub fn compiler(&self) -> Result<&Compiler, &SpecializeError> {
        self.compiler.as_ref()
    }

    /// The hash under which a kernel would be found.
    ///
    /// # Errors
    /// No compiler: its version takes part in the hash.
    pub fn hash(
        &self,
        source: &Source,
        instructions: InstructionSet,
    ) -> Result<String, SpecializeError> {
        let compiler = self.compiler.clone()?;
        Ok(build::key(source, instructions, &compiler))
    }

    /// A kernel that is in the cache, by its hash: for a run that has to use exactly
    /// the kernel of an earlier one. Needs no compiler.
    ///
    /// # Errors
    /// It is not there, damaged, or cannot be loaded.
    pub fn find(&self, hash: &str) -> Result<Kernel, SpecializeError> {
        let (path, bytes) = self.cache.find(hash)?;
        // SAFETY: the code was compiled from what the engine generates, by a user who is
        // trusted, and these bytes have the checksum that was kept with it.
        let library = unsafe { Library::from_bytes(&path, &bytes) }?;
        Ok(Kernel { library, hash: hash.to_owned() })
    }

    /// The code of a text that sees one environment at a time, for which wider vectors have
    /// nothing to do: from the cache, or compiled now.
    ///
    /// # Errors
    /// No compiler, or one that refuses the text; it cannot be loaded.
    pub fn load_text(&self, text: String) -> Result<Kernel, SpecializeError> {
        let source = Source { text, headers: Vec::new() };
        let set = match InstructionSet::detect() {
            InstructionSet::Portable => InstructionSet::Portable,
            _ => InstructionSet::Avx2,
        };
        let mut go_on = |_| ControlFlow::Continue(());
        match self.prepare(&source, set, Mode::Wait, &mut go_on) {
            Outcome::Ready(kernel) => Ok(kernel),
            Outcome::Generic(e) => Err(e),
            // It was waited for.
            Outcome::Background(_) => Err(SpecializeError::Stopped),
        }
    }

    /// The kernel for a robot, as `mode` says. Whatever goes wrong leaves the generic
    /// kernel, with the reason.
    pub fn prepare(
        &self,
        source: &Source,
        instructions: InstructionSet,
        mode: Mode,
        progress: OnProgress<'_>,
    ) -> Outcome {
        if mode == Mode::Off {
            return Outcome::Generic(SpecializeError::Off);
        }
        let compiler = match &self.compiler {
            Ok(compiler) => compiler,
            Err(error) => return Outcome::Generic(error.clone()),
        };
        let key = build::key(source, instructions, compiler);
        match self.find(&key) {
            Ok(kernel) => return Outcome::Ready(kernel),
            Err(SpecializeError::NotCached(_)) => {}
            Err(error) => {
                tracing::warn!(target: "ostler::kernels", "{error}; it is compiled again")
            }
        }
        let job = build::Job {
            cache: self.cache.clone(),
            compiler: compiler.clone(),
            source: source.clone(),
            instructions,
            key: key.clone(),
            niceness: if mode == Mode::Auto { 10 } else { 0 },
        };
        if mode == Mode::Auto {
            // Known at once, rather than when the compilation has come so far.
            if let Err(error) = self.cache.check_writable(&key) {
                return Outcome::Generic(error);
            }
            return match Background::start(job) {
                Ok(background) => Outcome::Background(background),
                Err(error) => Outcome::Generic(error),
            };
        }
        match job.run(progress).and_then(|()| self.find(&key)) {
            Ok(kernel) => Outcome::Ready(kernel),
            Err(error) => Outcome::Generic(error),
        }
    }
}
