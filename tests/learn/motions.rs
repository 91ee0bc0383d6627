//! Motions that are followed and imitated, from the file to the judgement.

use crate::common::forked::Forked as _;
use crate::common::root;
use serde_json::Value;
use std::path::Path;

fn ostler(folder: &Path, args: &[&str]) -> String {
    let mut command = crate::common::ostler();
    let output = command.current_dir(folder).args(args).forked().unwrap();
    let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    assert!(output.status.success(), "{args:?}: {}", text.concat());
    text[0].clone() + &text[1]
}

/// The example of a style and a copy of its clip, as two motions.
fn style() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = root().join("examples");
    let task = std::fs::read_to_string(examples.join("trot.toml")).unwrap();
    let robot = root().join("configs/robots/quadruped.xml");
    let task = task.replace("../configs/robots/quadruped.xml", &robot.display().to_string());
    let task = task.replace("[\"trot.csv\"], fps = 50, loop = true", "[\"clips/*.csv\"], fps = 50");
    std::fs::write(folder.path().join("trot.toml"), task).unwrap();
    std::fs::create_dir(folder.path().join("clips")).unwrap();
    for name in ["a.csv", "b.csv"] {
        let to = folder.path().join("clips").join(name);
        std::fs::copy(examples.join("trot.csv"), to).unwrap();
    }
    folder
}

const SMALL: [&str; 6] = [
    "env.num_envs=32",
    "sim.specialize=off",
    "sim.threads=1",
    "learner.threads=1",
    "seed=3",
    "log.tensorboard=false",
];

#[test]
fn a_style_is_learnt_from_files_that_a_run_keeps() {
    let folder = style();
    let dir = folder.path();
    let checked = ostler(dir, &["check", "trot.toml", "-q"]);
    for line in
        ["clips/a.csv: 1.00 s, 51 frames of 0.02 s", "assumed: quaternions x y z w", "is sound"]
    {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    let mut train = vec!["train", "trot.toml", "--out", "run"];
    SMALL.iter().for_each(|set| train.extend(["--set", set]));
    let said = ostler(dir, &[&train[..], &["--set", "runner.max_iterations=4"]].concat());
    assert!(said.contains("reference: 2 motions, 2.00 s"), "{said}");
    let metrics = std::fs::read_to_string(dir.join("run/metrics.jsonl")).unwrap();
    let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    assert!(last["Loss/amp"].as_f64().unwrap() > 0.0, "{last}");
    assert!(last["Policy/amp_reward"].as_f64().unwrap() > 0.0, "{last}");
    // Another recipe learns something else.
    let mut other = train.clone();
    *other.iter_mut().find(|word| **word == "run").unwrap() = "skrl";
    let sets = ["--set", "amp.recipe=skrl", "--set", "runner.max_iterations=4"];
    ostler(dir, &[&other[..], &sets].concat());
    let metrics = std::fs::read_to_string(dir.join("skrl/metrics.jsonl")).unwrap();
    let skrls: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    assert_ne!(skrls["Policy/amp_reward"], last["Policy/amp_reward"], "{skrls}");
    // The same command again goes on, though the run names its copies.
    let auto = [&train[..], &["--resume", "auto", "--set", "runner.max_iterations=5"]].concat();
    ostler(dir, &auto);
    let metrics = std::fs::read_to_string(dir.join("run/metrics.jsonl")).unwrap();
    assert_eq!(metrics.lines().count(), 5);
    // The run has its own copy: it goes on without the files.
    std::fs::remove_dir_all(dir.join("clips")).unwrap();
    ostler(dir, &["train", "--resume", "run", "runner.max_iterations=6"]);
    let judged = ostler(dir, &["eval", "run", "--episodes", "40", "--json"]);
    let judged: Value = serde_json::from_str(judged.lines().next().unwrap()).unwrap();
    let motions = judged["motions"].as_array().unwrap();
    // The copies keep their names.
    let mut names: Vec<&str> = motions.iter().map(|m| m["file"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["motions/0/00000_a.csv", "motions/0/00001_b.csv"]);
    let episodes: u64 = motions.iter().map(|m| m["episodes"].as_u64().unwrap()).sum();
    assert_eq!((motions.len(), episodes), (2, 40), "{judged}");
    assert!(motions[0]["success"].as_f64() <= motions[1]["success"].as_f64(), "{judged}");
    assert!(motions[0]["metrics"]["error_speed"].as_f64().unwrap() > 0.0, "{judged}");
    // From the first frames, no episode is shorter than a clip that it follows to the end.
    let begun = ostler(dir, &["eval", "run", "--episodes", "40", "--json", "--begin"]);
    let begun: Value = serde_json::from_str(begun.lines().next().unwrap()).unwrap();
    let length = |of: &Value| of["mean_length"].as_f64().unwrap();
    assert!(length(&begun) > length(&judged), "{begun}");
    let text = ostler(dir, &["eval", "run", "--episodes", "40"]);
    assert!(text.contains("motions, the hardest first") && text.contains("_b.csv: "), "{text}");
    // The reference stands beside the robot.
    ostler(dir, &["play", "run", "--seconds", "0.2", "--html", "page.html"]);
    let page = std::fs::read_to_string(dir.join("page.html")).unwrap();
    assert!(page.contains("trunk of the reference"), "the page has no reference");
}

#[test]
fn mistakes_of_references_and_styles_are_refused_at_their_lines() {
    let folder = style();
    let task = std::fs::read_to_string(folder.path().join("trot.toml")).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(task.contains(from), "{from}");
        std::fs::write(folder.path().join("bad.toml"), task.replace(from, to)).unwrap();
        let mut command = crate::common::ostler();
        let run = command.current_dir(folder.path()).args(["check", "bad.toml", "-q"]).forked();
        let run = run.unwrap();
        assert!(!run.status.success(), "{to} was taken");
        String::from_utf8_lossy(&run.stderr).into_owned()
    };
    let clips = "files = [\"clips/*.csv\"], fps = 50";
    for (to, says) in [
        ("files = [\"clip/*.csv\"], fps = 50", "clip/*.csv"),
        ("files = [\"clips/*.npz\"], fps = 50", "no file fits \"clips/*.npz\""),
        ("files = [\"clips/c.csv\"], fps = 50", "there is no file"),
        ("files = [\"clips/*.csv\"]", "how many frames a second"),
        ("files = [\"clips/*.csv\"], fps = -5", "fps"),
        ("files = [\"clips/*.csv\"], fps = 50, joints = [\"hip_fl\"]", "joint"),
        ("files = []", "needs files"),
        ("files = [\"trot.toml\"], fps = 50", "trot.toml"),
    ] {
        let error = refused(clips, to);
        assert!(error.contains("bad.toml:") && error.contains(says), "{to}: {error}");
        assert!(error.contains("task.reference[0].files"), "{to}: {error}");
    }
    let error = refused("\"height\"]", "\"hight\"]");
    assert!(error.contains("amp.observations") && error.contains("height"), "{error}");
    let error = refused("weight = 0.1\n", "weight = -1\n");
    assert!(error.contains("amp.weight"), "{error}");
    let error = refused("weight = 0.1\n", "weight = 0.1\nrecipe = \"skrll\"\n");
    assert!(error.contains("skrl"), "{error}");
}
