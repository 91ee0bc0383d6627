//! libtorch's stream of a GPU, for the collector.

use super::{TorchError, call};
use ostler_collector::device::Stream;
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use tch::{TchError, Tensor};

unsafe extern "C" {
    fn ostler_torch_copy(
        from: *const c_void,
        to: *mut c_void,
        wait: i32,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_torch_wait_for_event(index: i32, error: *mut c_char, error_size: usize) -> i32;
    fn ostler_torch_wait_for_device(index: i32, error: *mut c_char, error_size: usize) -> i32;
    fn ostler_torch_clock_start(index: i32, error: *mut c_char, error_size: usize) -> *mut c_void;
    fn ostler_torch_clock_stop(
        index: i32,
        begun: *mut c_void,
        milliseconds: *mut f64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
}

/// The default stream of a GPU, on which libtorch and our kernels work.
#[derive(Debug, Clone, Copy)]
pub struct CudaStream {
    index: i32,
}

impl CudaStream {
    /// That of `cuda:INDEX`.
    pub fn new(index: usize) -> Self {
        // Out of range is refused by libtorch, as is every device where CUDA is not there.
        Self { index: i32::try_from(index).unwrap_or(-1) }
    }
}

impl Stream for CudaStream {
    fn upload(&self, from: &Tensor, to: &Tensor, wait: bool) -> Result<(), TchError> {
        let mut to = to.shallow_clone();
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        // SAFETY: both point to tensors that live across the call, and `call` hands over
        // a buffer together with its length.
        call("copy a tensor", |error, size| unsafe {
            ostler_torch_copy(from.cast(), to.cast(), i32::from(wait), error, size)
        })
        .map_err(TorchError::into_tch)
    }

    fn wait_for_event(&self) -> Result<(), TchError> {
        // SAFETY: `call` hands over a buffer together with its length.
        call("wait for an event", |error, size| unsafe {
            ostler_torch_wait_for_event(self.index, error, size)
        })
        .map_err(TorchError::into_tch)
    }

    fn wait_for_device(&self) -> Result<(), TchError> {
        // SAFETY: `call` hands over a buffer together with its length.
        call("wait for the GPU", |error, size| unsafe {
            ostler_torch_wait_for_device(self.index, error, size)
        })
        .map_err(TorchError::into_tch)
    }
}

/// Measures work by a GPU's own clock.
#[derive(Debug)]
pub struct DeviceClock {
    index: i32,
    begun: NonNull<c_void>,
}

impl DeviceClock {
    /// From here on, in the order of the default stream of `cuda:INDEX`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn start(index: usize) -> Result<Self, TorchError> {
        let index = i32::try_from(index).unwrap_or(-1);
        let mut begun = None;
        call("start a clock", |error, size| {
            // SAFETY: `call` hands over a buffer together with its length.
            begun = NonNull::new(unsafe { ostler_torch_clock_start(index, error, size) });
            i32::from(begun.is_none())
        })?;
        let begun =
            begun.ok_or(TorchError::Call { operation: "start a clock", message: String::new() })?;
        Ok(Self { index, begun })
    }

    /// Seconds of the device until here. The host waits.
    ///
    /// # Errors
    /// libtorch refuses, or something that was started has failed.
    pub fn seconds(self) -> Result<f64, TorchError> {
        let mut milliseconds = 0.0;
        // SAFETY: the event is the one of `start` and used once; the number lives across the
        // call, and `call` hands over a buffer together with its length.
        call("stop a clock", |error, size| unsafe {
            let begun = self.begun.as_ptr();
            ostler_torch_clock_stop(self.index, begun, &mut milliseconds, error, size)
        })?;
        Ok(milliseconds * 1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn tensors_are_copied_and_shapes_that_differ_are_errors() {
        let from = Tensor::from_slice(&[1.0_f32, 2.0, 3.0]);
        let to = Tensor::zeros([3], (Kind::Float, Device::Cpu));
        for wait in [true, false] {
            let _ = to.shallow_clone().zero_();
            CudaStream::new(0).upload(&from, &to, wait).unwrap();
            assert_eq!(from, to);
        }
        let other = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        let e = CudaStream::new(0).upload(&from, &other, true).unwrap_err();
        assert!(e.to_string().contains("copy a tensor"), "{e}");
    }

    #[test]
    fn without_a_gpu_a_wait_is_an_error_and_no_crash() {
        // No test of this program loads libtorch's CUDA part.
        for index in [0, usize::MAX] {
            let stream = CudaStream::new(index);
            assert!(stream.wait_for_event().is_err());
            assert!(stream.wait_for_device().is_err());
        }
    }
}
