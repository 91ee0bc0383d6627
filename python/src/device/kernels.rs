//! What lies between a learner's arrays and the environments' on a GPU: actions of any kind and
//! order become rows, numbers become flags.

use ostler_sim::device::{Address, Device, DeviceError, Kernels, Program};
use std::sync::Arc;

const TEXT: &str = include_str!("../../kernels/parts.cuh");

// Structs and numbers of the text.
include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));

/// The kernels, loaded.
#[derive(Debug)]
pub struct Parts(Arc<dyn Kernels>);

impl Parts {
    /// Compiles them for a device, or takes them from its cache.
    ///
    /// # Errors
    /// The device does not take them.
    pub fn load(device: &dyn Device) -> Result<Self, DeviceError> {
        let program = Program {
            text: TEXT.into(),
            places: Vec::new(),
            entries: vec!["ostler_python_take".into(), "ostler_python_flags".into()],
        };
        Ok(Self(device.load(&program)?))
    }

    /// Starts a copy of actions.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// At the addresses are so many numbers as the arguments say.
    pub unsafe fn take(&self, args: &TakeArgs) -> Result<(), DeviceError> {
        let threads = usize::try_from(args.n * args.width).unwrap_or_default();
        // SAFETY: the struct is what the entry takes; the rest is the caller's promise.
        unsafe { self.0.launch(0, threads, bytemuck::bytes_of(args)) }
    }

    /// Starts the writing of flags.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// At every address are so many numbers, or bytes, as there are rows.
    pub unsafe fn flags(&self, args: &FlagArgs) -> Result<(), DeviceError> {
        let threads = usize::try_from(args.rows).unwrap_or_default();
        // SAFETY: the struct is what the entry takes; the rest is the caller's promise.
        unsafe { self.0.launch(1, threads, bytemuck::bytes_of(args)) }
    }
}
