//! Free space where the run writes.

use rustix::fs::statvfs;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file system, as this user sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Free for this user (bytes).
    pub free: u64,
    /// All of it (bytes).
    pub total: u64,
    /// Files that can still be made; `None` where the file system does not count.
    pub free_files: Option<u64>,
}

impl Disk {
    /// The file system that holds `path`, or the nearest folder above it that is there.
    pub fn of(path: &Path) -> Option<Self> {
        let s = path.ancestors().find_map(|p| {
            let here = if p.as_os_str().is_empty() { Path::new(".") } else { p };
            statvfs(here).ok()
        })?;
        Some(Self {
            free: s.f_bavail.saturating_mul(s.f_frsize),
            total: s.f_blocks.saturating_mul(s.f_frsize),
            free_files: (s.f_files > 0).then_some(s.f_favail),
        })
    }
}

/// The most free space that the watch is to see (MiB).
static MOST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Lets the watch see at most so much free space (MiB): for drills.
pub fn limit_free_space(mib: u64) {
    MOST.store(mib, Ordering::Relaxed);
}

/// Free space of a disk as the watch sees it, where a drill wants less.
pub(super) fn seen(disk: Disk) -> Disk {
    let most = MOST.load(Ordering::Relaxed).saturating_mul(1 << 20);
    Disk { free: disk.free.min(most), ..disk }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        let here = Disk::of(dir.path()).unwrap();
        let there = Disk::of(&dir.path().join("runs/a/b")).unwrap();
        assert_eq!(here.total, there.total);
        assert!(here.free <= here.total && here.total > 0);
        assert!(Disk::of(Path::new("runs/not/there")).is_some());
        // proc counts neither blocks nor files.
        assert_eq!(Disk::of(Path::new("/proc")).unwrap().free_files, None);
    }
}
