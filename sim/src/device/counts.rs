//! What [`Traffic`] is read from.

use super::Traffic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of one device, which its programs and copies share.
#[derive(Debug, Default)]
pub(super) struct Counts {
    launches: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
    waits: AtomicU64,
}

impl Counts {
    pub fn launch(&self) {
        self.launches.fetch_add(1, Relaxed);
    }

    pub fn upload(&self) {
        self.uploads.fetch_add(1, Relaxed);
    }

    pub fn download(&self) {
        self.downloads.fetch_add(1, Relaxed);
    }

    pub fn wait(&self) {
        self.waits.fetch_add(1, Relaxed);
    }

    pub fn traffic(&self) -> Traffic {
        Traffic {
            launches: self.launches.load(Relaxed),
            uploads: self.uploads.load(Relaxed),
            downloads: self.downloads.load(Relaxed),
            waits: self.waits.load(Relaxed),
        }
    }
}
