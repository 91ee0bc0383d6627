//! Host memory that the device copies from and into by itself.

use super::{Context, Refused, STREAM, check};
use crate::device::Address;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Pinned host memory, zeroed at first.
///
/// Who owns one keeps track of copies under way: it may be read, changed and dropped
/// only while there are none.
#[derive(Debug)]
pub(crate) struct Pinned {
    start: NonNull<u8>,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: it owns its memory, which is tied to no thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// So many bytes; at least one.
    pub(crate) fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self, Refused> {
        context.enter()?;
        let bytes = bytes.max(1);
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the function writes one address, freed once, by `drop`.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut start, bytes, 0) })?;
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(Refused {
                call: "cuMemHostAlloc",
                result: sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            });
        };
        // SAFETY: so many bytes were allocated, and nobody else has their address.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, bytes, context: Arc::clone(context) })
    }

    /// Its content.
    ///
    /// # Safety
    /// No copy into it is under way while the slice lives.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised; the caller vouches that nobody writes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Puts `from` at `at` and starts a copy of it to the device.
    ///
    /// # Safety
    /// No copy from or into these bytes is under way; `to` and as many bytes behind it
    /// lie in a live block of the device until the copy is done.
    ///
    /// # Panics
    /// It is too short: a defect of the caller's.
    pub(crate) unsafe fn send(
        &mut self,
        at: usize,
        from: &[u8],
        to: Address,
    ) -> Result<(), Refused> {
        self.context.enter()?;
        let Range { start, end } = at..at + from.len();
        assert!(end <= self.bytes, "{end} of {} pinned bytes", self.bytes);
        // SAFETY: the range is inside (above), and nobody else reads or writes it, says
        // the caller.
        let place = unsafe {
            let place = self.start.as_ptr().add(start);
            place.copy_from_nonoverlapping(from.as_ptr(), from.len());
            place
        };
        // SAFETY: the source is pinned and lives until nothing is under way any more; the
        // target is the caller's.
        check("cuMemcpyHtoDAsync_v2", unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, place.cast(), from.len(), STREAM)
        })
    }

    /// Starts a copy from the device that fills the first `bytes` bytes.
    ///
    /// # Safety
    /// Nothing else is under way; `from` and as many bytes behind it lie in a live block
    /// of the device until the copy is done.
    ///
    /// # Panics
    /// It is too short: a defect of the caller's.
    pub(crate) unsafe fn fetch(&mut self, from: Address, bytes: usize) -> Result<(), Refused> {
        self.context.enter()?;
        assert!(bytes <= self.bytes, "{bytes} of {} pinned bytes", self.bytes);
        // SAFETY: the target is pinned, long enough and lives until nothing is under way
        // any more; the source is the caller's.
        check("cuMemcpyDtoHAsync_v2", unsafe {
            sys::cuMemcpyDtoHAsync_v2(self.start.as_ptr().cast(), from, bytes, STREAM)
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: allocated once, freed once; nothing is under way, says the type.
            let _ = unsafe { sys::cuMemFreeHost(self.start.as_ptr().cast()) };
        }
    }
}
