//! The host's stand-in for a device: the same program, compiled by the host's compiler,
//! run by the calling thread. It is how programs are tested where there is no GPU.

use super::counts::Counts;
use super::transfer::Staging;
use super::{Address, CompileError, Device, DeviceError, Kernels, MAX_ARGUMENTS, Program, Traffic};
use crate::physics::native::specialize::{Function, Optimise, SpecializeError, Specializer};
use ostler_base::memory::zeroed;
use std::ffi::c_void;
use std::os::raw::c_longlong;
use std::sync::Arc;

/// Runs programs on the host, one thread after the other.
#[derive(Debug, Default)]
pub struct Host {
    counts: Arc<Counts>,
}

impl Host {
    fn loaded(&self, program: &Program) -> Result<Loaded, DeviceError> {
        let failed = |e: SpecializeError| DeviceError::Compile(explain(&e.to_string(), program));
        let specializer = Specializer::from_environment().map_err(failed)?;
        let specializer = specializer.optimising(Optimise::Quickly);
        let kernel = specializer.load_text(program.text.clone()).map_err(failed)?;
        let mut entries = Vec::new();
        for name in &program.entries {
            // SAFETY: on a host entries have this signature (`entries.cuh`).
            let entry = unsafe { kernel.library.function::<Entry>(name) };
            entries.push(entry.map_err(failed)?);
        }
        Ok(Loaded { entries, hash: kernel.hash, counts: Arc::clone(&self.counts) })
    }
}

/// `extern "C" void NAME(const void* args, long long first, long long end)` of
/// `sim/kernels/env/entries.cuh`.
type Entry = unsafe extern "C" fn(*const c_void, c_longlong, c_longlong);

#[derive(Debug)]
struct Loaded {
    entries: Vec<Function<Entry>>,
    hash: String,
    counts: Arc<Counts>,
}

impl Device for Host {
    fn name(&self) -> String {
        "the host's processor, in place of a GPU".into()
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Kernels>, DeviceError> {
        Ok(Arc::new(self.loaded(program)?))
    }

    fn staging(&self, what: &str, bytes: usize) -> Result<Box<dyn Staging>, DeviceError> {
        Ok(Box::new(Copy { bytes: zeroed(what, bytes)?, counts: Arc::clone(&self.counts) }))
    }

    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), DeviceError> {
        self.counts.upload();
        // SAFETY: the caller's promise; Rust's own memory is not part of a block.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        Ok(())
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.counts.wait();
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }
}

impl Kernels for Loaded {
    unsafe fn launch(&self, entry: usize, threads: usize, args: &[u8]) -> Result<(), DeviceError> {
        let function = self
            .entries
            .get(entry)
            .ok_or_else(|| DeviceError::Defect(format!("there is no entry {entry}")))?;
        let threads = c_longlong::try_from(threads)
            .map_err(|_| DeviceError::Defect(format!("{threads} threads in one launch")))?;
        self.counts.launch();
        // The struct may want more than a byte's alignment.
        let mut words = [0_u64; MAX_ARGUMENTS / 8];
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let Some(room) = room.get_mut(..args.len()) else {
            return Err(DeviceError::Defect(format!("{} bytes of arguments", args.len())));
        };
        room.copy_from_slice(args);
        // SAFETY: the caller's promise about the struct and its addresses.
        unsafe { (function.get())(words.as_ptr().cast(), 0, threads) };
        Ok(())
    }

    fn hash(&self) -> &str {
        &self.hash
    }
}

#[derive(Debug)]
struct Copy {
    bytes: Vec<u8>,
    counts: Arc<Counts>,
}

impl Staging for Copy {
    unsafe fn begin(&mut self, from: Address) -> Result<(), DeviceError> {
        self.counts.download();
        // SAFETY: the caller's promise; Rust's own memory is not part of a block.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from as *const u8,
                self.bytes.as_mut_ptr(),
                self.bytes.len(),
            );
        }
        Ok(())
    }

    fn land(&mut self) -> Result<(), DeviceError> {
        self.counts.wait();
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// An error of the compiler, with the part of the user's file that it is in.
fn explain(message: &str, program: &Program) -> CompileError {
    CompileError {
        target: "the host".into(),
        message: message.lines().next().unwrap_or_default().into(),
        place: program.place_in(message),
        log: message.into(),
    }
}
