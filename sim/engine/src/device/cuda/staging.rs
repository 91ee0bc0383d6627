//! Copies between host and device that the host does not wait for.

use super::driver::{Context, Event, Pinned, Refused};
use crate::device::counts::Counts;
use crate::device::transfer::Staging;
use crate::device::{Address, DeviceError};
use std::sync::Arc;

/// Pinned memory that the device copies into.
#[derive(Debug)]
pub(crate) struct PinnedStaging {
    pinned: Pinned,
    event: Event,
    /// How much of the pinned memory, which is never empty, was asked for.
    bytes: usize,
    in_flight: bool,
    counts: Arc<Counts>,
}

impl PinnedStaging {
    pub(super) fn new(
        context: &Arc<Context>,
        counts: &Arc<Counts>,
        bytes: usize,
    ) -> Result<Self, Refused> {
        Ok(Self {
            pinned: Pinned::zeroed(context, bytes)?,
            event: Event::new(context)?,
            bytes,
            in_flight: false,
            counts: Arc::clone(counts),
        })
    }
}

impl Staging for PinnedStaging {
    unsafe fn begin(&mut self, from: Address) -> Result<(), DeviceError> {
        self.land()?;
        if self.bytes == 0 {
            return Ok(());
        }
        // Before the copy: even if what follows it fails, it may be under way.
        self.in_flight = true;
        // SAFETY: earlier copies have landed; `from` is the caller's promise.
        unsafe { self.pinned.fetch(from, self.bytes) }?;
        self.counts.download();
        self.event.record()?;
        Ok(())
    }

    fn land(&mut self) -> Result<(), DeviceError> {
        if self.in_flight {
            self.counts.wait();
            self.event.wait()?;
            self.in_flight = false;
        }
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        if self.in_flight {
            return &[];
        }
        // SAFETY: nothing is under way.
        unsafe { &self.pinned.bytes()[..self.bytes] }
    }
}

impl Drop for PinnedStaging {
    fn drop(&mut self) {
        // A device that fails has stopped copying.
        let _ = self.land();
    }
}

/// Where bytes wait for their copy to the device, so that the host may change its own.
#[derive(Debug)]
pub(crate) struct Ring {
    pinned: Pinned,
    /// Of each slot's last copy.
    events: [Event; Self::SLOTS],
    next: usize,
    counts: Arc<Counts>,
}

impl Ring {
    const SLOTS: usize = 8;
    /// A slot (bytes).
    const SLOT: usize = 128 << 10;
    /// All of it (bytes).
    pub(super) const BYTES: usize = Self::SLOTS * Self::SLOT;

    pub(super) fn new(context: &Arc<Context>, counts: &Arc<Counts>) -> Result<Self, Refused> {
        let event = || Event::new(context);
        Ok(Self {
            pinned: Pinned::zeroed(context, Self::BYTES)?,
            events: [
                event()?,
                event()?,
                event()?,
                event()?,
                event()?,
                event()?,
                event()?,
                event()?,
            ],
            next: 0,
            counts: Arc::clone(counts),
        })
    }

    /// Starts the copy of all bytes. Waits only where all slots are still on their way.
    ///
    /// # Safety
    /// `to` and the bytes behind it lie in a live block of the device.
    pub(super) unsafe fn send(&mut self, from: &[u8], to: Address) -> Result<(), Refused> {
        let mut to = to;
        for part in from.chunks(Self::SLOT) {
            let event = &mut self.events[self.next];
            if !event.is_done()? {
                self.counts.wait();
                event.wait()?;
            }
            // SAFETY: the copy from this slot has arrived; the target is the caller's
            // promise.
            unsafe { self.pinned.send(self.next * Self::SLOT, part, to) }?;
            self.counts.upload();
            // Where this fails the device does: then nothing is sent any more.
            event.record()?;
            self.next = (self.next + 1) % Self::SLOTS;
            to += part.len() as Address;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for event in &self.events {
            // A device that fails has stopped copying.
            let _ = event.wait();
        }
    }
}
