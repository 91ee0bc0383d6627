//! The device's own memory.

use super::{Context, Refused, STREAM, check};
use crate::device::Address;
use cudarc::driver::sys;
use std::sync::Arc;

/// A block of the device's memory.
#[derive(Debug)]
pub(crate) struct DeviceBlock {
    address: Address,
    context: Arc<Context>,
}

impl DeviceBlock {
    /// Zeroed, in order with the stream's earlier work; at least one byte. The driver
    /// aligns to 256.
    pub(crate) fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self, Refused> {
        context.enter()?;
        let mut address = 0;
        // SAFETY: the function writes one address, freed once, by `drop`.
        check("cuMemAlloc_v2", unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) })?;
        let this = Self { address, context: Arc::clone(context) };
        // SAFETY: so many bytes were just allocated.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(address, 0, bytes.max(1), STREAM)
        })?;
        Ok(this)
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> Address {
        self.address
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: allocated once, freed once. The driver waits for what uses it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
