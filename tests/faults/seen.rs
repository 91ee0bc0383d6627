//! A run's end in words, from what it left behind.

use crate::common::{Place, metrics, tensors, text};
use std::path::{Path, PathBuf};
use std::process::Output;

/// Two cells of the table.
pub struct Seen {
    pub did: String,
    pub lost: String,
}

/// Iterations of every run here.
pub const ITERATIONS: u64 = 6;

/// A run that was given its fault.
pub struct Tried {
    pub place: Place,
    pub run: PathBuf,
    pub output: Output,
}

/// Trains with arguments of this case.
pub fn train(more: &[&str]) -> Tried {
    train_in(Place::new(), more)
}

pub fn train_in(place: Place, more: &[&str]) -> Tried {
    let n = format!("runner.max_iterations={ITERATIONS}");
    let mut args = vec!["train", "pole.toml", "--quiet", "--out", "a"];
    args.extend([n.as_str(), "runner.save_interval=2", "log.curve=false"]);
    args.extend(more);
    let output = place.run(&args);
    let run = place.path("a");
    Tried { place, run, output }
}

/// Trains with one drill.
pub fn drill(fault: &str) -> Tried {
    train(&["--inject", fault])
}

impl Tried {
    pub fn err(&self) -> String {
        text(&self.output)
    }

    /// The end, asserted: the exit code, and that nothing panicked on the way out.
    pub fn ends(self, code: i32) -> Self {
        let err = self.err();
        assert_eq!(self.output.status.code(), Some(code), "{err}");
        assert!(!err.contains("panicked at trainer"), "{err}");
        self
    }

    /// What a run that goes to its end did and lost.
    pub fn goes_on(self) -> Seen {
        let this = self.ends(0);
        assert_eq!(
            metrics(&this.run).len() as u64,
            ITERATIONS,
            "{}",
            this.err()
        );
        let (did, lost) = words(&this.run);
        let did = match did.is_empty() {
            true => "went on".to_string(),
            false => format!("went on: {did}"),
        };
        Seen { did, lost }
    }

    /// The same, and its last checkpoint is that of a run without the fault.
    pub fn same_bits(self) -> Seen {
        let clean = train(&[]).ends(0);
        let bits = tensors(&clean.run) == tensors(&self.run);
        assert!(bits, "other bits\n{}", self.err());
        let seen = self.goes_on();
        assert_eq!(seen.lost, "nothing");
        Seen {
            lost: "nothing (same bits)".into(),
            ..seen
        }
    }
}

fn count(n: u64, one: &str, more: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {more}"),
    }
}

/// Sums a tag over all iterations.
fn sum(lines: &[serde_json::Value], tag: &str) -> u64 {
    let of = |l: &serde_json::Value| l[tag].as_f64().unwrap_or(0.0);
    lines.iter().map(of).sum::<f64>() as u64
}

/// What happened and what was lost, from metrics and log.
pub fn words(run: &Path) -> (String, String) {
    let lines = metrics(run);
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap_or_default();
    let (mut did, mut lost) = (Vec::new(), Vec::new());
    let restarts = log.matches("supervisor: the training").count();
    if restarts > 0 {
        did.push(format!("started again ({restarts}x)"));
    }
    let broken = sum(&lines, "Guard/broken_envs");
    if broken > 0 {
        let mut causes: Vec<String> = lines
            .iter()
            .flat_map(|l| l.as_object().unwrap().keys())
            .filter_map(|k| k.strip_prefix("Guard/"))
            .filter(|k| k.contains('/'))
            .map(|k| format!("`{k}`"))
            .collect();
        causes.sort();
        causes.dedup();
        did.push(format!(
            "reset and masked the environment ({})",
            causes.join(", ")
        ));
    }
    let skipped = sum(&lines, "Guard/skipped_minibatches");
    if skipped > 0 {
        did.push(format!(
            "skipped {}",
            count(skipped, "minibatch", "minibatches")
        ));
    }
    let back = lines
        .last()
        .map_or(0, |l| sum(std::slice::from_ref(l), "Guard/roll_backs"));
    if back > 0 {
        did.push(format!("rolled back to good weights ({back}x)"));
        let thrown = lines
            .iter()
            .filter(|l| l["Loss/surrogate"].is_null())
            .count();
        if thrown > 0 {
            lost.push(count(thrown as u64, "iteration", "iterations"));
        } else {
            lost.push("the weights since the last good ones".into());
        }
    } else {
        if broken > 0 {
            lost.push(format!(
                "{broken} environment steps of {}",
                lines.len() * 128
            ));
        }
        if skipped > 0 {
            let all = lines.len() * 4;
            let some = count(skipped, "minibatch", "minibatches");
            lost.push(format!("{some} of {all}"));
        }
    }
    let sizes: Vec<u64> = lines
        .iter()
        .map(|l| sum(std::slice::from_ref(l), "Perf/num_envs"))
        .collect();
    let mut steps = sizes.clone();
    steps.dedup();
    if steps.len() > 1 || steps.first().is_some_and(|&n| n != 8) {
        let words: Vec<String> = steps.iter().map(u64::to_string).collect();
        did.push(format!("environments: {}", words.join(" -> ")));
    }
    let records = lines
        .iter()
        .map(|l| l["Guard/lost_log_records"].as_f64().unwrap_or(0.0))
        .fold(0.0, f64::max);
    if records > 0.0 {
        lost.push("log records".into());
    }
    let lost = match lost.is_empty() {
        true => "nothing".into(),
        false => lost.join(", "),
    };
    (did.join("; "), lost)
}
