//! Environments whose every step is one program on a device.
//!
//! A [`Device`] keeps memory and runs programs in one order (one stream): a GPU, or the
//! host's stand-in for one, which runs the same text compiled by the host's compiler.
//! Results of one launch are there for the next; the host sees it only through
//! [`transfer`].

mod counts;
pub mod cuda;
mod error;
pub mod host;
mod memory;
pub mod transfer;

pub use counts::Counts;
pub use error::{CompileError, DeviceError};
pub use memory::{Address, Block, HostMemory, Memory};

use std::fmt::Debug;
use std::sync::Arc;
use transfer::Staging;

/// Most bytes of a launch's arguments: CUDA's limit that holds for every GPU and driver.
/// Source: CUDA C++ Programming Guide, "Function parameters".
pub const MAX_ARGUMENTS: usize = 4096;

/// A program in CUDA C++ whose entries each take one struct by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The text. It compiles under NVRTC and, where `__CUDACC__` is not defined, as C++17.
    pub text: String,
    /// Parts of the text that come from a user's file, by the name that `#line` gives
    /// them there.
    pub places: Vec<SourceRange>,
    /// Entries, in the order of their numbers: `extern "C" __global__ void NAME(Args)`.
    pub entries: Vec<String>,
}

impl Program {
    /// The first place that a compiler's message names.
    pub fn place_in(&self, message: &str) -> Option<(String, String)> {
        let found = self.places.iter().filter_map(|place| {
            let at = message.find(&place.name)?;
            Some((at, place))
        });
        let (_, place) = found.min_by_key(|(at, _)| *at)?;
        Some((place.key.clone(), place.text.clone()))
    }
}

/// A part of a program that was written for something in a user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRange {
    /// As messages of compilers name it: `task.reward[0].expr`, as `#line` does.
    pub name: String,
    /// The key in the user's file that it is for.
    pub key: String,
    /// The expression there, for messages.
    pub text: String,
}

/// A compiled program on its device.
pub trait Kernels: Debug + Send + Sync {
    /// Starts entry number `entry` with `threads` threads, each with its number in
    /// `blockIdx.x * blockDim.x + threadIdx.x`, after all that was started before; does
    /// not wait for it.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    ///
    /// # Safety
    /// `args` are the bytes of the struct that the entry takes; the addresses in it are
    /// of live blocks of this device, large enough for what `threads` threads write, and
    /// nobody else touches them before the launch has ended.
    unsafe fn launch(&self, entry: usize, threads: usize, args: &[u8]) -> Result<(), DeviceError>;

    /// The program's name in a cache: a hash of everything its code depends on.
    fn hash(&self) -> &str;
}

/// Something that runs programs and holds their buffers.
pub trait Device: Debug + Send + Sync {
    /// For people: `NVIDIA H200 (cuda:0, sm_90)`.
    fn name(&self) -> String;

    /// Compiles a program, or takes it from a cache.
    ///
    /// # Errors
    /// It does not compile, or the device does not take it.
    fn load(&self, program: &Program) -> Result<Arc<dyn Kernels>, DeviceError>;

    /// Host memory that blocks can be copied into while the host goes on.
    ///
    /// # Errors
    /// No memory.
    fn staging(&self, what: &str, bytes: usize) -> Result<Box<dyn Staging>, DeviceError>;

    /// Copies to the device, in order with launches. The bytes may be changed afterwards.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    ///
    /// # Safety
    /// `to` and the bytes behind it lie in a live block of this device.
    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), DeviceError>;

    /// Copies on the device itself, in order with launches; does not wait for it.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    ///
    /// # Safety
    /// So many bytes lie behind both, in live blocks of this device that do not overlap.
    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), DeviceError>;

    /// Waits until the work started here so far is done, by a mark in its one order (an
    /// event), where [`Self::synchronize`] waits for everything on the device. Counts as
    /// one wait.
    ///
    /// # Errors
    /// Something that was started has failed.
    fn fence(&self) -> Result<(), DeviceError> {
        self.synchronize()
    }

    /// Waits until everything that was started is done.
    ///
    /// # Errors
    /// Something that was started has failed.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Bytes that the device sets aside for the local memory of `program`'s threads when
    /// it is launched, beside all that allocators hand out; 0 where there is none. Compiles
    /// the program, or takes it from a cache.
    ///
    /// # Errors
    /// It does not compile.
    fn local_memory(&self, program: &Program) -> Result<u64, DeviceError> {
        let _ = program;
        Ok(0)
    }

    /// Copies between host and device so far, and how often the host waited.
    fn traffic(&self) -> Traffic;
}

/// Counts since the device was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Launches of kernels.
    pub launches: u64,
    /// Copies from the host to the device.
    pub uploads: u64,
    /// Copies from the device to the host.
    pub downloads: u64,
    /// Times the host waited for the device.
    pub waits: u64,
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            launches: self.launches + other.launches,
            uploads: self.uploads + other.uploads,
            downloads: self.downloads + other.downloads,
            waits: self.waits + other.waits,
        }
    }
}

impl Traffic {
    /// Copies between host and device, either way.
    pub fn copies(self) -> u64 {
        self.uploads + self.downloads
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            launches: self.launches.saturating_sub(earlier.launches),
            uploads: self.uploads.saturating_sub(earlier.uploads),
            downloads: self.downloads.saturating_sub(earlier.downloads),
            waits: self.waits.saturating_sub(earlier.waits),
        }
    }
}
