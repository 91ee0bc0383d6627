//! Throughput: it is compared with what was written, or with a program at its side.

use super::{CASE, Suite, kinds, swap};
use crate::support::share;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run that is long enough to be measured, with more values set.
fn long(set: &str, share: f64) -> String {
    let text = swap("iterations = 3", "iterations = 500");
    let more = format!("\"env.num_envs=16\", \"learner.threads=1\", \"sim.threads=1\"{set}");
    format!("{}throughput_share = {share}\n", text.replace("\"env.num_envs=16\"", &more))
}

#[test]
fn throughput_is_compared_with_what_was_written() {
    let suite = Suite::of("one", &long("", 0.001));
    let (results, said) = suite.ends(0, "none", &[]);
    assert_eq!(results["cases"][0]["checks"][1]["verdict"], "skipped");
    assert!(said.contains("no baseline for"), "{said}");
    assert!(suite.read("none/summary.md").contains("no baseline for"));
    let (results, _) = suite.ends(1, "required", &["--require-baseline"]);
    assert_eq!(kinds(&results["cases"][0]), ["no_baseline"]);

    let (results, _) = suite.ends(0, "written", &["--update-baselines"]);
    let class = results["machine"]["class"].as_str().unwrap();
    let file = suite.0.path("cases/baselines.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let baselines: serde_json::Value = serde_json::from_str(&text).unwrap();
    let value = baselines["machines"][class]["one"]["steps_per_s"].as_f64().unwrap();
    assert_eq!(results["cases"][0]["steps_per_s"].as_f64(), Some(value));
    assert_eq!(results["cases"][0]["runs"][0]["steps_per_s"].as_f64(), Some(value));

    let (results, _) = suite.ends(0, "used", &["--require-baseline"]);
    assert!(results["cases"][0]["throughput_share"].as_f64().unwrap() > 0.01);
    // As if the code had been a million times as fast.
    let mut fast = baselines.clone();
    fast["machines"][class]["one"]["steps_per_s"] = (1e6 * value).into();
    std::fs::write(&file, fast.to_string()).unwrap();
    let (results, _) = suite.ends(1, "slow", &[]);
    assert_eq!(kinds(&results["cases"][0]), ["throughput"]);
    // Another class has none, and other runs at the same time make another class.
    let (results, _) = suite.ends(1, "jobs", &["--require-baseline", "--jobs", "2"]);
    assert_eq!(kinds(&results["cases"][0]), ["no_baseline"]);
}

#[test]
fn a_case_that_fails_writes_no_baseline() {
    let text = format!("{}throughput_share = 0.5\n", swap("1.0", "1e6"));
    let text = text.replace("iterations = 3", "iterations = 300");
    let suite = Suite::of("one", &text);
    let (_, said) = suite.ends(1, "out", &["--update-baselines"]);
    assert!(said.contains("no baseline from one: it did not pass"), "{said}");
    assert!(!suite.0.path("cases/baselines.json").exists());
}

/// Threads that keep all processors busy for as long as this lives.
struct Busy(std::sync::Arc<AtomicBool>);

impl Busy {
    fn new() -> Self {
        let done = std::sync::Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cores {
            let done = done.clone();
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(done)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn slower_code_fails_and_a_busy_machine_does_not() {
    // The same code has about 1, code that takes twice the time 0.5.
    let three = |set: &str| long(set, 0.75).replace("seeds = [1]", "seeds = [1, 2, 3]");
    assert!(three("").contains("[1, 2, 3]"));
    let suite = Suite::of("one", &three(""));
    // The other program: this one, whole.
    let other = suite.0.path("other");
    let ostler = suite.0.ostler(&[]);
    let ostler = ostler.get_program().to_str().unwrap();
    let script = format!("#!/bin/sh\nexec '{ostler}' \"$@\" --set 'fault.inject=[]'\n");
    std::fs::write(&other, script).unwrap();
    std::fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    let against = ["--against", other.to_str().unwrap()];
    // Slower by work, and by waiting; and the same code on a busy machine.
    let part = share::of(3, "comparisons of three runs", 1);
    if part == 3 {
        let _busy = Busy::new();
        let (results, _) = suite.ends(0, "busy", &against);
        assert!(results["cases"][0]["runs"][2]["steps_per_s_against"].as_f64().unwrap() > 0.0);
        assert!(suite.0.path("busy/one/seed_3.against/metrics.jsonl").is_file());
    }
    for by in ["work", "waiting"].into_iter().take(part) {
        let drill = format!(
            ", 'fault.inject=[\"slow phase=update percent=100 by={by}\", \"slow phase=collect percent=100 by={by}\"]'"
        );
        suite.case("one", &three(&drill));
        let (results, said) = suite.ends(1, by, &against);
        assert_eq!(kinds(&results["cases"][0]), ["throughput"], "{said}");
    }
}

#[test]
fn a_program_that_is_not_there_fails_the_case() {
    let suite = Suite::of("one", &format!("{CASE}throughput_share = 0.5\n"));
    let (results, said) = suite.ends(1, "out", &["--against", "nowhere/ostler"]);
    assert_eq!(kinds(&results["cases"][0]), ["not_started", "missing_metric"], "{said}");
    // Where no speed is asked for, nothing is compared.
    suite.case("one", CASE);
    suite.ends(0, "unasked", &["--against", "nowhere/ostler"]);
}
