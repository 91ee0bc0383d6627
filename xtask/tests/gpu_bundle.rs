//! The bundle for a machine with a GPU, with scripts in place of its programs.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use ostler_xtask::gpu_bundle::pack;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// What stands in for `ostler`: JSON for what is asked as JSON.
const OSTLER: &str = r#"case "$*" in
  *--json*) echo '{"collection.steps_per_s": 1.5, "warp.missing": "no module"}' ;;
esac"#;
const PASSES: &str = "echo 'test a ... FIGURE {\"rounds\": 3}'
echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'";

struct Bundle {
    folder: tempfile::TempDir,
    parts: Vec<PathBuf>,
}

impl Bundle {
    fn new(ostler: &str, tests: &str, limit: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let f = folder.path();
        fs::create_dir_all(f.join("configs/robots")).unwrap();
        fs::write(f.join("configs/robots/a.xml"), "<mujoco/>").unwrap();
        let programs = [
            ("ostler", script(f, "ostler_built", ostler)),
            ("gpu", script(f, "gpu-0123", tests)),
        ];
        let parts = pack(&programs, &f.join("configs"), "abc", &f.join("out"), limit).unwrap();
        Self { folder, parts }
    }

    /// Runs a part; its exit code and what it wrote.
    fn run(&self, part: usize, args: &[&str]) -> (i32, String, String) {
        let results = self.folder.path().join(format!("results-{part}"));
        let out = Command::new("python3")
            .arg(self.parts[part].join("run.py"))
            .args(["--device", "cpu", "--out"])
            .arg(&results)
            .args(args)
            .env_remove("OSTLER_REQUIRE")
            .output()
            .unwrap();
        let read = |name: &str| fs::read_to_string(results.join(name)).unwrap_or_default();
        let code = out.status.code().unwrap();
        eprintln!("{}", String::from_utf8_lossy(&out.stderr));
        (code, read("gpu-results.json"), read("summary.md"))
    }
}

#[test]
fn what_passes_gives_one_file_of_results_and_a_summary() {
    let bundle = Bundle::new(OSTLER, PASSES, 1 << 20);
    assert_eq!(bundle.parts.len(), 1);
    assert!(bundle.parts[0].join("configs/robots/a.xml").is_file());
    let (code, results, summary) = bundle.run(0, &[]);
    assert_eq!(code, 0, "{summary}");
    for text in [
        "\"ok\": true",
        "\"commit\": \"abc\"",
        "\"rounds\": 3",
        "1.5",
        "regression",
    ] {
        assert!(results.contains(text), "{text}: {results}");
    }
    assert!(
        summary.contains("| collection.steps_per_s 1.5, warp.missing no module |"),
        "{summary}"
    );
    // What the host cannot stand in for is said to be left out.
    assert!(
        summary.contains("Not run, for want of a GPU or a file:")
            && summary.contains("; regression."),
        "{summary}"
    );
    assert!(
        summary.contains("| tests | ok (2 passed, 0 failed) |"),
        "{summary}"
    );
    assert!(
        summary.contains("no NVIDIA GPU") || results.contains("MiB"),
        "{summary}"
    );
}

/// One of two tests skips itself; none is left.
#[test]
fn tests_that_skip_themselves_are_named_and_not_counted_as_passed() {
    let skips = |n: usize| {
        let line = |i| format!("printf 'gpu\\tgpu\\tt{i}\\tnone here\\n' >> $OSTLER_SKIPS\n");
        let lines: String = (0..n).map(line).collect();
        format!("{lines}{PASSES}")
    };
    let (code, results, summary) = Bundle::new(OSTLER, &skips(1), 1 << 20).run(0, &[]);
    assert_eq!(code, 0, "{summary}");
    for text in [
        "| tests | ok (1 passed, 0 failed, 1 skipped) |",
        "- tests: gpu: gpu t0: none here",
        "- soak: gpu: gpu t0: none here",
    ] {
        assert!(summary.contains(text), "{text}: {summary}");
    }
    assert!(results.contains("\"skipped\": ["), "{results}");
    let (code, _, summary) = Bundle::new(OSTLER, &skips(2), 1 << 20).run(0, &[]);
    assert_eq!(code, 1, "{summary}");
    assert!(summary.contains("no test ran"), "{summary}");
}

/// On a GPU nothing may be skipped for want of one; with the host in its place it may.
#[test]
fn a_gpu_is_required_where_the_programs_run_on_one() {
    let tests = format!("echo \"FIGURE {{\\\"require\\\": \\\"$OSTLER_REQUIRE\\\"}}\"\n{PASSES}");
    let bundle = Bundle::new(OSTLER, &tests, 1 << 20);
    let (_, results, _) = bundle.run(0, &["--device", "cuda:0", "--skip", "soak"]);
    assert!(results.contains("\"require\": \"gpu\""), "{results}");
    let (_, results, _) = bundle.run(0, &["--skip", "soak"]);
    assert!(results.contains("\"require\": \"\""), "{results}");
}

#[test]
fn failures_of_every_kind_are_failures() {
    let cases = [
        ("exit 3", PASSES, "it ended with 3"),
        ("echo text", PASSES, "it printed no JSON"),
        (OSTLER, "true", "no test ran"),
        (
            OSTLER,
            "echo 'test b ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101",
            "it ended with 101",
        ),
        (
            OSTLER,
            "echo 'FIGURE {\"rounds\": NaN}'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'",
            "rounds is nan",
        ),
        (OSTLER, "kill -SEGV $$", "it ended with -11"),
    ];
    for (ostler, tests, why) in cases {
        let (code, results, summary) = Bundle::new(ostler, tests, 1 << 20).run(0, &[]);
        assert_eq!(code, 1, "{why}: {summary}");
        assert!(results.contains("\"ok\": false"), "{why}: {results}");
        assert!(summary.contains(why), "{why}: {summary}");
    }
}

#[test]
fn an_item_that_hangs_is_ended_and_the_others_run() {
    let bundle = Bundle::new(OSTLER, "sleep 60", 1 << 20);
    let items = bundle.parts[0].join("bundle.json");
    let text = fs::read_to_string(&items).unwrap();
    fs::write(
        &items,
        text.replace("\"seconds\": 360", "\"seconds\": 1")
            .replace("\"seconds\": 240", "\"seconds\": 1"),
    )
    .unwrap();
    let (code, _, summary) = bundle.run(0, &[]);
    assert_eq!(code, 1);
    assert!(summary.contains("it took longer than 1 s"), "{summary}");
    assert!(
        summary.contains("| training, cart-pole | ok |"),
        "{summary}"
    );
}

#[test]
fn programs_that_do_not_fit_one_part_go_into_several_whose_results_merge() {
    let bundle = Bundle::new(OSTLER, PASSES, 200);
    assert_eq!(bundle.parts.len(), 2);
    let (first, second) = (bundle.run(0, &[]), bundle.run(1, &[]));
    assert_eq!((first.0, second.0), (0, 0));
    assert!(!first.2.contains("| tests |") && second.2.contains("| tests |"));
    let f = bundle.folder.path();
    let out = Command::new("python3")
        .arg(bundle.parts[0].join("run.py"))
        .arg("--merge")
        .args([
            f.join("all"),
            f.join("results-0/gpu-results.json"),
            f.join("results-1/gpu-results.json"),
        ])
        .status()
        .unwrap();
    assert!(out.success());
    let merged = fs::read_to_string(f.join("all/summary.md")).unwrap();
    assert!(
        merged.contains("| tests |") && merged.contains("| doctor |"),
        "{merged}"
    );
}

#[test]
fn groups_of_items_keep_to_the_time_of_a_part() {
    let bundle = Bundle::new(OSTLER, PASSES, 1 << 20);
    let list = |args: &[&str]| {
        let out = Command::new("python3")
            .arg(bundle.parts[0].join("run.py"))
            .args(["--list"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let text = list(&["--device", "cuda:0"]);
    assert!(text.starts_with("part 1: doctor, tests\n"), "{text}");
    assert!(text.lines().count() >= 3, "{text}");
    let (code, results, _) = bundle.run(0, &["--part", "1"]);
    assert_eq!(code, 0);
    assert!(
        results.contains("doctor") && !results.contains("regression\","),
        "{results}"
    );
    assert_eq!(bundle.run(0, &["--part", "99"]).0, 2);
}
