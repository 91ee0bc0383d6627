//! `log.txt`: in which iteration, in which format, of which modules; and its last lines in
//! the report of a failure.

use crate::common::forked::Forked as _;
use crate::common::{Place, text};
use serde_json::Value;
use std::path::Path;

/// An update that is not believed, in the second iteration.
const TROUBLE: &str = "nan parameter[5] update=2";

fn log(run: &Path) -> String {
    std::fs::read_to_string(run.join("log.txt")).unwrap()
}

fn objects(log: &str) -> Vec<Value> {
    let line = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"));
    log.lines().map(line).collect()
}

#[test]
fn what_is_logged_says_in_which_iteration_and_is_kept_with_a_failure() {
    let place = Place::new();
    let run = place.train("a", 3, &["--inject", TROUBLE]);
    let log = log(&run);
    let back = |l: &&str| l.contains("back to the last good weights");
    let line = log.lines().find(back).unwrap();
    assert!(line.contains(" WARN iteration{n=2}: "), "{line}");
    // Lines before the first iteration belong to no iteration.
    let first = log.lines().next().unwrap();
    assert!(!first.contains("iteration{"), "{first}");

    let report = run.join("failure/iter_00000002_non_finite_params");
    let kept = std::fs::read_to_string(report.join("log.txt")).unwrap();
    assert!(!kept.is_empty() && log.starts_with(&kept), "{kept}\n{log}");
    assert!(kept.contains("iteration{n=2}"), "{kept}");
    let words = std::fs::read_to_string(report.join("report.md")).unwrap();
    assert!(words.contains("log.txt"), "{words}");
}

#[test]
fn a_log_of_objects_is_one_in_every_line() {
    let place = Place::new();
    // A warning of the run, and one of the process that watches over it.
    let out = place.run(&[
        "train",
        "pole.toml",
        "--quiet",
        "--out",
        "a",
        "log.format=json",
        "runner.save_interval=1",
        "--inject",
        TROUBLE,
        "--inject",
        "kill phase=update iteration=3",
    ]);
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    let lines = objects(&log(&place.path("a")));
    for line in &lines {
        for key in ["timestamp", "level", "message", "target"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
    }
    let find = |part: &str| {
        let here = |l: &&Value| l["message"].as_str().unwrap().contains(part);
        lines.iter().find(here).unwrap_or_else(|| panic!("{part}"))
    };
    let back = find("back to the last good weights");
    assert_eq!(back["level"], "WARN");
    assert_eq!(back["trouble"], "non_finite_params");
    assert_eq!(back["span"]["name"], "iteration");
    assert_eq!(back["span"]["n"], 2);
    assert_eq!(find("SIGKILL")["target"], "supervisor");
    // Warnings on standard error, too.
    assert!(said.contains(&back.to_string()) || said.contains("\"n\":2"), "{said}");
}

#[test]
fn modules_are_logged_from_their_own_level_on() {
    let place = Place::new();
    let levels = |log: &str| -> Vec<String> {
        let level = |v: Value| format!("{} {}", v["level"], v["target"]).replace('"', "");
        objects(log).into_iter().map(level).collect()
    };
    let train = |out: &str, variable: &str, flag: &[&str]| {
        let mut args = vec!["train", "pole.toml", "--quiet", "--out", out];
        args.extend(["runner.max_iterations=2", "log.format=json", "--inject", TROUBLE]);
        args.extend(flag);
        let mut command = place.ostler(&args);
        let done = command.env("OSTLER_LOG", variable).forked().unwrap();
        assert!(done.status.success(), "{}", text(&done));
        levels(&log(&place.path(out)))
    };
    let info = |all: &[String]| all.iter().filter(|l| l.starts_with("INFO")).count();
    let all = train("a", "", &[]);
    assert!(info(&all) > 0);
    let few = train("b", "warn", &[]);
    assert!(info(&few) == 0 && !few.is_empty(), "{few:?}");
    let chosen = train("c", "warn,ostler_trainer::run::failure=info", &[]);
    assert!(info(&chosen) > 0);
    let own = |l: &String| l.starts_with("WARN") || l.ends_with("ostler_run::run::failure");
    assert!(chosen.iter().all(own), "{chosen:?}");
    // The command line comes before the environment.
    assert_eq!(train("d", "warn", &["--log-level", "info"]), all);
    assert!(train("e", "", &["--log-level", "off"]).is_empty());
    // It is written down, and a run that goes on keeps it.
    let config = std::fs::read_to_string(place.path("d/config.toml")).unwrap();
    assert!(config.contains("level = \"info\""), "{config}");
}

#[test]
fn a_wrong_filter_is_refused_before_anything_runs() {
    let place = Place::new();
    let words = "\"inof\" is no level; did you mean info?";
    for args in
        [["train", "pole.toml", "--log-level", "inof"], ["eval", "a", "--log-level", "inof"]]
    {
        let err = place.fails(2, &args);
        assert!(err.contains("--log-level") && err.contains(words), "{err}");
    }
    let err = place.fails(2, &["train", "pole.toml", "log.level=inof"]);
    assert!(err.contains("log.level") && err.contains(words), "{err}");
    let err = place.fails(2, &["train", "pole.toml", "log.format=jsn"]);
    assert!(err.contains("log.format"), "{err}");
    for command in ["train", "check"] {
        let mut command = place.ostler(&[command, "pole.toml"]);
        let out = command.env("OSTLER_LOG", "ostler_trianer=debug").forked();
        let out = out.unwrap();
        assert_eq!(out.status.code(), Some(2));
        let err = text(&out);
        assert!(
            err.contains("OSTLER_LOG") && err.contains("did you mean ostler_trainer?"),
            "{err}"
        );
    }
    assert!(!place.path("runs").exists());
}
