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

    /// The last copy.
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

    /// The last copy; zeros before.
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
            // The next call reports the error.
            let _ = staging.land();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};

    /// A copy that arrives as late as it may: when it is waited for.
    struct Late {
        there: Arc<AtomicU8>,
        landed: [u8; 1],
        waits: Arc<AtomicU32>,
    }

    impl Staging for Late {
        unsafe fn begin(&mut self, _: Address) -> Result<(), DeviceError> {
            // The bytes that a reader sees before the copy has arrived.
            self.landed = [0xEE];
            Ok(())
        }
        fn land(&mut self) -> Result<(), DeviceError> {
            self.landed = [self.there.load(SeqCst)];
            self.waits.fetch_add(1, SeqCst);
            Ok(())
        }
        fn bytes(&self) -> &[u8] {
            &self.landed
        }
    }

    impl std::fmt::Debug for Late {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Late")
        }
    }

    /// The page's example shows that there is no other way to the bytes.
    #[test]
    fn f3_bytes_are_readable_only_from_what_a_wait_returns() {
        let (there, waits) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU32::new(0)));
        let late = Late { there: there.clone(), landed: [0], waits: waits.clone() };
        let mut reader = Reader::new(Box::new(late));
        for number in 1..=100 {
            // SAFETY: nothing is read from there.
            let flight = unsafe { reader.begin(0) }.unwrap();
            there.store(number, SeqCst);
            reader = flight.wait().unwrap();
            assert_eq!(reader.bytes(), [number]);
        }
        assert_eq!(waits.load(SeqCst), 100);
        // A copy that nobody wants is waited for, too.
        // SAFETY: as above.
        drop(unsafe { reader.begin(0) }.unwrap());
        assert_eq!(waits.load(SeqCst), 101);
    }
}
