//! The NVIDIA driver, asked through its library without creating a context.

use super::{Found, NoCuda};
use crate::torch::library::Library;
use std::ffi::{CStr, c_char, c_int, c_uint};

/// The library that a driver brings.
const NAME: &CStr = c"libcuda.so.1";
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// A version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The driver's library, loaded.
#[derive(Debug)]
pub struct Driver {
    functions: Functions,
    /// The newest CUDA that it can do.
    pub version: Version,
}

/// Functions of `cuda.h` that are used.
#[derive(Debug, Clone, Copy)]
struct Functions {
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    init: unsafe extern "C" fn(c_uint) -> c_int,
    count: unsafe extern "C" fn(*mut c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

impl Driver {
    /// Loads the driver's library, which stays for the life of the process.
    ///
    /// # Errors
    /// There is none, or it is not a driver.
    pub fn load() -> Result<Self, NoCuda> {
        let no = |said| NoCuda::NoDriver { said };
        let library = Library::open(NAME, libc::RTLD_NOW | libc::RTLD_LOCAL).map_err(no)?;
        // SAFETY: the types are those of the functions of these names in cuda.h; a
        // CUdevice is an int, and every return value a CUresult, an int.
        let functions = unsafe {
            Functions {
                version: library.function(c"cuDriverGetVersion").map_err(no)?,
                init: library.function(c"cuInit").map_err(no)?,
                count: library.function(c"cuDeviceGetCount").map_err(no)?,
                name: library.function(c"cuDeviceGetName").map_err(no)?,
                attribute: library.function(c"cuDeviceGetAttribute").map_err(no)?,
                error_name: library.function(c"cuGetErrorName").map_err(no)?,
            }
        };
        let mut driver = Self { functions, version: Version { major: 0, minor: 0 } };
        let mut number = 0;
        // SAFETY: the number lives across the call. It needs no cuInit.
        let code = unsafe { (functions.version)(&mut number) };
        driver.check("cuDriverGetVersion", code)?;
        driver.version = Version {
            major: number.unsigned_abs() / 1000,
            minor: number.unsigned_abs() % 1000 / 10,
        };
        Ok(driver)
    }

    /// Whether it runs code built for `cuda`: any minor version of a major one does
    /// (<https://docs.nvidia.com/deploy/cuda-compatibility/>).
    ///
    /// # Errors
    /// It is too old.
    pub fn serves(&self, cuda: Option<Version>) -> Result<(), NoCuda> {
        match cuda {
            Some(libtorch) if self.version.major < libtorch.major => {
                Err(NoCuda::DriverTooOld { driver: self.version, libtorch })
            }
            _ => Ok(()),
        }
    }

    /// How many GPUs this process may use.
    ///
    /// # Errors
    /// None, or the driver does not start.
    pub fn count(&self) -> Result<usize, NoCuda> {
        let hidden = || std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let none = || NoCuda::NoneVisible { hidden: hidden() };
        // SAFETY: cuInit takes flags, which have to be 0; it may be called again.
        match unsafe { (self.functions.init)(0) } {
            NO_DEVICE => return Err(none()),
            code => self.check("cuInit", code)?,
        }
        let mut count = 0;
        // SAFETY: the number lives across the call, and cuInit came before.
        match unsafe { (self.functions.count)(&mut count) } {
            NO_DEVICE => return Err(none()),
            code => self.check("cuDeviceGetCount", code)?,
        }
        match usize::try_from(count) {
            Ok(0) | Err(_) => Err(none()),
            Ok(n) => Ok(n),
        }
    }

    /// Device `index`.
    ///
    /// # Errors
    /// There is none, no such, or the driver does not start.
    pub fn gpu(&self, index: usize) -> Result<Found, NoCuda> {
        let count = self.count()?;
        let device = c_int::try_from(index).ok().filter(|_| index < count);
        let device = device.ok_or_else(|| NoCuda::OutOfRange {
            index,
            count,
            visible: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
        })?;
        // Ordinals are the devices' handles, all of them from 0 on.
        let mut name = [0; 256];
        // SAFETY: the buffer is handed over with its length, which leaves the last byte
        // zero; `count` called cuInit.
        let code =
            unsafe { (self.functions.name)(name.as_mut_ptr(), name.len() as c_int - 1, device) };
        self.check("cuDeviceGetName", code)?;
        let mut capability = [0; 2];
        for (value, which) in capability.iter_mut().zip(CAPABILITY) {
            // SAFETY: the number lives across the call; cuInit as above.
            let code = unsafe { (self.functions.attribute)(value, which, device) };
            self.check("cuDeviceGetAttribute", code)?;
        }
        Ok(Found {
            index,
            name: text(name.as_ptr()),
            capability: (capability[0].unsigned_abs(), capability[1].unsigned_abs()),
            driver: self.version,
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), NoCuda> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: the pointer lives across the call.
        let known = unsafe { (self.functions.error_name)(code, &mut name) } == 0;
        let said = match known && !name.is_null() {
            true => text(name),
            false => "an error without a name".to_string(),
        };
        Err(NoCuda::Start { call, code, said })
    }
}

/// A terminated string that the driver wrote or owns.
fn text(start: *const c_char) -> String {
    // SAFETY: both callers hand over a terminated string that lives across the call: a
    // buffer with a zero at its end, or a literal of the driver's.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_string_lossy().into_owned()
}
