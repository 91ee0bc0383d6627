//! Page-locked memory of the host, by CUDA's driver.

use super::{TorchError, call};
use ostler_collector::replay::Pinner;
use std::ffi::{c_char, c_void};
use tch::{Device, TchError, Tensor};

unsafe extern "C" {
    fn ostler_torch_is_pinned(
        tensor: *const c_void,
        pinned: *mut i32,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
}

/// Pins batches of a replay buffer.
#[derive(Debug, Clone, Copy)]
pub struct CudaPinner;

impl Pinner for CudaPinner {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        ostler_collector::memory::pinned(tensor, Device::Cuda(0))
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        let mut pinned = 0;
        // SAFETY: the tensor and the number live across the call, and `call` hands over a
        // buffer together with its length.
        call("ask where a tensor lies", |error, size| unsafe {
            ostler_torch_is_pinned(tensor.as_ptr().cast(), &mut pinned, error, size)
        })
        .map_err(TorchError::into_tch)?;
        Ok(pinned == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_memory_is_not_pinned() {
        let tensor = Tensor::from_slice(&[1.0_f32]);
        assert!(!CudaPinner.is_pinned(&tensor).unwrap());
    }
}
