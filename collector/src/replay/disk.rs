//! A file that may be continued in host memory when the disk is full.

use super::file::{FileRing, Found, is_full};
use super::host::HostRing;
use super::rows::Rows;
use super::window::{Segment, Window};
use super::{OnFullDisk, ReplayError};
use std::io;

/// Free host memory (bytes), where anybody knows.
pub type FreeMemory = fn() -> Option<u64>;

/// Transitions in a file.
#[derive(Debug)]
pub struct Disk {
    /// The file.
    pub file: FileRing,
    /// Transitions from this number on, since the disk was full.
    pub overflow: Option<(u64, HostRing)>,
    /// Its content.
    pub found: Found,
    on_full: OnFullDisk,
    free: FreeMemory,
    words: usize,
}

impl Disk {
    /// Over a file.
    pub fn new(file: FileRing, words: usize, on_full: OnFullDisk, free: FreeMemory) -> Self {
        Self { file, overflow: None, found: Found::default(), on_full, free, words }
    }

    /// Writes transitions and takes them into the window.
    ///
    /// # Errors
    /// The disk is full and that is to be an error, or it fails; the window is
    /// as it was.
    pub fn extend(
        &mut self,
        window: &mut Window,
        skip: usize,
        count: usize,
        stride: u32,
        mut fill: impl FnMut(usize, &mut [u32]),
    ) -> Result<(), ReplayError> {
        if self.overflow.is_none() {
            let before = window.clone();
            let written = self.append(window, skip, count, stride, &mut fill);
            let Err(e) = written else {
                return Ok(());
            };
            *window = before;
            let start = window.end();
            if !is_full(&e) || self.on_full == OnFullDisk::Stop {
                window.overwritten(start + count as u64);
                return Err(self.file.error("cannot write to it", e));
            }
            // The places that were to be written may hold anything now.
            window.overwritten(start + count as u64);
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
        if let Some((_, ring)) = &mut self.overflow {
            let skip = skip.max((count as u64).saturating_sub(ring.physical()) as usize);
            for i in skip..count {
                fill(i, ring.place_mut(window.end() + i as u64));
            }
            window.push(count as u64, stride);
        }
        Ok(())
    }

    /// As many as half of the free memory holds.
    fn places_in_memory(&self, window: &Window) -> u64 {
        let most = (self.free)().map(|free| free / 2 / (4 * self.words as u64));
        most.unwrap_or(u64::MAX).clamp(1, window.physical())
    }

    fn append(
        &mut self,
        window: &mut Window,
        skip: usize,
        count: usize,
        stride: u32,
        mut fill: impl FnMut(usize, &mut [u32]),
    ) -> io::Result<()> {
        let (first, segment) = (window.end() + skip as u64, window.segment_for(stride));
        let rows = |i, words: &mut [u32]| fill(skip + i, words);
        self.file.write(first, count - skip, |_| segment, rows)?;
        window.push(count as u64, stride);
        self.file.commit(window)
    }

    /// Sets the window to the file's content, as far as it does.
    ///
    /// # Errors
    /// The disk fails.
    pub fn commit(&mut self, window: &Window) -> Result<(), ReplayError> {
        if let Some((at, _)) = self.overflow {
            if window.end() > at {
                return Ok(());
            }
            // Gone back to before the disk was full.
            self.overflow = None;
        }
        let committed = self.file.commit(window);
        committed.map_err(|e| self.file.error("cannot write to it", e))
    }

    /// One behind the newest transition that is in the file, of those up to `end`.
    pub fn end(&self, end: u64) -> u64 {
        self.overflow.as_ref().map_or(end, |(at, _)| end.min(*at))
    }

    /// All transitions, to read.
    ///
    /// # Errors
    /// Another program made the file shorter.
    pub fn rows(&self) -> Result<Rows<'_>, ReplayError> {
        let file = self.file.ring()?;
        Ok(match &self.overflow {
            Some((at, ring)) => Rows::two(file, *at, ring.ring()),
            None => Rows::one(file),
        })
    }
}

/// The segment of a transition of the window, for copies.
pub fn segment_of(window: &Window) -> impl Fn(u64) -> Segment {
    |row| window.segment_at(row).unwrap_or(Segment { start: row, stride: 1, id: 0 })
}
