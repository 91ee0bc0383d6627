//! `replay.storage = "memmap"`: transitions in a file, which may be continued in host memory
//! when the disk is full.

use super::batch::{Draw, Slot};
use super::file::{FileRing, is_full};
use super::host::HostRing;
use super::storage::{About, FreeMemory, New, OnFullDisk, Site, Storage};
use super::transition::{Rows, Window};
use crate::error::ReplayError;
use std::io;

/// What a configuration says of it.
pub(crate) const MEMMAP: About = About {
    name: "memmap",
    in_file: true,
    near: false,
    in_memory: |_, _| 0,
    key: "replay.capacity",
    instead: "",
    open: |site| Ok(Box::new(Disk::open(site)?)),
};

#[derive(Debug)]
pub(crate) struct Disk {
    pub file: FileRing,
    /// Transitions from this number on, since the disk was full.
    pub overflow: Option<(u64, HostRing)>,
    on_full: OnFullDisk,
    free: FreeMemory,
    words: usize,
}

impl Disk {
    pub(crate) fn open(mut site: Site<'_>) -> Result<Self, ReplayError> {
        let (file, words) = (site.file()?, site.layout.words());
        Ok(Self { file, overflow: None, on_full: site.on_full, free: site.free, words })
    }

    /// As many as half of the free memory holds.
    fn places_in_memory(&self, window: &Window) -> u64 {
        let most = (self.free)().map(|free| free / 2 / (4 * self.words as u64));
        most.unwrap_or(u64::MAX).clamp(1, window.physical())
    }

    fn append(&mut self, window: &mut Window, new: &mut New<'_>) -> io::Result<()> {
        let skip = new.count.saturating_sub(window.physical() as usize);
        let (first, segment) = (window.end() + skip as u64, window.segment_for(new.stride));
        let rows = |i, words: &mut [u32]| (new.fill)(skip + i, words);
        self.file.write(first, new.count - skip, |_| segment, rows)?;
        window.push(new.count as u64, new.stride);
        self.file.commit(window)
    }

    /// All transitions, to read.
    pub(crate) fn rows(&self) -> Result<Rows<'_>, ReplayError> {
        let file = self.file.ring()?;
        Ok(match &self.overflow {
            Some((at, ring)) => Rows::two(file, *at, ring.ring()),
            None => Rows::one(file),
        })
    }
}

impl Storage for Disk {
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError> {
        if self.overflow.is_none() {
            let before = window.clone();
            let Err(e) = self.append(window, new) else {
                return Ok(());
            };
            *window = before;
            let start = window.end();
            // The places that were to be written may hold anything now.
            window.overwritten(start + new.count as u64);
            if !is_full(&e) || self.on_full == OnFullDisk::Stop {
                return Err(self.file.error("cannot write to it", e));
            }
            let places = self.places_in_memory(window);
            let ring = HostRing::new(places, self.words)?;
            tracing::warn!(
                file = %self.file.path().display(),
                rows = window.len(),
                places,
                "the disk is full ({e}): new transitions go to host memory, those in the file stay"
            );
            window.shrink(places);
            self.overflow = Some((start, ring));
        }
        match &mut self.overflow {
            Some((_, ring)) => ring.extend(window, new),
            None => Ok(()),
        }
    }

    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError> {
        slot.gather(draw, self.rows()?)
    }

    /// Sets the window to the file's content, as far as it does.
    fn went_back(&mut self, window: &Window, _by: u64) -> Result<(), ReplayError> {
        if self.overflow.as_ref().is_some_and(|(at, _)| window.end() > *at) {
            return Ok(());
        }
        // Gone back to before the disk was full, where it was.
        self.overflow = None;
        let committed = self.file.commit(window);
        committed.map_err(|e| self.file.error("cannot write to it", e))
    }

    fn save(&mut self, window: &Window) -> Result<u64, ReplayError> {
        self.file.sync()?;
        let end = window.end();
        Ok(self.overflow.as_ref().map_or(end, |(at, _)| end.min(*at)))
    }
}

#[cfg(test)]
#[path = "tests/memmap.rs"]
mod tests;
