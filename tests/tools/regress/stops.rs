//! Signals: nothing is left running, the results so far are written.

use super::{CASE, Suite, kinds, swap};
use crate::common::process::{is_ostler, kill, parent_of, trainer_of, wait};
use std::path::Path;
use std::process::{Child, Stdio};

/// A suite whose second case goes on for ever, in its first iterations.
fn running() -> (Suite, Child, i32) {
    let suite = Suite::of("a_done", CASE);
    suite.case("b_endless", &swap("iterations = 3", "iterations = 100_000_000"));
    suite.case("c_waiting", CASE);
    let mut command = suite.0.ostler(&["regress", "cases", "--out", "out"]);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let log = suite.0.path("out/b_endless/seed_1/metrics.jsonl");
    let some = |log: &Path| std::fs::metadata(log).is_ok_and(|m| m.len() > 0).then_some(());
    wait("iterations", || some(&log));
    let trainer = wait("the training process", || trainer_of(child.id() as i32));
    (suite, child, trainer)
}

fn gone(trainer: i32) {
    wait("the end of the training process", || {
        (parent_of(trainer).is_none() || !is_ostler(trainer)).then_some(())
    });
}

#[test]
fn a_signal_ends_the_run_and_writes_what_there_is() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (suite, mut child, trainer) = running();
        kill(child.id() as i32, signal);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        gone(trainer);
        let results = suite.results("out");
        assert_eq!(results["interrupted"], true);
        let cases = results["cases"].as_array().unwrap();
        assert_eq!(cases[0]["verdict"], "passed");
        for case in &cases[1..] {
            assert_eq!(case["verdict"], "not_run");
            assert_eq!(kinds(case)[0], "interrupted");
        }
        // The run was asked, not killed: it saved.
        let run = &cases[1]["runs"][0];
        assert_eq!(run["exit"]["code"], 130, "{run}");
        assert!(cases[2]["runs"].as_array().unwrap().is_empty());
        assert!(suite.read("out/summary.md").contains("stopped before its end"));
        assert!(suite.read("out/junit.xml").contains("type=\"interrupted\""));
    }
}

#[test]
fn a_runner_that_is_killed_leaves_no_training_and_no_pass() {
    let (suite, mut child, trainer) = running();
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    gone(trainer);
    let results = suite.results("out");
    assert_eq!(results["counts"]["not_run"], 2);
    assert_eq!(results["cases"][0]["verdict"], "passed");
    assert!(suite.read("out/summary.md").starts_with("# Regression FAILED"));
}
