//! The driver's functions as far as they are used, each with its results and the resources to free.
//!
//! Reading order: [`library`] (the driver is there) -> [`Context`] (a device of it) ->
//! [`Event`], [`Pinned`], [`DeviceBlock`] -> [`Module`]. All work goes to the legacy
//! default stream of the device's primary context, which is libtorch's too.

mod block;
mod context;
mod event;
pub(crate) mod library;
mod module;
mod pinned;

pub(crate) use block::DeviceBlock;
pub(crate) use context::{Context, uuid, visible};
pub(crate) use event::Event;
pub(crate) use module::{Function, Grid, Module};
pub(crate) use pinned::Pinned;

use super::Unavailable;
use crate::device::DeviceError;
use cudarc::driver::sys::{CUresult, CUstream};
use ostler_base::memory::MemoryError;
use std::ffi::CStr;

/// The legacy default stream.
pub(super) const STREAM: CUstream = std::ptr::null_mut();

/// A call that the driver refused.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// The function.
    pub call: &'static str,
    /// Its result.
    pub result: CUresult,
}

/// Result of a call.
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), Refused> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        result => Err(Refused { call, result }),
    }
}

impl Refused {
    /// As an error, where memory was asked for.
    pub fn asking(self, what: &str, bytes: usize) -> DeviceError {
        match self.result {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                DeviceError::Memory(MemoryError { what: what.to_string(), bytes })
            }
            _ => DeviceError::Driver {
                call: self.call,
                code: self.code(),
                name: self.name(),
                message: self.message(),
            },
        }
    }

    /// As the reason why there is no device; `what` was refused.
    pub fn unavailable(self, what: String) -> Unavailable {
        Unavailable::Refused { what, name: self.name(), code: self.code(), message: self.message() }
    }

    /// Its number.
    pub fn code(self) -> i32 {
        self.result as i32
    }

    /// `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub fn name(self) -> String {
        let known = cudarc::driver::DriverError(self.result);
        let known = known.error_name().ok().map(text);
        known.unwrap_or_else(|| format!("{:?}", self.result))
    }

    /// The driver's sentence.
    pub fn message(self) -> String {
        let known = cudarc::driver::DriverError(self.result);
        let known = known.error_string().ok().map(text);
        known.unwrap_or_else(|| "the driver does not say more".to_string())
    }
}

fn text(c: &CStr) -> String {
    c.to_string_lossy().into_owned()
}

impl From<Refused> for DeviceError {
    fn from(refused: Refused) -> Self {
        refused.asking(&format!("the GPU's driver ({})", refused.call), 0)
    }
}
