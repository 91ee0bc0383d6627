//! Functions that tch lacks, through a small C++ shim; and how the process is set up for
//! libtorch before its first tensor.
//!
//! [`init`] comes first in `main`, [`exit_fast`] last; [`cuda::find`] between them where
//! a run wants a GPU.

pub mod cuda;
mod device;
mod library;
pub mod peers;
mod pinned;
mod precision;
mod process;
pub mod reserve;
mod shared;
mod stream;
mod watch;

pub use device::{DeviceMemory, device_free, device_memory, release_device_memory};
pub use pinned::CudaPinner;
#[cfg(test)]
use precision::PRECISION;
pub use precision::{
    MatmulPrecision, choose_matmul_precision, cpu_has_amx_bf16, matmul_precision,
    measured_matmul_error, measured_matmul_error_on, set_matmul_precision,
};
pub use process::{exit_fast, flush_to_zero, heap_free, release_free_memory, returnable};
pub use stream::{CudaStream, DeviceClock};
pub use watch::{Operators, watched};

use std::ffi::c_char;

/// A call into libtorch that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum TorchError {
    /// libtorch threw; the message is its own.
    #[error("libtorch: {operation} failed: {message}")]
    Call {
        /// The request to libtorch.
        operation: &'static str,
        /// Its answer.
        message: String,
    },
    /// The reserve could not be set aside.
    #[error(transparent)]
    Memory(#[from] ostler_sim::memory::MemoryError),
    /// A process of several did not come.
    #[error(
        "process {rank} of {size} did not come within {seconds} s (runner.peers_start_s): start it, or fewer ({why})"
    )]
    Absent {
        /// Its number.
        rank: usize,
        /// How many were to come.
        size: usize,
        /// How long was waited.
        seconds: u64,
        /// What libtorch says.
        why: String,
    },
    /// A process of several came and has ended since.
    #[error("another process of this training is gone ({why})")]
    Gone {
        /// What libtorch says.
        why: String,
    },
    /// A thread count that libtorch cannot take.
    #[error("learner.threads = {0} is not possible: use 1 to 1024")]
    Threads(usize),
}

impl TorchError {
    /// As tch has it.
    fn into_tch(self) -> tch::TchError {
        match self {
            Self::Call { operation, message } => {
                tch::TchError::Torch(format!("{operation}: {message}"))
            }
            e => tch::TchError::Torch(e.to_string()),
        }
    }
}

/// Decisions of [`init`], for the log and the resolved configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TorchSetup {
    /// Threads within one libtorch operation.
    pub threads: usize,
    /// How float32 matrix products are computed from now on.
    pub precision: MatmulPrecision,
    /// Relative error of a float32 product measured with precision "medium".
    pub medium_error: f64,
    /// Whether the allocator took the thresholds that avoid storms of page faults.
    pub allocator_tuned: bool,
}

/// Runs `work` with `threads` threads within each operation of libtorch; before and
/// after there is one.
///
/// Only updates are worth more: libtorch's threads spin for a while after every
/// operation, and would take the cores from the physics between two actions.
pub fn with_threads<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    tch::set_num_threads(i32::try_from(threads).unwrap_or(1).max(1));
    let result = work();
    tch::set_num_threads(1);
    result
}

/// Prepares the process for libtorch on a CPU: allocator thresholds, one thread per
/// operation (see [`with_threads`]; `threads` is the number of the updates), and the
/// fastest matrix product that is still float32.
///
/// Call it before anything has allocated much, first in `main`: glibc's
/// thresholds hold for allocations made afterwards.
///
/// # Errors
/// `threads` outside 1 to 1024, or libtorch refusing a setting.
pub fn init(threads: usize) -> Result<TorchSetup, TorchError> {
    let allocator_tuned = process::keep_freed_memory();
    let count = i32::try_from(threads).ok().filter(|n| (1..=1024).contains(n));
    count.ok_or(TorchError::Threads(threads))?;
    tch::set_num_threads(1);
    short_errors()?;
    let (precision, medium_error) = choose_matmul_precision()?;
    Ok(TorchSetup { threads, precision, medium_error, allocator_tuned })
}

/// From now on errors of libtorch are a line, not a page.
fn short_errors() -> Result<(), TorchError> {
    // SAFETY: `call` hands over a buffer together with its length.
    call("shorten error messages", |error, size| unsafe { ostler_torch_short_errors(error, size) })
}

unsafe extern "C" {
    fn ostler_torch_set_matmul_precision(
        name: *const c_char,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_short_errors(error: *mut c_char, error_size: usize) -> i32;
    fn ostler_torch_fail_allocations(
        after: u64,
        above: u64,
        refused: *mut u64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_use_reserve(error: *mut c_char, error_size: usize) -> i32;
    fn ostler_torch_version() -> *const c_char;
    fn ostler_torch_cpu_allocations(
        calls: *mut u64,
        bytes: *mut u64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_matmul_precision(level: *mut i32, error: *mut c_char, error_size: usize)
    -> i32;
}

/// Tensor allocations in host memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How many.
    pub calls: u64,
    /// Their sizes added up (bytes).
    pub bytes: u64,
}

impl std::ops::Sub for Allocations {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes }
    }
}

/// Memory that libtorch's tensors took from the host's allocator since the first call of
/// this function, which puts the counter in place for the rest of the process.
pub fn cpu_allocations() -> Result<Allocations, TorchError> {
    let mut all = Allocations::default();
    // SAFETY: both numbers live across the call, and `call` hands over a buffer
    // together with its length.
    call("count allocations", |error, size| unsafe {
        ostler_torch_cpu_allocations(&mut all.calls, &mut all.bytes, error, size)
    })?;
    Ok(all)
}

/// Which tensor allocations in host memory fail in a drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailAllocation {
    /// None (any more).
    Never,
    /// One: that after so many others from now on; 0 is the next.
    After(u64),
    /// All of so many bytes or more.
    FromBytes(u64),
}

/// Lets tensor allocations on the host fail from now on, as libtorch lets them fail
/// when there is no memory; replaces the earlier request. For drills: the first
/// call puts an allocator in place for the rest of the process, which costs a few
/// instructions per tensor. Returns how many allocations have failed so until now.
pub fn fail_allocation(which: FailAllocation) -> Result<u64, TorchError> {
    const NEVER: u64 = u64::MAX;
    let (after, above) = match which {
        FailAllocation::Never => (NEVER, NEVER),
        FailAllocation::After(n) => (n.min(NEVER - 1), NEVER),
        FailAllocation::FromBytes(n) => (NEVER, n.min(NEVER - 1)),
    };
    let mut refused = 0;
    // SAFETY: the number lives across the call, and `call` hands over a buffer
    // together with its length.
    call("let allocations fail", |error, size| unsafe {
        ostler_torch_fail_allocations(after, above, &mut refused, error, size)
    })?;
    Ok(refused)
}

/// Version of the libtorch that this program was built with, such as `2.11.0`.
pub fn version() -> &'static str {
    // SAFETY: the function returns a string literal, which is terminated and lives as
    // long as the process.
    let text = unsafe { std::ffi::CStr::from_ptr(ostler_torch_version()) };
    text.to_str().unwrap_or("unknown")
}

/// Runs one function of the shim and turns its code and message into a `Result`.
fn call(
    operation: &'static str,
    body: impl FnOnce(*mut c_char, usize) -> i32,
) -> Result<(), TorchError> {
    let mut message = [0_u8; 1024];
    if body(message.as_mut_ptr().cast(), message.len()) == 0 {
        return Ok(());
    }
    let end = message.iter().position(|&b| b == 0).unwrap_or(message.len());
    let message = String::from_utf8_lossy(&message[..end]);
    // Where c10d made it, its stack follows.
    let message = message.split("\nException raised from").next().unwrap_or_default().into();
    Err(TorchError::Call { operation, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_from_the_shim_reaches_the_error() {
        // SAFETY: the name is a terminated string, and `call` hands over a
        // buffer together with its length.
        let refused = call("set the matmul precision", |error, size| unsafe {
            ostler_torch_set_matmul_precision(c"sloppy".as_ptr(), error, size)
        });
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("set the matmul precision") && text.contains("'sloppy'"), "{text}");
    }

    #[test]
    fn an_error_message_longer_than_the_buffer_is_cut_and_terminated() {
        let name = std::ffi::CString::new(vec![b'x'; 5000]).unwrap();
        // SAFETY: as above.
        let refused = call("set the matmul precision", |error, size| unsafe {
            ostler_torch_set_matmul_precision(name.as_ptr(), error, size)
        });
        let text = refused.unwrap_err().to_string();
        assert!(text.len() < 1200, "{}", text.len());
    }

    #[test]
    fn the_version_is_that_of_the_libtorch_in_use() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.libtorch/torch/version.py");
        if let Ok(text) = std::fs::read_to_string(file) {
            assert!(text.contains(&format!("'{}", version())), "{text}");
        }
        assert_eq!(version().split('.').count(), 3, "{}", version());
    }

    #[test]
    fn errors_of_libtorch_are_one_line() {
        let _alone = PRECISION.lock();
        init(1).unwrap();
        let empty = |n: i64| {
            let options = (tch::Kind::Float, tch::Device::Cpu);
            tch::Tensor::f_empty([n], options).unwrap_err().to_string()
        };
        for (n, word) in [(1 << 44, "can't allocate memory"), (-1, "negative")] {
            let text = empty(n);
            assert!(text.contains(word) && !text.contains("frame #"), "{text}");
        }
    }

    #[test]
    fn thread_counts_out_of_range_are_errors() {
        assert!(matches!(init(0), Err(TorchError::Threads(0))));
        assert!(matches!(init(1 << 40), Err(TorchError::Threads(_))));
    }
}
