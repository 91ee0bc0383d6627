//! Where transitions lie.

use super::ReplayError;
use super::gather::Rows;
use super::host::HostRing;

/// One of the storages.
#[derive(Debug)]
pub enum Store {
    /// In host memory.
    Host(HostRing),
}

impl Store {
    /// Writes `count` transitions from number `first` on; `fill` is given the place in the
    /// sequence and the words of each.
    ///
    /// # Errors
    /// It cannot be written; with how many were overwritten.
    pub fn write(
        &mut self,
        first: u64,
        count: usize,
        mut fill: impl FnMut(usize, &mut [u32]),
    ) -> Result<(), ReplayError> {
        match self {
            Self::Host(ring) => {
                for i in 0..count {
                    fill(i, ring.place_mut(first + i as u64));
                }
                Ok(())
            }
        }
    }

    /// What lies in host memory.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Self::Host(ring) => Rows::one(ring.ring()),
        }
    }
}
