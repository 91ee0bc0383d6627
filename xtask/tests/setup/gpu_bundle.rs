//! How the bundle's items are run and told, with scripts in place of its programs.

use ostler_xtask::gpu_bundle::Stage;
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

const JSON: &str = "echo '{\"collection.steps_per_s\": 1.5, \"warp.missing\": \"no module\"}'";

/// A program of tests `a` and `b`, each of which does `text`.
fn tests(text: &str) -> String {
    format!(
        r#"case "$*" in
  *--ignored*) ;;
  *--list*) echo 'a: test'; echo 'b: test' ;;
  *) {text} ;;
esac"#
    )
}
const PASSES: &str = "echo 'test a ... FIGURE {\"rounds\": 3}'
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out'";

struct Bundle {
    folder: tempfile::TempDir,
    parts: Vec<PathBuf>,
}

impl Bundle {
    /// Items of the first group, a second group of one item.
    fn new(ostler: &str, gpu: &str, items: &str, limit: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let f = folder.path();
        let out = f.join("out");
        let stage = Stage::new(&out).unwrap();
        let programs = [
            ("ostler", script(f, "ostler_built", ostler)),
            ("gpu", script(f, "gpu-0123", &tests(gpu))),
        ];
        stage.programs(&programs).unwrap();
        let parts = stage.pack("abc", &out, limit, "0").unwrap();
        let last = r#"{"name": "last", "kind": "json", "program": "ostler", "args": ["--json"], "seconds": 9}"#;
        let text = format!(
            r#"{{"commit": "abc", "groups": [
              {{"name": "first", "minutes": 1, "items": [{items}]}},
              {{"name": "second", "minutes": 1, "items": [{last}]}}]}}"#
        );
        for part in &parts {
            fs::write(part.join("bundle.json"), &text).unwrap();
        }
        Self { folder, parts }
    }

    /// Runs a part; its exit code, results and summary.
    fn run(&self, part: usize, args: &[&str]) -> (i32, String, String) {
        let results = self.folder.path().join("results");
        let _ = fs::remove_dir_all(&results);
        let out = Command::new("python3")
            .arg(self.parts[part].join("run.py"))
            .args(["--device", "cpu", "--out"])
            .arg(&results)
            .arg("--home")
            .arg(self.folder.path().join("home"))
            .args(args)
            .env_remove("OSTLER_REQUIRE")
            .output()
            .unwrap();
        let read = |name: &str| fs::read_to_string(results.join(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
        println!("{said}");
        let code = out.status.code().unwrap();
        (code, read("gpu-results.json"), read("summary.md"))
    }
}

const TESTS: &str =
    r#"{"name": "tests", "kind": "tests", "program": "gpu", "filter": "", "seconds": 9}"#;
const BENCH: &str =
    r#"{"name": "bench", "kind": "json", "program": "ostler", "args": ["bench"], "seconds": 9}"#;

#[test]
fn what_passes_is_told_with_its_figures() {
    let bundle = Bundle::new(JSON, PASSES, &format!("{TESTS}, {BENCH}"), 1 << 20);
    let (code, results, summary) = bundle.run(0, &[]);
    assert_eq!(code, 0, "{summary}");
    for text in ["\"ok\": true", "\"commit\": \"abc\"", "\"rounds\": 3", "1.5"] {
        assert!(results.contains(text), "{text}: {results}");
    }
    for line in [
        "| first | a | ok |",
        "| first | b | ok |",
        "| collection.steps_per_s 1.5, warp.missing no module |",
        "| second | last | ok |",
        "4 of 4 ran and passed.",
    ] {
        assert!(summary.contains(line), "{line}: {summary}");
    }
    let logs = bundle.folder.path().join("results/logs.tar.gz");
    let list = Command::new("tar").arg("-tzf").arg(logs).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("logs/a.txt") && list.contains("logs/last.txt"), "{list}");
    // One group alone.
    let (_, _, summary) = bundle.run(0, &["--group", "2"]);
    assert!(summary.contains("1 of 1 ran and passed."), "{summary}");
    assert_eq!(bundle.run(0, &["--group", "9"]).0, 2);
    assert_eq!(bundle.run(0, &["--skip", "nothing"]).0, 2);
    let (_, _, summary) = bundle.run(0, &["--skip", "tests"]);
    assert!(summary.contains("Not run: tests (as asked)."), "{summary}");
}

#[test]
fn tests_that_skip_themselves_are_named() {
    let skips = format!("printf 'gpu\\tgpu\\tt1\\tnone here\\n' >> $OSTLER_SKIPS\n{PASSES}");
    let (code, results, summary) = Bundle::new(JSON, &skips, TESTS, 1 << 20).run(0, &[]);
    assert_eq!(code, 0, "{summary}");
    for text in ["| first | a | skipped |", "- gpu: gpu t1: none here"] {
        assert!(summary.contains(text), "{text}: {summary}");
    }
    assert!(results.contains("\"skipped\": ["), "{results}");
}

/// On a GPU nothing may be skipped for want of one; with the host in its place it may.
#[test]
fn a_gpu_is_required_where_the_programs_run_on_one() {
    let tests = format!("echo \"FIGURE {{\\\"require\\\": \\\"$OSTLER_REQUIRE\\\"}}\"\n{PASSES}");
    let bundle = Bundle::new(JSON, &tests, TESTS, 1 << 20);
    let (_, results, _) = bundle.run(0, &["--device", "cuda:0"]);
    assert!(results.contains("\"require\": \"gpu\""), "{results}");
    let (_, results, _) = bundle.run(0, &[]);
    assert!(results.contains("\"require\": \"\""), "{results}");
}

/// Every kind of failure; what comes after it runs all the same.
#[test]
fn failures_of_every_kind_are_failures_and_lose_nothing() {
    let cases = [
        ("exit 3", PASSES, "it ended with 3"),
        ("echo text", PASSES, "it printed no JSON"),
        (JSON, "true", "no test ran"),
        (JSON, "echo 'test a ... FAILED'; exit 101", "it ended with 101"),
        (
            JSON,
            "echo 'FIGURE {\"rounds\": NaN}'; echo 'test result: ok. 1 passed; 0 failed'",
            "rounds is nan",
        ),
        ("kill -SEGV $$", PASSES, "it ended with -11"),
        (JSON, "kill -ABRT $$", "it ended with -6"),
        (JSON, "sleep 60", "it took longer than 1 s"),
    ];
    for (ostler, gpu, why) in cases {
        let items = format!("{TESTS}, {BENCH}").replace("\"seconds\": 9", "\"seconds\": 1");
        let (code, results, summary) = Bundle::new(ostler, gpu, &items, 1 << 20).run(0, &[]);
        assert_eq!(code, 1, "{why}: {summary}");
        assert!(results.contains("\"ok\": false"), "{why}: {results}");
        assert!(summary.contains(why), "{why}: {summary}");
        assert!(summary.contains("| second | last |"), "{why}: {summary}");
    }
}

/// What a first contact only looks at fails nothing, and is told.
#[test]
fn a_soft_item_is_looked_at() {
    let soft = TESTS.replace('}', ", \"soft\": true}");
    let (code, _, summary) = Bundle::new(JSON, "exit 101", &soft, 1 << 20).run(0, &[]);
    assert_eq!(code, 0, "{summary}");
    assert!(summary.contains("| to be looked at: it ended with 101 |"), "{summary}");
}

#[test]
fn a_group_keeps_to_its_time_and_says_what_did_not_fit() {
    let bundle = Bundle::new(JSON, PASSES, TESTS, 1 << 20);
    let items = bundle.parts[0].join("bundle.json");
    let text = fs::read_to_string(&items).unwrap();
    fs::write(&items, text.replacen("\"minutes\": 1", "\"minutes\": 0.05", 1)).unwrap();
    let (_, _, summary) = bundle.run(0, &[]);
    let line = "Not run: a (no time left in its group); b (no time left in its group).";
    assert!(summary.contains(line), "{summary}");
    assert!(summary.contains("| second | last | ok |"), "{summary}");
}

#[test]
fn results_of_several_calls_merge_and_those_of_another_commit_do_not() {
    let bundle = Bundle::new(JSON, PASSES, TESTS, 1 << 20);
    let f = bundle.folder.path();
    for group in ["1", "2"] {
        bundle.run(0, &["--group", group]);
        let results = f.join("results/gpu-results.json");
        fs::copy(results, f.join(format!("{group}.json"))).unwrap();
    }
    let merge = |second: &Path| {
        Command::new("python3")
            .arg(bundle.parts[0].join("run.py"))
            .arg("--merge")
            .args([&f.join("all"), &f.join("1.json"), second])
            .output()
            .unwrap()
    };
    assert!(merge(&f.join("2.json")).status.success());
    let merged = fs::read_to_string(f.join("all/summary.md")).unwrap();
    assert!(
        merged.contains("| first | b | ok |") && merged.contains("| second | last | ok |"),
        "{merged}"
    );
    let other = f.join("other.json");
    let text = fs::read_to_string(f.join("2.json")).unwrap();
    fs::write(&other, text.replace("\"abc\"", "\"def\"")).unwrap();
    let out = merge(&other);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("another commit"), "{said}");
}

#[test]
fn pieces_come_in_any_order_and_all_are_needed() {
    let bundle = Bundle::new(JSON, PASSES, TESTS, 1000);
    assert!(bundle.parts.len() > 2, "{:?}", bundle.parts);
    assert_eq!(bundle.run(0, &[]).0, 2);
    for part in (1..bundle.parts.len()).rev() {
        assert_eq!(bundle.run(part, &["--add"]).0, 0);
    }
    let (code, _, summary) = bundle.run(0, &[]);
    assert!(code == 0 && summary.contains("3 of 3 ran"), "{summary}");
}
