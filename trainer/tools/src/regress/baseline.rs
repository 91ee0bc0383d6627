//! Throughputs as they were, by class of machine and case.

use ostler_run::run::RunError;
use ostler_run::run::checkpoint::write_atomically;
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's version.
const VERSION: u32 = 3;
/// A file longer than this is not read (bytes).
const MAX_BYTES: u64 = 16 << 20;

/// One case on one class of machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Environment steps per second, the median over the seeds.
    pub steps_per_s: f64,
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

/// What is read first.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|e| e.to_string())
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
        let Version { version } = read(&text).map_err(bad)?;
        if version != VERSION {
            return Err(bad(format!(
                "version {version} is not {VERSION}, in which a throughput is steps_per_s by the clock, and not steps_per_round of a reference workload"
            )));
        }
        let all: Self = read(&text).map_err(bad)?;
        let mut each = all.machines.values().flat_map(BTreeMap::iter);
        let wrong = |b: &Baseline| !b.steps_per_s.is_finite() || b.steps_per_s <= 0.0;
        match each.find(|(_, b)| wrong(b)) {
            Some((case, b)) => Err(bad(format!("{case}: {} steps/s", b.steps_per_s))),
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
        let one = Baseline { steps_per_s: 1234.5, seeds: 3, date: "2026-11-20".into() };
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
            ("\"version\": 3", "\"version\": 2"),
            ("steps_per_s", "steps_per_round"),
            ("seeds", "sides"),
            ("{", "["),
        ] {
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let e = Baselines::read(&path).unwrap_err().to_string();
            assert!(e.contains("baselines.json cannot be used"), "{e}");
        }
    }

    #[test]
    fn rounds_of_the_reference_workload_are_refused_with_what_replaces_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baselines.json");
        let old = r#"{"version": 2, "machines": {"m": {"c": {"throughput": {"steps_per_round": 4.5, "yardstick": 1}, "seeds": 3, "date": "2026-11-22"}}}}"#;
        std::fs::write(&path, old).unwrap();
        let e = Baselines::read(&path).unwrap_err().to_string();
        assert!(e.contains("steps_per_s by the clock, and not steps_per_round"), "{e}");
        assert!(e.contains("write it anew with --update-baselines"), "{e}");
    }
}
