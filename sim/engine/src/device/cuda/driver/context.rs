//! A device and its primary context.

use super::super::Unavailable;
use super::{Refused, STREAM, check};
use crate::device::Address;
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute};
use std::ffi::CStr;
use std::sync::Arc;

/// A device's primary context, which this process shares with libtorch, kept alive.
#[derive(Debug)]
pub(crate) struct Context {
    device: CUdevice,
    context: CUcontext,
}

// SAFETY: a context is a number to the driver, whose functions may be called from any
// thread.
unsafe impl Send for Context {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Context {}

/// `CUDA_VISIBLE_DEVICES`.
pub(crate) fn visible() -> Option<String> {
    let set = std::env::var_os("CUDA_VISIBLE_DEVICES")?;
    Some(set.to_string_lossy().into_owned())
}

/// The name that NVML, too, has for device number `ordinal`: 16 bytes in hexadecimal, in groups.
/// None where the driver has no such device or is too old.
pub(crate) fn uuid(ordinal: usize) -> Option<String> {
    super::library::start().ok()?;
    if !super::library::has("cuDeviceGetUuid_v2") {
        return None;
    }
    let mut device = 0;
    // SAFETY: the function writes one number.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, i32::try_from(ordinal).ok()?) })
        .ok()?;
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the function writes the 16 bytes.
    check("cuDeviceGetUuid_v2", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) }).ok()?;
    let mut text = String::new();
    for (i, byte) in uuid.bytes.iter().enumerate() {
        let dash = if [4, 6, 8, 10].contains(&i) { "-" } else { "" };
        text += &format!("{dash}{byte:02x}");
    }
    Some(text)
}

impl Context {
    /// Of device number `ordinal`. The driver has been started.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>, Unavailable> {
        let refused = |e: Refused| e.unavailable(format!("cuda:{ordinal}"));
        let mut count = 0;
        // SAFETY: the function writes one number.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) }).map_err(refused)?;
        let count = usize::try_from(count).unwrap_or_default();
        let visible = visible();
        if count == 0 {
            return Err(Unavailable::NoDevice { visible });
        }
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let Some(number) = number else {
            return Err(Unavailable::OrdinalOutOfRange { ordinal, count, visible });
        };
        let mut device = 0;
        // SAFETY: the function writes one number.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, number) }).map_err(refused)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the device is the driver's own number of it; the context retained here
        // is released once, by `drop`.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, device)
        })
        .map_err(refused)?;
        let this = Self { device, context };
        this.enter().map_err(refused)?;
        Ok(Arc::new(this))
    }

    /// Makes it the calling thread's: before every call that works in a context. It
    /// costs nothing where it is so already.
    pub(crate) fn enter(&self) -> Result<(), Refused> {
        // SAFETY: the context is alive as long as this.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// Waits for all that any stream of the context was given.
    pub(crate) fn synchronize(&self) -> Result<(), Refused> {
        self.enter()?;
        // SAFETY: takes nothing.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Copies within the device's memory, behind the stream's earlier work.
    ///
    /// # Safety
    /// So many bytes lie behind both addresses, in live blocks that do not overlap.
    pub(crate) unsafe fn copy(
        &self,
        from: Address,
        to: Address,
        bytes: usize,
    ) -> Result<(), Refused> {
        self.enter()?;
        // SAFETY: the caller's promise.
        check("cuMemcpyDtoDAsync_v2", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, STREAM) })
    }

    /// Free and total memory of the device (bytes).
    pub(crate) fn memory(&self) -> Result<(usize, usize), Refused> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the function writes two numbers.
        check("cuMemGetInfo_v2", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free, total))
    }

    /// The device's name.
    pub(crate) fn name(&self) -> Result<String, Refused> {
        let mut name = [0; 256];
        // SAFETY: the buffer is as long as is said; the driver ends the name with a zero.
        check("cuDeviceGetName", unsafe {
            sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, self.device)
        })?;
        let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy);
        Ok(name.unwrap_or_default().into_owned())
    }

    /// A number about the device.
    pub(crate) fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32, Refused> {
        let mut value = 0;
        // SAFETY: the function writes one number.
        check("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, self.device)
        })?;
        Ok(u32::try_from(value).unwrap_or_default())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once. At the end of the process the driver may be gone
        // already, which it says.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
