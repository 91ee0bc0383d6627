//! Programs compiled for a GPU, kept from one start to the next.
//!
//! The cache is beside the host's kernels: `$OSTLER_CACHE/cubins`, else
//! `$XDG_CACHE_HOME/ostler/cubins`, else `~/.cache/ostler/cubins`. An entry's name is a
//! hash of everything its code depends on. Its file begins with a line about itself,
//! behind which comes the cubin.

use super::nvrtc::log::{Needs, first_error};
use super::nvrtc::{Failure, Nvrtc};
use crate::device::{CompileError, DeviceError, Program};
use crate::physics::native::specialize::{
    Cache, ContentHash, Lock, SIZE_LIMIT, SpecializeError, root,
};
use ostler_base::memory::MemoryError;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Changes when the same text means something else, or a file is laid out otherwise.
const FORMAT: &str = concat!("ostler cubin 1, engine ", env!("CARGO_PKG_VERSION"));
/// An entry's code.
const CODE: &str = "program.cubin";
/// For how long another process is waited for that compiles the same program.
const PATIENCE: Duration = Duration::from_secs(300);

/// Needs of an entry of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryNeeds {
    /// The entry.
    pub entry: String,
    /// The compiler's log.
    pub needs: Needs,
}

/// A program compiled for a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Its code.
    pub cubin: Vec<u8>,
    /// Its architecture: `sm_90`.
    pub architecture: String,
    /// The name in the cache: a hash of everything the code depends on.
    pub hash: String,
    /// Of each entry, in the program's order.
    pub needs: Vec<EntryNeeds>,
    /// How long the compiler took (s), whenever that was.
    pub seconds: f64,
    /// Compiled now, rather than found in the cache.
    pub fresh: bool,
}

/// The first line of an entry's file.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    hash: String,
    architecture: String,
    nvrtc: (u32, u32),
    seconds: f64,
    needs: Vec<EntryNeeds>,
}

/// NVRTC with a cache.
#[derive(Debug)]
pub struct Compiler {
    nvrtc: Nvrtc,
    cache: Option<Cache>,
}

impl Compiler {
    /// With the cache that this process's environment names. Without any, everything is
    /// compiled every time.
    pub fn from_environment(nvrtc: Nvrtc) -> Self {
        let cache = match root(&|name| std::env::var_os(name)) {
            Ok(root) => Some(Cache::of(CODE, root.join("cubins"), SIZE_LIMIT)),
            Err(reason) => {
                tracing::warn!(target: "ostler::kernels", "programs for the GPU are compiled at every start: {reason}");
                None
            }
        };
        Self { nvrtc, cache }
    }

    /// With a cache in this folder, of so many bytes at most.
    pub fn with_cache(nvrtc: Nvrtc, folder: &Path, limit: u64) -> Self {
        let cache = Some(Cache::of(CODE, folder.to_path_buf(), limit));
        Self { nvrtc, cache }
    }

    /// Without a cache.
    pub fn without_cache(nvrtc: Nvrtc) -> Self {
        Self { nvrtc, cache: None }
    }

    /// The compiler itself.
    pub fn nvrtc(&self) -> &Nvrtc {
        &self.nvrtc
    }

    /// The hash of everything that a program's code depends on.
    pub fn hash(&self, program: &Program, architecture: &str) -> String {
        let mut hash = ContentHash::default();
        hash.add(FORMAT.as_bytes());
        let (major, minor) = self.nvrtc.version();
        hash.add(format!("NVRTC {major}.{minor}").as_bytes());
        hash.add(Nvrtc::options(architecture).join(" ").as_bytes());
        hash.add(program.entries.join(" ").as_bytes());
        hash.add(program.text.as_bytes());
        hash.finish()
    }

    /// From the cache, else compiled and put there. A damaged entry is made again; a
    /// cache that cannot be written costs nothing but the next compilation.
    ///
    /// # Errors
    /// The program does not compile; not enough memory; the compiler is broken.
    pub fn compile(&self, program: &Program, architecture: &str) -> Result<Compiled, DeviceError> {
        let hash = self.hash(program, architecture);
        let Some(cache) = &self.cache else {
            return self.compile_now(program, architecture, hash);
        };
        match Self::find(cache, &hash) {
            Ok(found) => return Ok(found),
            Err(SpecializeError::NotCached(_)) => {}
            Err(error) => {
                tracing::warn!(target: "ostler::kernels", "{error}; it is compiled again")
            }
        }
        let unsaved = |error: SpecializeError| {
            tracing::warn!(target: "ostler::kernels", "the program for the GPU is not kept for the next start: {error}");
        };
        let mut wait = |waited| match waited {
            waited if waited > PATIENCE => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let lock = cache.lock(&hash, &mut wait).map_err(unsaved).ok();
        if lock.is_some()
            && let Ok(found) = Self::find(cache, &hash)
        {
            // Another process was faster.
            return Ok(found);
        }
        let compiled = self.compile_now(program, architecture, hash)?;
        if let Some(lock) = lock
            && let Err(error) = self.keep(cache, lock, &compiled)
        {
            unsaved(error);
        }
        Ok(compiled)
    }

    fn compile_now(
        &self,
        program: &Program,
        architecture: &str,
        hash: String,
    ) -> Result<Compiled, DeviceError> {
        tracing::info!(target: "ostler::kernels", "compiling the environments' program for {architecture}: seconds, once for each robot, task and kind of GPU");
        let start = Instant::now();
        let output = self
            .nvrtc
            .compile(&program.text, architecture)
            .map_err(|failure| refused(failure, program, architecture))?;
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!(target: "ostler::kernels", "the environments' program was compiled for {architecture} in {seconds:.1} s");
        let needs = |entry: &String| {
            let needs = output.needs(entry).ok_or_else(|| {
                DeviceError::Defect(format!(
                    "the compiler does not say what the entry `{entry}` needs"
                ))
            })?;
            Ok(EntryNeeds { entry: entry.clone(), needs })
        };
        Ok(Compiled {
            needs: program.entries.iter().map(needs).collect::<Result<_, DeviceError>>()?,
            cubin: output.cubin,
            architecture: architecture.to_string(),
            hash,
            seconds,
            fresh: true,
        })
    }

    /// An entry that is there, whole and of this name.
    fn find(cache: &Cache, hash: &str) -> Result<Compiled, SpecializeError> {
        let (path, bytes) = cache.find(hash)?;
        let end = bytes.iter().position(|&b| b == b'\n');
        let header = end.and_then(|end| serde_json::from_slice::<Header>(&bytes[..end]).ok());
        match (header, end) {
            (Some(header), Some(end)) if header.format == FORMAT && header.hash == hash => {
                Ok(Compiled {
                    cubin: bytes[end + 1..].to_vec(),
                    architecture: header.architecture,
                    hash: header.hash,
                    needs: header.needs,
                    seconds: header.seconds,
                    fresh: false,
                })
            }
            _ => Err(SpecializeError::Foreign(path)),
        }
    }

    fn keep(&self, cache: &Cache, lock: Lock, compiled: &Compiled) -> Result<(), SpecializeError> {
        let building = cache.building(lock)?;
        let header = Header {
            format: FORMAT.into(),
            hash: compiled.hash.clone(),
            architecture: compiled.architecture.clone(),
            nvrtc: self.nvrtc.version(),
            seconds: compiled.seconds,
            needs: compiled.needs.clone(),
        };
        building.write(serde_json::to_vec(&header).map(|mut bytes| {
            bytes.push(b'\n');
            bytes.extend_from_slice(&compiled.cubin);
            bytes
        }))?;
        let (major, minor) = self.nvrtc.version();
        building.publish(&format!(
            "{FORMAT}\nNVRTC {major}.{minor}\n{}\n",
            Nvrtc::options(&compiled.architecture).join(" ")
        ))
    }
}

fn refused(failure: Failure, program: &Program, architecture: &str) -> DeviceError {
    match failure {
        Failure::Program(log) => {
            let message = first_error(&log).to_string();
            DeviceError::Compile(CompileError {
                target: architecture.to_string(),
                place: program.place_in(&message),
                message,
                log,
            })
        }
        Failure::Memory => DeviceError::Memory(MemoryError {
            what: "the compilation of the environments' program (host memory)".into(),
            bytes: 0,
        }),
        Failure::Compiler(reason) => DeviceError::Unavailable(format!(
            "the environments' program cannot be compiled: {reason}; install NVRTC again, or name another one's folder in OSTLER_NVRTC"
        )),
    }
}
