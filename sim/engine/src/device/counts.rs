//! Counters behind [`Traffic`].

use super::Traffic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of one device, or of its users, which its programs and copies share.
#[derive(Debug, Default)]
pub struct Counts {
    launches: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
    waits: AtomicU64,
}

impl Counts {
    /// A kernel was launched.
    pub fn launch(&self) {
        self.launches.fetch_add(1, Relaxed);
    }

    /// Numbers went to the device; whether the host waited for them.
    pub fn sent(&self, waited: bool) {
        self.upload();
        if waited {
            self.wait();
        }
    }

    /// Numbers came to the host, which waited for them.
    pub fn fetched(&self) {
        self.download();
        self.wait();
    }

    /// Numbers went to the device.
    pub fn upload(&self) {
        self.uploads.fetch_add(1, Relaxed);
    }

    /// Numbers came to the host.
    pub fn download(&self) {
        self.downloads.fetch_add(1, Relaxed);
    }

    /// The host waited.
    pub fn wait(&self) {
        self.waits.fetch_add(1, Relaxed);
    }

    /// All until now.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            launches: self.launches.load(Relaxed),
            uploads: self.uploads.load(Relaxed),
            downloads: self.downloads.load(Relaxed),
            waits: self.waits.load(Relaxed),
        }
    }
}
