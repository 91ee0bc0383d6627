//! `replay.storage = "tiered"`: all transitions in a file, the newest in memory too.

use super::batch::{Draw, Slot};
use super::device::DeviceRing;
use super::host::HostRing;
use super::memmap::Disk;
use super::storage::{About, Memory, New, Site, Storage};
use super::transition::Window;
use crate::error::ReplayError;
use tch::Device;

/// What a configuration says of it.
pub(crate) const TIERED: About = About {
    name: "tiered",
    in_file: true,
    near: true,
    in_memory: |_, recent| recent,
    key: "replay.recent",
    instead: "",
    open,
};

fn open(site: Site<'_>) -> Result<Box<dyn Storage>, ReplayError> {
    let places = site.recent.saturating_add(site.margin).min(site.window.physical());
    Ok(match site.device {
        Device::Cpu => {
            let ring = HostRing::new(places, site.layout.words())?;
            Box::new(Tiered::new(site, ring)?)
        }
        _ => {
            let ring = DeviceRing::new(places, site.layout.clone(), site.device, site.crossed)?;
            Box::new(Tiered::new(site, ring)?)
        }
    })
}

/// A file in front of which lies memory.
#[derive(Debug)]
pub(crate) struct Tiered<S> {
    /// All of them.
    all: Disk,
    /// The newest.
    recent: S,
    /// So many of them are drawn from there.
    span: u64,
}

impl<S: Memory> Tiered<S> {
    fn new(site: Site<'_>, recent: S) -> Result<Self, ReplayError> {
        let (window, span) = (site.window, site.recent);
        let mut tiered = Self { all: Disk::open(site)?, recent, span };
        tiered.reload(window)?;
        Ok(tiered)
    }

    /// Reads the newest from the file again.
    fn reload(&mut self, window: &Window) -> Result<(), ReplayError> {
        let oldest = window.end().saturating_sub(self.recent.places()).max(window.begin());
        self.recent.write(self.all.rows()?, oldest..window.end())
    }
}

impl<S: Memory> Storage for Tiered<S> {
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError> {
        let mut before = window.clone();
        // The file first: where the disk is full, nothing else has changed.
        self.all.extend(window, new)?;
        let written = self.recent.extend(&mut before, new);
        if written.is_err() {
            *window = before;
        }
        written
    }

    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError> {
        let at = draw.window.end().saturating_sub(self.span);
        self.all.gather(&Draw { which: draw.which.start..at, ..*draw }, slot)?;
        // The successor in time of a recent transition is recent too.
        self.recent.gather(&Draw { which: at..draw.which.end, ..*draw }, slot)
    }

    fn went_back(&mut self, window: &Window, by: u64) -> Result<(), ReplayError> {
        // The newest that are left were overwritten, if there were enough others.
        if by > self.recent.places().saturating_sub(self.span) {
            self.reload(window)?;
        }
        self.all.went_back(window, by)
    }

    fn save(&mut self, window: &Window) -> Result<u64, ReplayError> {
        self.all.save(window)
    }
}

#[cfg(test)]
#[path = "tests/tiered.rs"]
mod tests;
