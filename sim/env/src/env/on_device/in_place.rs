//! Going back without the host: the state is copied on the device itself.

use super::blocks::chunks;
use super::{DeviceEnv, Entry};
use crate::env::EpisodeStats;
use ostler_engine::device::{Address, DeviceError};
use ostler_engine::physics::{Shortfalls, SnapshotError};

/// The host's part of a state that was captured in place.
#[derive(Debug)]
pub(super) struct Captured {
    clock: u64,
    began: u64,
    taken: Shortfalls,
    shortfalls: Shortfalls,
    stats: EpisodeStats,
}

impl DeviceEnv {
    /// Captures the state where it is, for [`restore_in_place`](Self::restore_in_place): one
    /// copy on the device, nothing crosses to the host. The earlier capture is gone. Cheap enough
    /// for the start of every iteration.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    pub fn capture_in_place(&mut self) -> Result<(), DeviceError> {
        self.count()?;
        let (from, to) = (self.blocks.state.address(), self.blocks.captured.address());
        self.copy(from, to)?;
        let live = &mut self.twin.live;
        let mut captured = match self.captured.take() {
            Some(captured) => captured,
            None => Captured {
                clock: 0,
                began: 0,
                taken: Shortfalls::default(),
                shortfalls: Shortfalls::default(),
                stats: EpisodeStats::with_room(&self.twin.spec)?,
            },
        };
        captured.clock = live.clock;
        captured.began = live.began;
        captured.taken = live.taken;
        captured.shortfalls = self.shortfalls;
        captured.stats.copy(&live.stats);
        self.captured = Some(captured);
        Ok(())
    }

    /// Goes back to the state captured in place; it stays there.
    ///
    /// # Errors
    /// Nothing was captured; the device refuses.
    pub fn restore_in_place(&mut self) -> Result<(), SnapshotError> {
        let live = &mut self.twin.live;
        let Some(captured) = &self.captured else {
            return Err(SnapshotError::Unfit("nothing was captured".into()));
        };
        live.clock = captured.clock;
        live.began = captured.began;
        live.taken = captured.taken;
        self.shortfalls = captured.shortfalls;
        live.stats.copy(&captured.stats);
        // Statistics of the steps that are taken back; the state's copy overwrites none.
        self.forget()?;
        let (from, to) = (self.blocks.captured.address(), self.blocks.state.address());
        Ok(self.copy(from, to)?)
    }

    /// Appends the record that [`capture`](Self::capture) would have written when the state was
    /// captured in place, for other environments to take over. Waits for the device.
    ///
    /// # Errors
    /// Nothing was captured; no memory; the device refuses.
    pub fn captured_in_place(&mut self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let Some(captured) = self.captured.take() else {
            return Err(SnapshotError::Unfit("nothing was captured".into()));
        };
        let written = self.fetch(self.blocks.captured.address());
        // The twin writes what the host has of it as if it were now.
        let live = &mut self.twin.live;
        let (clock, began, taken) = (live.clock, live.began, live.taken);
        let now = std::mem::replace(&mut live.stats, captured.stats);
        (live.clock, live.began, live.taken) = (captured.clock, captured.began, captured.taken);
        let written = written.and_then(|()| self.twin.capture(out));
        let live = &mut self.twin.live;
        let stats = std::mem::replace(&mut live.stats, now);
        (live.clock, live.began, live.taken) = (clock, began, taken);
        self.captured = Some(Captured { stats, ..captured });
        written
    }

    /// Resets the device's counts since statistics were summed.
    fn forget(&mut self) -> Result<(), DeviceError> {
        if self.uncounted {
            self.launch(Entry::Tally, chunks(self.twin.spec.num_envs))?;
            // SAFETY: eight bytes in a block of `self`: `listed` is behind `broken`.
            unsafe { self.device.upload(&[0; 8], self.args.broken) }?;
            self.listed = 0;
            self.uncounted = false;
        }
        Ok(())
    }

    fn copy(&self, from: Address, to: Address) -> Result<(), DeviceError> {
        // SAFETY: both are blocks that `self` owns, as long as the state.
        unsafe { self.device.copy(from, to, self.blocks.state.bytes()) }
    }
}
