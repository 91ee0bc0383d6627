//! Memory that does not suffice: the run goes on with fewer environments and loses
//! nothing else.

use crate::common::{Place, assert_same_bits, metrics, tensors, text};
use std::process::Output;

/// Environments of every iteration.
fn sizes(run: &std::path::Path) -> Vec<u64> {
    let of = |l: &serde_json::Value| l["Perf/num_envs"].as_f64().unwrap() as u64;
    metrics(run).iter().map(of).collect()
}

fn inject(place: &Place, out: &str, faults: &[&str], more: &[&str]) -> Output {
    let mut args = vec!["train", "pole.toml", "--quiet", "--out", out];
    args.extend(["runner.max_iterations=6", "runner.save_interval=2"]);
    for fault in faults {
        args.extend(["--inject", fault]);
    }
    args.extend(more);
    place.run(&args)
}

#[test]
fn an_allocation_that_fails_anywhere_is_a_change_of_size_at_that_iterations_start() {
    let place = Place::new();
    // A run that changes its size on purpose before the third iteration.
    place.train("planned", 6, &["back_off.changes=[[2,4]]", "runner.save_interval=2"]);
    let planned = place.path("planned");
    assert_eq!(sizes(&planned), [8, 8, 4, 4, 4, 4]);
    for (i, phase) in ["collect", "update"].into_iter().enumerate() {
        for after in [0, 7] {
            let out = format!("{phase}{after}");
            let fault = format!("fail allocation phase={phase} iteration=3 after={after}");
            let output = inject(&place, &out, &[&fault], &[]);
            let err = text(&output);
            assert_eq!(output.status.code(), Some(0), "{err}");
            assert!(err.contains("goes on with 4 instead of 8"), "{i} {err}");
            assert_same_bits(&planned, &place.path(&out));
            assert_eq!(sizes(&place.path(&out)), [8, 8, 4, 4, 4, 4]);
        }
    }
}

#[test]
fn want_of_memory_while_saving_loses_nothing() {
    let place = Place::new();
    place.train("planned", 6, &["back_off.changes=[[2,4]]", "runner.save_interval=2"]);
    // The second iteration is done when its checkpoint is written.
    let output = inject(&place, "a", &["fail allocation phase=save iteration=2"], &[]);
    let err = text(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("goes on with 4 instead of 8"), "{err}");
    assert_same_bits(&place.path("planned"), &place.path("a"));
    assert_eq!(metrics(&place.path("a")).len(), 6);
}

#[test]
fn what_a_run_did_stands_in_its_configuration_and_repeats() {
    let place = Place::new();
    let fault = "fail allocation phase=update iteration=3 after=2";
    inject(&place, "a", &[fault], &[]);
    let config = std::fs::read_to_string(place.path("a/config.toml")).unwrap();
    assert!(config.contains("num_envs = 8"), "{config}");
    assert!(config.contains("changes = [[2, 4]]"), "{config}");
    // Without the fault.
    place.ok(&["train", "a/config.toml", "--quiet", "--out", "b", "fault.inject=[]"]);
    assert_same_bits(&place.path("a"), &place.path("b"));
    // Going on is going on with four.
    place.ok(&["train", "--resume", "a", "--quiet", "runner.max_iterations=8"]);
    assert_eq!(sizes(&place.path("a")), [8, 8, 4, 4, 4, 4, 4, 4]);
}

/// Freed memory does not come back before the process ends, so a second failure asks for a fresh
/// process.
#[test]
fn a_second_failure_goes_on_in_a_fresh_process_with_the_same_bits() {
    let place = Place::new();
    place.train("planned", 6, &["back_off.changes=[[2,4]]", "runner.save_interval=4"]);
    let every_four = ["runner.save_interval=4"];
    for (out, second) in [
        ("resize", "fail allocation phase=resize iteration=3"),
        ("update", "fail allocation phase=update iteration=3"),
    ] {
        let first = "fail allocation phase=collect iteration=3";
        let output = inject(&place, out, &[first, second], &every_four);
        let err = text(&output);
        assert_eq!(output.status.code(), Some(0), "{out} {err}");
        for part in [
            "4 environments find no room in this process",
            "the run goes on from its checkpoint of iteration 2 with 4 environments at the most",
        ] {
            assert!(err.contains(part), "{out} {err}");
        }
        assert_same_bits(&place.path("planned"), &place.path(out));
        assert_eq!(sizes(&place.path(out)), [8, 8, 4, 4, 4, 4]);
    }
    // Alone it makes do with what there is, and repeats what it did.
    let faults =
        ["fail allocation phase=collect iteration=3", "fail allocation phase=resize iteration=3"];
    let alone = [&every_four[..], &["runner.supervise=false"]].concat();
    let output = inject(&place, "alone", &faults, &alone);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(sizes(&place.path("alone")), [8, 8, 2, 2, 2, 2]);
}

/// A number that was found at the start holds for whoever repeats the run.
#[test]
fn a_run_that_started_with_fewer_repeats_with_as_few() {
    let place = Place::new();
    place.train("planned", 3, &["back_off.changes=[[0,4]]"]);
    assert_eq!(sizes(&place.path("planned")), [4, 4, 4]);
    place.train("few", 3, &["env.num_envs=4"]);
    assert_same_bits(&place.path("few"), &place.path("planned"));
    let config = std::fs::read_to_string(place.path("planned/config.toml")).unwrap();
    assert!(config.contains("changes = [[0, 4]]"), "{config}");
    let refused = place.run(&["check", "pole.toml", "back_off.changes=[[3,4],[2,2]]"]);
    let err = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(err.contains("back_off.changes[1]"), "{err}");
}

#[test]
fn it_grows_again_after_calm_and_environments_that_stayed_go_on() {
    let place = Place::new();
    let fault = "fail allocation phase=collect iteration=2";
    let output = inject(&place, "a", &[fault], &["back_off.grow_after=3"]);
    let err = text(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(sizes(&place.path("a")), [8, 4, 4, 4, 8, 8]);
}

#[test]
fn a_floor_ends_the_run_with_its_last_checkpoint_intact() {
    let place = Place::new();
    let fault = "fail allocation phase=update iteration=4";
    let output = inject(&place, "a", &[fault], &["back_off.min_num_envs=5"]);
    let err = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("8 environments do not fit"), "{err}");
    assert!(err.contains("back_off.min_num_envs = 5"), "{err}");
    assert!(!tensors(&place.path("a")).is_empty());
    place.ok(&["train", "--resume", "a", "--quiet", "fault.inject=[]"]);
    assert_eq!(metrics(&place.path("a")).len(), 6);
    // And with back-off switched off.
    let output = inject(&place, "b", &[fault], &["back_off.factor=1"]);
    let err = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("back-off is off"), "{err}");
}

#[test]
fn under_a_real_limit_a_run_takes_what_fits_and_learns_as_one_started_there() {
    let place = Place::new();
    let args = "train pole.toml --quiet env.num_envs=65536 runner.max_iterations=2 log.curve=false";
    // 65,536 environments take more than 350 MB of data, half as many less than 280.
    let output = place.limited("-d 300000", &format!("{args} --out a"));
    let err = text(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("environments do not fit"), "{err}");
    let n = sizes(&place.path("a"))[0];
    assert!((64..65536).contains(&n), "{n}");
    // Started with that number it is the same run.
    let n = format!("env.num_envs={n}");
    place.ok(&["train", "pole.toml", "--quiet", "--out", "b", "runner.max_iterations=2", &n]);
    assert_same_bits(&place.path("a"), &place.path("b"));
}

#[test]
fn lasting_pressure_leads_to_fewer_environments_down_to_the_least_and_is_said_once() {
    let place = Place::new();
    // Any use at all is pressure here.
    let args = "train pole.toml --quiet --out a runner.max_iterations=8 log.curve=false \
        memory.warn=0.01 memory.act=0.01 memory.act_after_s=0 back_off.min_num_envs=2";
    let output = place.limited("-d 2048000", args);
    let err = text(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    // Before the warm-up and before the first iteration.
    assert_eq!(sizes(&place.path("a")), [2; 8]);
    assert_eq!(err.matches("goes on with").count(), 2, "{err}");
    assert_eq!(err.matches("as long as it can").count(), 1, "{err}");
    assert!(err.contains(" MiB left: the run goes on with 4"), "{err}");
}
