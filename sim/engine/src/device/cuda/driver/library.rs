//! The driver's library: loaded here, and nowhere before.

use super::super::Unavailable;
use super::super::unavailable::CUDA_NEEDED;
use super::check;
use crate::physics::native::specialize::Library;
use cudarc::driver::sys;
use std::path::Path;

/// Functions that are called, so that a driver that lacks something is told at once. cudarc would
/// panic at the first call of it.
const FUNCTIONS: [&str; 32] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemsetD8Async",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
    "cuStreamWaitEvent",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Loads the driver, if that has not been done, and starts it. Returns the newest CUDA
/// that it knows: major, minor.
pub(crate) fn start() -> Result<(u32, u32), Unavailable> {
    // cudarc panics where it finds no library: whether there is one is asked first.
    // SAFETY: the driver of the system, looked for where the system's loader looks.
    let library = unsafe { Library::open(Path::new("libcuda.so.1")) };
    let library = library.map_err(|e| Unavailable::NoDriver { reason: e.to_string() })?;
    for function in FUNCTIONS {
        if !has(function) {
            return Err(Unavailable::Incomplete { function });
        }
    }
    drop(library); // cudarc has opened it for good.
    let refused = |e: super::Refused| match e.result {
        sys::CUresult::CUDA_ERROR_STUB_LIBRARY => Unavailable::Stub,
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Unavailable::NoDevice { visible: super::visible() },
        _ => e.unavailable("to start".into()),
    };
    let mut version = 0;
    // SAFETY: the function writes one number; the driver may be asked before it is started.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })
        .map_err(refused)?;
    let version = u32::try_from(version).unwrap_or_default();
    let version = (version / 1000, version % 1000 / 10);
    if version < CUDA_NEEDED {
        return Err(Unavailable::DriverTooOld { version });
    }
    // SAFETY: no memory is involved; it may be called any number of times.
    check("cuInit", unsafe { sys::cuInit(0) }).map_err(refused)?;
    Ok(version)
}

/// Whether the driver has a function: newer ones are used only where it has.
pub(crate) fn has(function: &str) -> bool {
    // SAFETY: the library is there (`start`), and what is looked up is not called.
    unsafe { sys::culib().get::<unsafe extern "C" fn()>(function.as_bytes()) }.is_ok()
}
