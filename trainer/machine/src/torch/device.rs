//! libtorch's memory on a GPU.

use super::{TorchError, call};
use serde::Serialize;
use std::ffi::c_char;
use tch::{Device, Kind, Tensor};

unsafe extern "C" {
    fn ostler_torch_device_memory(
        index: i32,
        allocated: *mut u64,
        reserved: *mut u64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_device_free(
        index: i32,
        free: *mut u64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_release_device_memory(error: *mut c_char, error_size: usize) -> i32;
}

/// Memory of libtorch's allocator on a GPU (bytes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DeviceMemory {
    /// In tensors.
    pub allocated: u64,
    /// In tensors or kept for the next ones.
    pub reserved: u64,
}

/// Asks libtorch's allocator of CUDA device `index`.
///
/// # Errors
/// CUDA is not there, or nothing was computed on it yet.
pub fn device_memory(index: usize) -> Result<DeviceMemory, TorchError> {
    let mut memory = DeviceMemory::default();
    // Out of range is refused by libtorch, as is every device where CUDA is not there.
    let index = i32::try_from(index).unwrap_or(-1);
    // SAFETY: both numbers live across the call, and `call` hands over a buffer
    // together with its length.
    call("ask for the GPU's memory", |error, size| unsafe {
        ostler_torch_device_memory(index, &mut memory.allocated, &mut memory.reserved, error, size)
    })?;
    Ok(memory)
}

/// Bytes that tensors may still take on CUDA device `index`: the driver's free memory, and the
/// memory that libtorch keeps for the next tensors. Starts CUDA in this process if that was not
/// done.
///
/// # Errors
/// CUDA is not there, or refuses.
pub fn device_free(index: usize) -> Result<u64, TorchError> {
    // The first tensor starts it; CUDA's own memory is not free then.
    let started = Tensor::f_zeros([1], (Kind::Float, Device::Cuda(index)));
    if let Err(e) = started {
        return Err(TorchError::Call {
            operation: "start CUDA to ask for the GPU's memory",
            message: e.to_string(),
        });
    }
    let kept = device_memory(index)?;
    let number = i32::try_from(index).unwrap_or(-1);
    let mut free = 0;
    // SAFETY: the number lives across the call, and `call` hands over a buffer together
    // with its length.
    call("ask for the GPU's free memory", |error, size| unsafe {
        ostler_torch_device_free(number, &mut free, error, size)
    })?;
    Ok(free + kept.reserved.saturating_sub(kept.allocated))
}

/// Gives libtorch's reserve back to the GPU: after a back-off.
///
/// # Errors
/// CUDA is not there, or refuses.
pub fn release_device_memory() -> Result<(), TorchError> {
    // SAFETY: `call` hands over a buffer together with its length.
    call("release the GPU's memory", |error, size| unsafe {
        ostler_torch_release_device_memory(error, size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_there_is_an_error_and_no_crash() {
        #[allow(clippy::disallowed_methods, reason = "no test here loads CUDA's part")]
        if tch::Cuda::is_available() {
            return;
        }
        for index in [0, 7, usize::MAX] {
            let e = device_memory(index).unwrap_err().to_string();
            assert!(e.contains("GPU's memory"), "{e}");
            let e = device_free(index).unwrap_err().to_string();
            assert!(e.contains("GPU's memory"), "{e}");
        }
        assert!(release_device_memory().is_err());
    }
}
