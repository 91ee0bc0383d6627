//! What a test does where the machine lacks what it needs: counted, named, or failed.

use crate::need::{Need, Skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Plays the test that the others start: it lacks a disk and says why.
#[test]
#[ignore = "only run by another test"]
fn lacks_a_disk() {
    let lacking = Err::<(), _>("not\tallowed\nhere");
    assert!(Need::Disk.or_skip(lacking).is_none());
    // What is there is handed on, whatever is required.
    assert_eq!(Need::Gpu.or_skip(Ok::<_, String>(7)), Some(7));
}

fn lacking(require: Option<&str>, record: &Path) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Without `--nocapture`: what is said must be seen all the same.
    command.args(["--exact", "--ignored", "skips::lacks_a_disk"]);
    command.env(crate::need::RECORD, record).env_remove(crate::need::REQUIRE);
    command.envs(require.map(|list| (crate::need::REQUIRE, list)));
    command.output().unwrap()
}

#[test]
fn a_skipped_test_is_named_with_its_reason_and_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("skips");
    for require in [None, Some(""), Some("gpu, referee")] {
        let _ = std::fs::remove_file(&record);
        let out = lacking(require, &record);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{out:?}");
        let line = "SKIPPED: disk: setup skips::lacks_a_disk: not allowed here; run as";
        assert!(said.contains(line), "{said}");
        let written = std::fs::read_to_string(&record).unwrap();
        let skips: Vec<Skip> = written.lines().map(|l| Skip::read(l).unwrap()).collect();
        let expected = Skip {
            need: Need::Disk,
            program: "setup".into(),
            test: "skips::lacks_a_disk".into(),
            why: "not allowed here".into(),
        };
        assert_eq!(skips, [expected]);
    }
}

#[test]
fn what_is_required_fails_and_so_does_a_name_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("skips");
    for (require, words) in [
        ("disk", "OSTLER_REQUIRE names disk"),
        ("gpu,disk", "OSTLER_REQUIRE names disk"),
        ("all", "OSTLER_REQUIRE names disk"),
        ("dsik", "there is no \"dsik\"; it takes all, or referee, peers, nvrtc,"),
    ] {
        let out = lacking(Some(require), &record);
        // The harness shows what a failed test has said on standard output.
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(101), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!record.exists(), "it counts as failed, not as skipped");
    }
}

/// `cargo xtask test` says so before it builds anything.
#[test]
fn a_name_that_is_none_ends_the_runner_at_once() {
    let out = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("test")
        .env(crate::need::REQUIRE, "referee,everything")
        .env("CARGO", "/nonexistent")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no \"everything\""), "{said}");
    for need in Need::ALL {
        assert!(said.contains(need.name()), "{said}");
    }
}

/// A skip that a test only prints is captured by the harness, and the test passes.
#[test]
fn every_test_skips_in_the_one_way() {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, found),
                false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
                false => {}
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["sim", "collector", "trainer", "tests", "xtask"] {
        walk(&root.join(folder), &mut sources);
    }
    assert!(sources.len() > 300, "{}", sources.len());
    let own = ["tests/support/need.rs", "xtask/tests/setup/skips.rs"];
    let own = own.map(|name| std::fs::read_to_string(root.join(name)).unwrap());
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let other = text.contains("SKIPPED:") && !own.contains(&text);
        assert!(!other, "{}: use tests/support/need.rs", path.display());
    }
}
