//! Going back without the host: the state is copied on the device itself.

use super::blocks::chunks;
use super::{DeviceEnv, Entry};
use crate::device::{Address, DeviceError};
use crate::env::{EpisodeStats, stats};
use crate::physics::{Shortfalls, SnapshotError};

/// What the host has of a noted state.
#[derive(Debug)]
pub(super) struct Note {
    clock: u64,
    began: u64,
    taken: Shortfalls,
    shortfalls: Shortfalls,
    stats: EpisodeStats,
}

impl DeviceEnv {
    /// Notes the state where it is, to [go back](Self::go_back) to: one launch, nothing
    /// crosses to the host. What was noted before is gone. Cheap enough for the start of
    /// every iteration.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    pub fn note(&mut self) -> Result<(), DeviceError> {
        self.count()?;
        let (from, to) = (self.blocks.state.address(), self.blocks.noted.address());
        self.copy(from, to)?;
        let live = &mut self.twin.live;
        let mut note = match self.noted.take() {
            Some(note) => note,
            None => Note {
                clock: 0,
                began: 0,
                taken: Shortfalls::default(),
                shortfalls: Shortfalls::default(),
                stats: EpisodeStats::with_room(&self.twin.spec)?,
            },
        };
        note.clock = live.clock;
        note.began = live.began;
        note.taken = live.taken;
        note.shortfalls = self.shortfalls;
        stats::copy(&live.stats, &mut note.stats);
        self.noted = Some(note);
        Ok(())
    }

    /// Goes back to what was noted; it stays noted.
    ///
    /// # Errors
    /// Nothing was noted; the device refuses.
    pub fn go_back(&mut self) -> Result<(), SnapshotError> {
        let live = &mut self.twin.live;
        let Some(note) = &self.noted else {
            return Err(SnapshotError::Unfit("nothing was noted".into()));
        };
        live.clock = note.clock;
        live.began = note.began;
        live.taken = note.taken;
        self.shortfalls = note.shortfalls;
        stats::copy(&note.stats, &mut live.stats);
        // Statistics of the steps that are taken back; the state's copy overwrites none.
        self.forget()?;
        let (from, to) = (self.blocks.noted.address(), self.blocks.state.address());
        Ok(self.copy(from, to)?)
    }

    /// What [`keep`](Self::keep) would have written when the state was noted, for other
    /// environments to take over. Waits for the device.
    ///
    /// # Errors
    /// Nothing was noted; no memory; the device refuses.
    pub fn noted(&mut self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let Some(note) = self.noted.take() else {
            return Err(SnapshotError::Unfit("nothing was noted".into()));
        };
        // The twin writes what the host has of it as if it were now.
        let live = &mut self.twin.live;
        let (clock, began, taken) = (live.clock, live.began, live.taken);
        let now = std::mem::replace(&mut live.stats, note.stats);
        (live.clock, live.began, live.taken) = (note.clock, note.began, note.taken);
        let start = out.len();
        let written = self.twin.keep(out);
        let live = &mut self.twin.live;
        let stats = std::mem::replace(&mut live.stats, now);
        (live.clock, live.began, live.taken) = (clock, began, taken);
        self.noted = Some(Note { stats, ..note });
        written?;
        self.read_into(&mut out[start..], self.blocks.noted.address())
    }

    /// Throws away what the device has counted since statistics were summed.
    fn forget(&mut self) -> Result<(), DeviceError> {
        if self.uncounted {
            self.launch(Entry::Tally, chunks(self.twin.spec.num_envs))?;
            // SAFETY: four bytes in a block of `self`.
            unsafe { self.device.upload(&[0; 4], self.args.buried) }?;
            self.uncounted = false;
        }
        Ok(())
    }

    fn copy(&mut self, from: Address, to: Address) -> Result<(), DeviceError> {
        let words = self.blocks.state.bytes() / 4;
        self.args.from = from;
        self.args.to = to;
        self.args.words = words as i64;
        self.launch(Entry::Copy, words)
    }
}
