//! The page `docs/first-task.md`: its parts are the file `examples/first_walk.toml`, the file is
//! sound and trains, and the program says what the page shows. `UPDATE_DOCS=1` writes the file
//! again from the page.

use crate::common::forked::Forked as _;
use crate::common::root;
use std::path::Path;

fn page() -> String {
    std::fs::read_to_string(root().join("docs/first-task.md")).unwrap()
}

/// Blocks of a kind in a text.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let begin = format!("```{kind}\n");
    let rest = text.split(begin.as_str()).skip(1);
    rest.map(|b| b.split("```").next().unwrap()).collect()
}

/// The file that the page explains.
const FILE: &str = "examples/first_walk.toml";

/// The file that the parts of the page make.
fn file() -> String {
    blocks(&page(), "toml").join("\n")
}

/// A folder with the file and the robot where the repository has them.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let robot = "configs/robots/quadruped.xml";
    for inner in ["configs/robots", "examples"] {
        std::fs::create_dir_all(folder.path().join(inner)).unwrap();
    }
    std::fs::copy(root().join(robot), folder.path().join(robot)).unwrap();
    std::fs::write(folder.path().join(FILE), file()).unwrap();
    folder
}

fn ostler(folder: &Path, args: &[&str]) -> (bool, String) {
    let mut command = crate::common::ostler();
    let output = command.current_dir(folder).args(args).forked().unwrap();
    let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    (output.status.success(), text.concat())
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let (success, said) = ostler(folder, args);
    assert!(success, "{said}");
    said
}

#[test]
fn the_file_of_the_examples_is_the_pages_parts() {
    let path = root().join(FILE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(path, file()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert_eq!(kept, file(), "run with UPDATE_DOCS=1");
    assert!(page().contains(&format!("[`{FILE}`](../{FILE})")));
}

#[test]
fn check_says_what_the_page_shows() {
    let folder = folder();
    let said = ok(folder.path(), &["check", FILE, "-q"]);
    let page = page();
    let shown = blocks(&page, "console");
    let (check, mistake) = (shown[0], shown[1]);
    let command = format!("$ ostler check {FILE} -q");
    let mut lines = check.lines();
    assert_eq!(lines.next(), Some(command.as_str()));
    let mut rest = said.as_str();
    for line in lines.filter(|l| *l != "...") {
        // In this order.
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line}\nis not said:\n{said}"));
        rest = &rest[at + line.len()..];
    }

    // The mistake that the page makes: a body that the robot does not have.
    let wrong = file().replace("upright(trunk) < 0.5", "upright(trunck) < 0.5");
    std::fs::write(folder.path().join(FILE), wrong).unwrap();
    let (success, said) = ostler(folder.path(), &["check", FILE, "-q"]);
    assert!(!success);
    let mut lines = mistake.lines();
    assert_eq!(lines.next(), Some(command.as_str()));
    let shown: Vec<&str> = lines.collect();
    assert!(said.contains(&shown.join("\n")), "{said}");
}

#[test]
fn the_file_trains_and_is_evaluated() {
    let folder = folder();
    let small = ["env.num_envs=16", "runner.max_iterations=2", "sim.specialize=off"];
    let mut train = vec!["train", FILE, "--out", "run", "--quiet"];
    for set in small {
        train.extend(["--set", set]);
    }
    ok(folder.path(), &train);
    for events in ["on", "off"] {
        let args = ["eval", "run", "--episodes", "2", "--events", events];
        let said = ok(folder.path(), &args);
        let at = |word: &str| said.find(word).unwrap_or_else(|| panic!("{word}: {said}"));
        assert!(at("success") < at("error_velocity"), "{said}");
    }
    ok(folder.path(), &["play", "run", "--seconds", "0.1", "--png", "walk.png"]);
    assert!(folder.path().join("walk.png").exists());
}
