//! The report of a failure: what broke, everything that shows it again, and what
//! usually mends it.
//!
//! ```text
//! failure/iter_00000012_broken_envs/
//!   report.md           for people
//!   report.json         the same for programs
//!   config.toml robot/  as in force, with the values of schedules beside it in report.json
//!   metrics.jsonl       the last iterations
//!   memory.jsonl        the last samples of memory and disk
//!   log.txt             the last lines of the run's log
//!   start.safetensors   environments at the iteration's start, the actions since
//!   meta.json           versions and hardware
//! ```

mod remedy;
mod replay;
mod start;
mod text;

pub use remedy::remedy;
pub use replay::{Replay, Seen};
use start::Start;

use super::error::RunError;
use super::parts::Parts;
use super::report::Standing;
use super::store::dir::{FAILURES, METRICS, RunDir};
use super::store::meta;
use super::store::write::write_atomically;
use crate::log::trace::LOG;
use ostler_sim::env::EpisodeStats;
use ostler_sim::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the report for programs.
pub(crate) const REPORT: &str = "report.json";
/// The report as people read it, which is written last.
const SHOWN: &str = "report.md";
/// Reports that stay: the first, which is the cause of the others more often than not,
/// and the newest.
const MOST: usize = 10;
/// Lines that are kept are among the last bytes of a file, so many.
const TAIL: u64 = 1 << 20;
/// Iterations whose metrics are kept.
const ITERATIONS: usize = 100;
/// Lines of the log that are kept.
const LOGGED: usize = 200;

/// `report.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// One sentence.
    pub what: String,
    /// The name of the trouble.
    pub kind: String,
    /// Iterations done, the one that failed included.
    pub iteration: u64,
    /// Environments.
    pub num_envs: usize,
    /// Values that schedules had, by key.
    pub schedules: Vec<(String, f64)>,
    /// The first environments that broke.
    pub breaks: Vec<Broken>,
    /// Causes and how many environments broke of each, the most frequent first.
    pub causes: Vec<(String, u64)>,
    /// Events of the task that environments broke soon after (of startup: again and again),
    /// and how many did.
    pub events: Vec<(String, u64)>,
    /// The usual remedy.
    pub remedies: Vec<String>,
    /// Whether `start.safetensors` is there; if not, why.
    pub start: Option<String>,
    /// Roll-backs in a row and in all.
    pub roll_backs: [u64; 2],
}

/// One environment that broke.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    /// Its number in the run.
    pub env: u32,
    /// Control step of the rollout, from 0.
    pub step: u32,
    /// Control steps of its episode.
    pub age: u32,
    /// `nan/joint/knee`.
    pub cause: String,
    /// The number that was wrong, as text: JSON has no NaN.
    pub value: String,
}

fn cause(names: &[String], index: usize) -> String {
    names.get(index).cloned().unwrap_or_default()
}

impl Broken {
    /// Those of some statistics; `names`: [`EnvSpec`](ostler_sim::env::EnvSpec)'s of
    /// causes.
    pub fn all(stats: &EpisodeStats, names: &[String]) -> Vec<Self> {
        let broken = stats.breaks.iter().map(|b| Self {
            env: b.env,
            step: b.step,
            age: b.age,
            cause: cause(names, b.cause as usize),
            value: b.value.to_string(),
        });
        broken.collect()
    }
}

/// A failure to be reported.
pub(super) struct Case<'a> {
    /// The run's folder.
    pub dir: &'a RunDir,
    /// Where the run stands.
    pub run: Standing<'a>,
    /// Collector and learner, if they are known to be of the iteration that failed.
    pub parts: Option<&'a Parts>,
}

impl Case<'_> {
    /// Writes the report. One that cannot be written is a warning: the run has other
    /// troubles.
    pub(crate) fn report(&self, kind: &str, what: &str, remedy: &str) {
        match self.write(kind, what, remedy) {
            Ok(folder) => tracing::info!("the report is {}", folder.display()),
            Err(e) => tracing::warn!("no report of this failure: {e}"),
        }
    }

    fn write(&self, kind: &str, what: &str, remedy: &str) -> Result<PathBuf, RunError> {
        let run = self.run;
        let all = self.dir.path().join(FAILURES);
        let name = format!("iter_{:08}_{kind}", run.counters.iteration);
        let folder = all.join(name);
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |e| RunError::file("write the report", &path)(e)
        };
        for part in [&all, &folder] {
            files::own_folder(part).map_err(at(part))?;
        }
        make_room(&all);
        let health = run.guards.health.record();
        let mut report = Report {
            what: what.into(),
            kind: kind.into(),
            iteration: run.counters.iteration,
            num_envs: run.setup.num_envs(),
            schedules: run.schedules.stage.clone(),
            roll_backs: [u64::from(health.roll_backs), health.roll_backs_in_all],
            ..Report::default()
        };
        if let Some(parts) = self.parts {
            add_breaks(parts, &mut report);
            if !report.breaks.is_empty() {
                let start = Start::write(&folder, parts);
                report.start = Some(match start {
                    Ok(()) => start::NAME.into(),
                    Err(why) => format!("left out: {why}"),
                });
            }
        }
        for (cause, _) in report.causes.iter().take(3) {
            let text = self::remedy(cause, &run.setup.model, run.setup.config());
            if !report.remedies.contains(&text) {
                report.remedies.push(text);
            }
        }
        if report.remedies.is_empty() {
            report.remedies.push(remedy.into());
        }
        self.dir.write_config_into(&folder, run.setup.config(), &run.setup.model)?;
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            write_atomically(&path, bytes).map_err(at(&path))
        };
        let json = serde_json::to_vec_pretty(&report)
            .map_err(|e| RunError::Usage(format!("the report cannot be written: {e}")))?;
        put(REPORT, &json)?;
        put(METRICS, &tail(&self.dir.path().join(METRICS), ITERATIONS))?;
        put(LOG, &tail(&self.dir.path().join(LOG), LOGGED))?;
        let mut memory = Vec::new();
        for sample in run.guards.memory.monitor.history() {
            memory.extend_from_slice(text::sample(&sample).as_bytes());
            memory.push(b'\n');
        }
        put("memory.jsonl", &memory)?;
        if let Ok(meta) = files::read(&self.dir.path().join("meta.json"), meta::MOST) {
            put("meta.json", &meta)?;
        }
        let shown = text::markdown(&report, &folder);
        put(SHOWN, shown.as_bytes())?;
        Ok(folder)
    }
}

/// The environments that broke, and why.
fn add_breaks(parts: &Parts, report: &mut Report) {
    let stats = parts.collector.stats();
    let names = &parts.spec.cause_names;
    report.breaks = Broken::all(stats, names);
    let counts = stats.causes.iter().enumerate().filter(|c| *c.1 > 0);
    report.causes = counts.map(|(i, n)| (cause(names, i), *n)).collect();
    report.causes.sort_by_key(|c| std::cmp::Reverse(c.1));
    let events = parts.spec.events.iter().zip(&stats.suspects);
    let events = events.filter(|(_, n)| **n > 0);
    report.events = events.map(|(e, n)| (e.name.clone(), *n)).collect();
    report.events.sort_by_key(|e| std::cmp::Reverse(e.1));
}

/// The newest whole report in a run's folder.
pub(super) fn newest(run: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(run.join(FAILURES)).ok()?;
    let reports = all.flatten().map(|e| e.path());
    let dated = reports.filter_map(|p| {
        let written = p.join(SHOWN).metadata().ok()?.modified().ok()?;
        Some((written, p))
    });
    Some(dated.max()?.1)
}

/// The last `most` lines of a file; nothing where it cannot be read. Not all of it is read: a
/// long run's metrics would be held in memory at every roll-back.
fn tail(path: &Path, most: usize) -> Vec<u8> {
    let Ok((text, begins)) = files::end_of(path, TAIL) else {
        return Vec::new();
    };
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    if !begins && !lines.is_empty() {
        // Cut somewhere.
        lines.remove(0);
    }
    lines[lines.len().saturating_sub(most)..].concat()
}

/// Keeps the number of reports within bounds.
fn make_room(all: &Path) {
    // By age: a resumed run writes of earlier iterations than those on record.
    let mut folders: Vec<(Option<SystemTime>, PathBuf)> = std::fs::read_dir(all)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("iter_"))
        .map(|e| (e.metadata().and_then(|m| m.modified()).ok(), e.path()))
        .filter(|f| f.1.is_dir())
        .collect();
    folders.sort();
    let surplus = folders.len().saturating_sub(MOST);
    for (_, folder) in folders.iter().skip(1).take(surplus) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_report_and_the_newest_stay() {
        let dir = tempfile::tempdir().unwrap();
        // In the order of writing, not of iterations.
        std::fs::create_dir(dir.path().join("notes")).unwrap();
        for i in (0..14).rev() {
            std::fs::create_dir(dir.path().join(format!("iter_{i:08}_x"))).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            make_room(dir.path());
        }
        let mut left: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), MOST + 1);
        assert_eq!(left[0], "iter_00000000_x");
        assert_eq!(left[MOST - 2], "iter_00000008_x");
        assert_eq!(left[MOST - 1], "iter_00000013_x");
        assert_eq!(left[MOST], "notes");
    }

    #[test]
    fn the_tail_of_a_file_is_its_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let text: String = (0..250).map(|i| format!("{i}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let last = String::from_utf8(tail(&path, 100)).unwrap();
        assert!(last.starts_with("150\n") && last.ends_with("249\n"), "{last}");
        assert!(tail(&dir.path().join("none"), 100).is_empty());
    }

    #[test]
    fn the_last_lines_are_whole_however_long_the_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        assert!(tail(&path, ITERATIONS).is_empty());
        let written = |lines: usize| {
            let text: String = (0..lines).map(|i| format!("{i:01000}\n")).collect();
            std::fs::write(&path, text).unwrap();
            let read = String::from_utf8(tail(&path, ITERATIONS)).unwrap();
            let numbers = read.lines().map(|l| l.parse().unwrap());
            numbers.collect::<Vec<usize>>()
        };
        assert_eq!(written(3), [0, 1, 2]);
        assert!(written(ITERATIONS + 7).into_iter().eq(7..ITERATIONS + 7));
        // Beyond the bytes that are read.
        let many = 2 * TAIL as usize / 1000;
        assert!(written(many).into_iter().eq(many - ITERATIONS..many));
        let (end, all) = files::end_of(&path, 2500).unwrap();
        assert!(end.len() == 2500 && !all);
    }

    #[test]
    fn a_report_that_was_not_written_to_its_end_is_not_the_newest() {
        let run = tempfile::tempdir().unwrap();
        let report = |name: &str, files: &[&str]| {
            let folder = run.path().join(FAILURES).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|file| std::fs::write(folder.join(file), "x").unwrap());
            folder
        };
        assert_eq!(newest(run.path()), None);
        report("iter_00000007_stopped", &[REPORT]);
        assert_eq!(newest(run.path()), None);
        let whole = report("iter_00000003_stopped", &[REPORT, SHOWN]);
        report("iter_00000009_stopped", &[REPORT]);
        assert_eq!(newest(run.path()), Some(whole));
    }
}
