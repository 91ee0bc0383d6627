//! What was timed on a device, kept from one start to the next.
//!
//! The folder is beside that of compiled programs: `$OSTLER_CACHE/teams`, else
//! `$XDG_CACHE_HOME/ostler/teams`, else `~/.cache/ostler/teams`. An entry's name is a hash
//! of the programs, the device, its driver and compiler, and how it is timed; a device's
//! clocks and what else it does at that moment are not in it.

use crate::physics::native::specialize::{Cache, ContentHash, SpecializeError, root};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Changes when the same key means something else.
const FORMAT: &str = concat!("ostler trials 1, engine ", env!("CARGO_PKG_VERSION"));
const FILE: &str = "timed.json";
/// Bytes of all entries together.
const LIMIT: u64 = 1 << 20;

/// How long a lock is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// A number of threads, and how long a control step of all environments took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Threads of an environment.
    pub threads: usize,
    /// Of one control step.
    pub step: Duration,
}

/// Times on one device.
#[derive(Debug)]
pub struct Trials {
    /// Without one everything is timed at every start.
    cache: Option<Cache>,
    /// All about the device that times depend on.
    device: String,
}

impl Trials {
    /// In the folder that this process's environment names.
    pub fn from_environment(device: String) -> Self {
        let root = root(&|name| std::env::var_os(name));
        Self {
            // That there is none was said of the compiled programs' cache.
            cache: root.ok().map(|root| at(&root.join("teams"))),
            device,
        }
    }

    /// In this folder.
    pub fn within(folder: &Path, device: String) -> Self {
        Self {
            cache: Some(at(folder)),
            device,
        }
    }

    /// Where they are kept.
    pub fn folder(&self) -> Option<&Path> {
        Some(self.cache.as_ref()?.folder())
    }

    /// The name of what was timed with these programs and settings.
    pub fn key(&self, parts: &[&str]) -> String {
        let mut hash = ContentHash::default();
        hash.add(FORMAT.as_bytes());
        hash.add(self.device.as_bytes());
        for part in parts {
            hash.add(part.as_bytes());
        }
        hash.finish()
    }

    /// What was timed under this name; what is damaged was not.
    pub fn find(&self, key: &str) -> Option<Vec<Timed>> {
        let (_, bytes) = self.cache.as_ref()?.find(key).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Keeps it. Where that cannot be, the next start times again.
    pub fn keep(&self, key: &str, timed: &[Timed]) {
        let Some(cache) = &self.cache else { return };
        if let Err(e) = self.write(cache, key, timed) {
            tracing::debug!(target: "ostler::kernels", "what was timed is not kept: {e}");
        }
    }

    fn write(&self, cache: &Cache, key: &str, timed: &[Timed]) -> Result<(), SpecializeError> {
        // Whoever holds the lock for long keeps the same. A process that is being started
        // holds all of this one's locks for a moment, until it becomes another program.
        let lock = cache.lock(key, &mut |waited| match waited > PATIENCE {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })?;
        let building = cache.building(lock)?;
        building.write(serde_json::to_vec(timed))?;
        building.publish(&format!("{FORMAT}\n{}\n", self.device))
    }
}

fn at(folder: &Path) -> Cache {
    Cache::of(FILE, folder.to_path_buf(), LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_timed_comes_back_for_the_same_device_and_parts_alone() {
        let folder = tempfile::tempdir().unwrap();
        let on = |device: &str| Trials::within(folder.path(), device.into());
        let trials = on("a GPU");
        let timed = [
            Timed {
                threads: 4,
                step: Duration::from_micros(1234),
            },
            Timed {
                threads: 1,
                step: Duration::from_nanos(7),
            },
        ];
        let key = trials.key(&["program", "4096"]);
        assert_eq!(trials.find(&key), None);
        trials.keep(&key, &timed);
        assert_eq!(trials.find(&key), Some(timed.to_vec()));
        assert_eq!(on("a GPU").find(&key), Some(timed.to_vec()));
        for (device, parts) in [
            ("another GPU", ["program", "4096"]),
            ("a GPU", ["program", "4097"]),
            ("a GPU", ["program4", "096"]),
        ] {
            let other = on(device);
            assert_eq!(other.find(&other.key(&parts)), None, "{device} {parts:?}");
        }
        trials.keep(&key, &timed[1..]);
        assert_eq!(trials.find(&key), Some(timed[1..].to_vec()));
        let file = folder.path().join(&key).join(FILE);
        std::fs::write(file, "[]").unwrap();
        assert_eq!(trials.find(&key), None, "damaged");
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let trials = Trials::within(&file, "a GPU".into());
        let key = trials.key(&[]);
        trials.keep(&key, &[]);
        assert_eq!(trials.find(&key), None);
    }
}
