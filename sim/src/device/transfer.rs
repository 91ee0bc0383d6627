//! The one way from a device to the host.
//!
//! Bytes that are on their way cannot be read: a [`Reader`] that starts a copy turns
//! into a [`Flight`], which has nothing to read, and comes back only when the copy has
//! landed.
//!
//! ```compile_fail,E0382
//! # fn f(reader: ostler_sim::device::transfer::Reader) {
//! // SAFETY: of no matter here.
//! let flight = unsafe { reader.begin(0) }.unwrap();
//! let bytes = reader.bytes(); // it is in flight: moved
//! # }
//! ```

use super::{Address, DeviceError};
use std::fmt::Debug;

/// Host memory that a device copies into: how a [`Reader`] does its work.
pub trait Staging: Debug + Send {
    /// Starts a copy of the whole of it from `from`, in order with launches.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    ///
    /// # Safety
    /// As many bytes lie at `from` in a live block of the device, until the copy landed.
    unsafe fn begin(&mut self, from: Address) -> Result<(), DeviceError>;

    /// Waits until it has landed.
    ///
    /// # Errors
    /// Something that was started has failed.
    fn land(&mut self) -> Result<(), DeviceError>;

    /// What landed last.
    fn bytes(&self) -> &[u8];
}

/// Reads blocks of one size.
#[derive(Debug)]
pub struct Reader(Box<dyn Staging>);

/// A copy on its way.
#[derive(Debug)]
pub struct Flight(Option<Box<dyn Staging>>);

impl Reader {
    /// Over memory of a device ([`super::Device::staging`]).
    pub fn new(staging: Box<dyn Staging>) -> Self {
        Self(staging)
    }

    /// Starts a copy; the host goes on.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    ///
    /// # Safety
    /// As for [`Staging::begin`].
    pub unsafe fn begin(mut self, from: Address) -> Result<Flight, DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.begin(from) }?;
        Ok(Flight(Some(self.0)))
    }

    /// What landed last; zeros before.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Flight {
    /// Waits until the copy has landed.
    ///
    /// # Errors
    /// Something that was started has failed.
    pub fn wait(mut self) -> Result<Reader, DeviceError> {
        let Some(mut staging) = self.0.take() else {
            return Err(DeviceError::Defect("a copy was waited for twice".into()));
        };
        staging.land()?;
        Ok(Reader(staging))
    }
}

impl Drop for Flight {
    /// A copy that nobody waits for must not write into memory that is gone.
    fn drop(&mut self) {
        if let Some(staging) = &mut self.0 {
            // What it failed with is the next call's to report.
            let _ = staging.land();
        }
    }
}
