//! Throughputs as they were, by class of machine and case.

use crate::run::RunError;
use crate::run::checkpoint::write_atomically;
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's version.
const VERSION: u32 = 2;
/// A file longer than this is not read (bytes).
const MAX_BYTES: u64 = 16 << 20;

/// A throughput, in the unit in which it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Throughput {
    /// On a processor.
    Reference {
        /// Environment steps for a round of the reference workload.
        steps_per_round: f64,
        /// The version of that workload.
        yardstick: u32,
    },
    /// On a GPU.
    Clock {
        /// Environment steps per second.
        steps_per_s: f64,
    },
}

impl Throughput {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Self::Reference { steps_per_round, .. } => steps_per_round,
            Self::Clock { steps_per_s } => steps_per_s,
        }
    }

    /// As a share of `baseline`; none where they have different units.
    pub fn share_of(self, baseline: Self) -> Option<f64> {
        let version = |t| match t {
            Self::Reference { yardstick, .. } => Some(yardstick),
            Self::Clock { .. } => None,
        };
        (version(self) == version(baseline)).then(|| self.value() / baseline.value())
    }
}

impl std::fmt::Display for Throughput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reference { steps_per_round, .. } => {
                write!(f, "{steps_per_round:.1} steps/round")
            }
            Self::Clock { steps_per_s } => write!(f, "{steps_per_s:.0} steps/s"),
        }
    }
}

/// One case on one class of machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Median over the seeds.
    pub throughput: Throughput,
    /// Seeds.
    pub seeds: usize,
    /// When: `2026-11-20`.
    pub date: String,
}

/// The file of baselines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    version: u32,
    /// By class of machine, then by case.
    machines: BTreeMap<String, BTreeMap<String, Baseline>>,
}

impl Default for Baselines {
    fn default() -> Self {
        Self { version: VERSION, machines: BTreeMap::new() }
    }
}

/// The key of a case in one of its forms.
pub fn key(case: &str, short: bool) -> String {
    match short {
        true => format!("{case} --short"),
        false => case.to_string(),
    }
}

impl Baselines {
    /// Reads the file; one that is not there is empty.
    ///
    /// # Errors
    /// It is there and cannot be used.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bad = |why: String| {
            RunError::Usage(format!(
                "the baselines {} cannot be used: {why}; mend the file, or remove it and write it anew with --update-baselines",
                path.display()
            ))
        };
        let text = match files::read(path, MAX_BYTES) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(bad(e.to_string())),
        };
        let all: Self = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
        if all.version != VERSION {
            return Err(bad(format!("version {} is not {VERSION}", all.version)));
        }
        let mut each = all.machines.values().flat_map(BTreeMap::iter);
        let wrong = |b: &Baseline| {
            let value = b.throughput.value();
            !value.is_finite() || value <= 0.0
        };
        match each.find(|(_, b)| wrong(b)) {
            Some((case, b)) => Err(bad(format!("{case}: {}", b.throughput))),
            None => Ok(all),
        }
    }

    /// That of a case.
    pub fn get(&self, class: &str, key: &str) -> Option<&Baseline> {
        self.machines.get(class)?.get(key)
    }

    /// Sets that of a case.
    pub fn set(&mut self, class: &str, key: &str, baseline: Baseline) {
        let of_class = self.machines.entry(class.to_string()).or_default();
        of_class.insert(key.to_string(), baseline);
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        let file = |source| RunError::File {
            action: "write",
            path: path.to_path_buf(),
            source,
            hint: "; --baselines names another file",
        };
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| file(e.into()))?;
        text.push(b'\n');
        write_atomically(path, &text).map_err(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baselines.json");
        assert_eq!(Baselines::read(&path).unwrap(), Baselines::default());
        let mut all = Baselines::default();
        let one = Baseline {
            throughput: Throughput::Reference { steps_per_round: 1234.5, yardstick: 1 },
            seeds: 3,
            date: "2026-11-20".into(),
        };
        all.set("fast, release", &key("pole", false), one.clone());
        all.write(&path).unwrap();
        let read = Baselines::read(&path).unwrap();
        assert_eq!(read.get("fast, release", "pole"), Some(&one));
        assert_eq!(read.get("fast, debug", "pole"), None);
        assert_eq!(read.get("fast, release", &key("pole", true)), None);
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("1234.5", "0.0"),
            ("1234.5", "-1"),
            ("\"version\": 2", "\"version\": 1"),
            ("yardstick", "inches"),
            ("seeds", "sides"),
            ("{", "["),
        ] {
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let e = Baselines::read(&path).unwrap_err().to_string();
            assert!(e.contains("baselines.json cannot be used"), "{e}");
        }
    }
    #[test]
    fn only_what_has_the_same_unit_is_compared() {
        let reference =
            |steps_per_round, yardstick| Throughput::Reference { steps_per_round, yardstick };
        let clock = Throughput::Clock { steps_per_s: 2.0 };
        assert_eq!(reference(3.0, 1).share_of(reference(2.0, 1)), Some(1.5));
        assert_eq!(reference(3.0, 1).share_of(reference(2.0, 2)), None);
        assert_eq!(reference(3.0, 1).share_of(clock), None);
        assert_eq!(clock.share_of(reference(2.0, 1)), None);
        assert_eq!(clock.share_of(clock), Some(1.0));
    }
}
