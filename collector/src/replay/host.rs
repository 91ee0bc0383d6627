//! Transitions in host memory.

use super::ReplayError;
use super::rows::Ring;
use memmap2::{Advice, MmapMut, MmapOptions};
use ostler_sim::memory::MemoryError;

/// `physical` places of `words` 32-bit words each. Memory is taken as places are written.
#[derive(Debug)]
pub struct HostRing {
    map: MmapMut,
    words: usize,
    physical: u64,
}

impl HostRing {
    /// Reserves the memory.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn new(physical: u64, words: usize) -> Result<Self, ReplayError> {
        let bytes = usize::try_from(physical).ok().and_then(|n| n.checked_mul(4 * words));
        let error = || MemoryError {
            what: format!("{physical} transitions of the replay buffer"),
            bytes: bytes.unwrap_or(usize::MAX),
        };
        let len = bytes.ok_or_else(error)?;
        // Not from the allocator: fresh pages are zero already, and the allocator's way to
        // refuse is to end the program.
        let map = MmapOptions::new().len(len).map_anon().map_err(|_| error())?;
        // Draws go all over the place: with small pages each would wait for the page table
        // too. Kernels that have no huge pages say so, and do without.
        let _ = map.advise(Advice::HugePage);
        Ok(Self { map, words, physical })
    }

    /// All places, to read.
    pub fn ring(&self) -> Ring<'_> {
        Ring::new(bytemuck::cast_slice(&self.map), self.words, self.words, self.physical)
    }

    /// The place of a transition, to write.
    pub fn place_mut(&mut self, row: u64) -> &mut [u32] {
        let start = (row % self.physical) as usize * self.words;
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut self.map);
        &mut words[start..start + self.words]
    }

    /// Places.
    pub fn physical(&self) -> u64 {
        self.physical
    }
}
