//! Whole runs by the program.

use crate::common::process::{kill, parent_of, trainer_of, wait};
use crate::common::{Place, assert_same_bits, metrics, root};
use crate::support::referee::referee_python;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

/// A folder with `worlds.py` and `task.toml`: `env` and more keys of `[gymnasium]`.
fn place(gymnasium: &str) -> Option<Place> {
    let python = referee_python()?;
    let place = Place::new();
    let worlds = root().join("tests/learn/gymnasium/worlds.py");
    std::fs::copy(worlds, place.path("worlds.py")).unwrap();
    let text = format!(
        r#"
[gymnasium]
python = "{}"
{gymnasium}
[env]
num_envs = 8
[actor]
hidden_dims = [32, 32]
[critic]
hidden_dims = [32, 32]
[ppo]
learning_rate = 2e-3
gamma = 0.95
[runner]
num_steps_per_env = 128
max_iterations = 90
[learner]
threads = 1
"#,
        python.display()
    );
    std::fs::write(place.path("task.toml"), text).unwrap();
    Some(place)
}

const ALLOW: &str = "--allow-native";

fn mean_return(place: &Place, run: &str) -> f64 {
    let said = place.ok(&["eval", run, "--episodes", "20", "--json", ALLOW]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    said["mean_return"].as_f64().unwrap()
}

#[test]
fn a_pendulum_of_gymnasium_is_learnt_and_gone_on_with() {
    let Some(place) = place("env = \"Pendulum-v1\"") else {
        return;
    };
    let said = place.ok(&["check", "task.toml", "-q", ALLOW]);
    assert!(said.contains("observations: 3 numbers"), "{said}");
    let said = place.ok(&["train", "task.toml", "--out", "a", ALLOW]);
    assert!(said.contains("ostler eval a --allow-native"), "{said}");
    // Standing still is some -1,200, hanging about -1,500; 92,160 steps are few.
    let learnt = mean_return(&place, "a");
    assert!(learnt > -700.0, "{learnt}");
    let more = ["train", "--resume", "a", "runner.max_iterations=95", ALLOW];
    let said = place.ok(&more);
    assert!(said.contains("iteration 95"), "{said}");
    assert!(mean_return(&place, "a") > -700.0);
}

#[test]
fn several_processes_learn_what_one_does() {
    let Some(place) = place("env = \"Pendulum-v1\"") else {
        return;
    };
    let train = |out: &str, more: &[&str]| {
        let args = ["train", "task.toml", "--quiet", "--out", out, "log.curve=false", ALLOW];
        place.ok(&[&args[..], more].concat());
        metrics(&place.path(out))
    };
    let one = ["runner.max_iterations=1", "--nproc"];
    let all = ["1", "2", "3"].map(|n| train(n, &[&one[..], &[n]].concat()).remove(0));
    for tag in
        ["Train/reward_per_step", "Loss/value_function", "Loss/grad_norm", "Loss/critic_grad_norm"]
    {
        let [alone, two, three] = all.each_ref().map(|record| record[tag].as_f64().unwrap());
        let off = |several: f64| (several - alone).abs() / alone.abs();
        assert!(off(two) < 1e-4 && off(three) < 1e-4, "{tag}: {alone} {two} {three}");
    }
    // Same bits, and on from a checkpoint with other processes: episodes begin anew there.
    let four = ["runner.max_iterations=4", "--nproc", "2"];
    train("a", &four);
    train("b", &four);
    assert_same_bits(&place.path("a"), &place.path("b"));
    let more =
        ["train", "--resume", "a", "--quiet", "--nproc", "3", "runner.max_iterations=6", ALLOW];
    place.ok(&more);
    assert_eq!(metrics(&place.path("a")).len(), 6);
}

#[test]
fn python_is_started_on_request_alone() {
    let Some(place) = place("env = \"worlds.py:make\"\nmax_episode_steps = 8") else {
        return;
    };
    let short = "runner.max_iterations=2";
    let said = place.fails(2, &["train", "task.toml", short, "--out", "a"]);
    assert!(said.contains("add --allow-native"), "{said}");
    assert!(!place.path("a").exists());
    place.ok(&["train", "task.toml", short, "--out", "a", ALLOW]);
    for command in [
        &["eval", "a"][..],
        &["train", "--resume", "a", "runner.max_iterations=3"],
        &["check", "task.toml"],
    ] {
        let said = place.fails(2, command);
        assert!(said.contains("add --allow-native"), "{command:?}: {said}");
    }
}

#[test]
fn a_run_outlives_environments_that_fail() {
    for (fails, counted) in [("raise", "Guard/broken_envs"), ("nan", "Guard/broken_envs")] {
        let table = format!(
            "env = \"worlds.py:make\"\nmax_episode_steps = 8\nkwargs = {{ fails = \"{fails}\" }}"
        );
        let Some(place) = place(&table) else {
            return;
        };
        let train = ["train", "task.toml", "runner.max_iterations=3", "--out", "a", ALLOW];
        let said = place.ok(&train);
        assert!(said.contains("broke and were reset"), "{said}");
        let metrics = std::fs::read_to_string(place.path("a/metrics.jsonl")).unwrap();
        for line in metrics.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line[counted].as_f64().unwrap() > 0.0, "{line}");
            assert!(line["Train/mean_reward"].is_number() || line["Train/mean_reward"].is_null());
        }
        let log = std::fs::read_to_string(place.path("a/log.txt")).unwrap();
        assert_eq!(fails == "raise", log.contains("a joint came off"), "{log}");
    }
}

/// Processes that work in the folder of a test.
fn processes(place: &Place) -> Vec<i32> {
    let folder = place.path(".").canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let here = |pid: &i32| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        parent_of(*pid).is_some() && cwd.is_ok_and(|cwd| cwd == folder)
    };
    pids.filter(here).collect()
}

#[test]
fn no_python_is_left_behind() {
    let Some(place) = place("env = \"Pendulum-v1\"\nworkers = 2") else {
        return;
    };
    let train = |iterations: &str| {
        let set = format!("runner.max_iterations={iterations}");
        let mut command = place.ostler(&["train", "task.toml", &set, "--quiet", ALLOW]);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    assert!(train("2").wait().unwrap().success());
    assert!(processes(&place).is_empty());
    // Killed: supervisor, then trainer.
    let mut supervisor = train("1000000");
    let trainer = wait("a trainer with its workers", || {
        let trainer = trainer_of(supervisor.id() as i32)?;
        (processes(&place).len() >= 4).then_some(trainer)
    });
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    kill(trainer, libc::SIGKILL);
    wait("the workers' end", || processes(&place).is_empty().then_some(()));
    // Ctrl-C: the run saves and ends.
    let mut supervisor = train("1000000");
    wait("workers", || (processes(&place).len() >= 4).then_some(()));
    kill(supervisor.id() as i32, libc::SIGINT);
    assert_eq!(supervisor.wait().unwrap().code(), Some(130));
    wait("the workers' end", || processes(&place).is_empty().then_some(()));
}

#[test]
fn what_needs_a_robot_says_so() {
    let Some(place) = place("env = \"worlds.py:make\"\nmax_episode_steps = 8") else {
        return;
    };
    place.ok(&["train", "task.toml", "runner.max_iterations=1", "--out", "a", ALLOW]);
    for command in [
        &["play", "a", "--png", "x.png"][..],
        &["export", "a"],
        &["eval", "a", "--backend", "mujoco"],
        &["bench", "task.toml"],
    ] {
        let said = place.fails(2, &[command, &[ALLOW]].concat());
        assert!(said.contains("needs a robot"), "{command:?}: {said}");
    }
    for (set, words) in [
        ("task.robot=robots/cartpole.xml", "stands in the place of a robot"),
        ("collector.kind=async", "in turns with the learner"),
        ("device=cuda:0", "on the processor"),
        ("gymnasium.workers=0", "\"auto\" or a whole number"),
        ("gymnasium.timeout_s=0", "0 cannot be used"),
        ("gymnasium.env=worlds.py", "names no function"),
        ("gymnasium.env=else.py:make", "there is no file"),
        ("gymnasium.env=Pendulm-v1", "Did you mean: `Pendulum`"),
        ("custom.env=mine", "one of [gymnasium] and [custom]"),
    ] {
        let said = place.fails(2, &["train", "task.toml", "--set", set, ALLOW]);
        assert!(said.contains(words), "{set}: {said}");
    }
}

/// Files of modules that Python, Gymnasium or numpy have; importing one leaves a mark, and fails.
fn decoys(folder: &Path) {
    for name in ["gymnasium", "numpy", "json", "struct", "signal", "typing", "sitecustomize"] {
        let mark = folder.join(format!("imported-{name}"));
        let text = format!("open({mark:?}, 'w')\nraise SystemExit('a decoy')\n");
        std::fs::write(folder.join(format!("{name}.py")), text).unwrap();
    }
}

fn imported(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|n| n.starts_with("imported-")).collect()
}

#[test]
fn modules_are_pythons_own_wherever_one_stands_and_a_file_may_import_what_lies_beside_it() {
    let Some(python) = referee_python() else {
        return;
    };
    let Some(place) = place("env = \"mine.py:make\"\nmax_episode_steps = 8") else {
        return;
    };
    let tasks = place.path("tasks");
    std::fs::create_dir(&tasks).unwrap();
    for folder in [place.0.path(), &tasks] {
        decoys(folder);
    }
    let text = std::fs::read_to_string(place.path("task.toml")).unwrap();
    std::fs::rename(place.path("worlds.py"), tasks.join("worlds.py")).unwrap();
    let mine = "import random\nimport beside\nassert random.random() < 1\nmake = beside.make\n";
    std::fs::write(tasks.join("mine.py"), mine).unwrap();
    std::fs::write(tasks.join("beside.py"), "from worlds import make\n").unwrap();
    // One that has the name of a module of Python's, which others go on importing.
    let named = "import beside\nmake = beside.make\nimport random as other\n\
                 assert other.random() < 1\n";
    std::fs::write(tasks.join("random.py"), named).unwrap();
    // Of a folder that the user names, relative to where he stands.
    std::fs::create_dir(place.path("lib")).unwrap();
    std::fs::write(place.path("lib/extra.py"), "here = 1\n").unwrap();
    std::fs::write(tasks.join("wide.py"), "import extra\nfrom worlds import make\n").unwrap();
    // Before Python 3.11 the variable means nothing.
    let old = place.path("old");
    let script = format!("#!/bin/sh\nunset PYTHONSAFEPATH\nexec '{}' \"$@\"\n", python.display());
    std::fs::write(&old, script).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (new, old) = (python.to_str().unwrap(), old.to_str().unwrap());
    for (file, python, variable, value) in [
        ("mine.py", new, "", ""),
        ("mine.py", old, "", ""),
        ("mine.py", new, "PYTHONSAFEPATH", "1"),
        ("mine.py", old, "PYTHONPATH", ":/nowhere"),
        ("wide.py", new, "PYTHONPATH", "lib"),
        ("wide.py", old, "PYTHONPATH", ":lib:"),
        ("random.py", new, "", ""),
    ] {
        let task = text.replace("mine.py", file).replace(new, python);
        std::fs::write(tasks.join("task.toml"), task).unwrap();
        let mut train = place.ostler(&["train", "tasks/task.toml", "--out", "a", ALLOW, "-q"]);
        train.args(["runner.max_iterations=1", "gymnasium.workers=1"]);
        if !variable.is_empty() {
            train.env(variable, value);
        }
        let out = train.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{file} {python} {variable}={value}: {said}");
        for folder in [place.0.path(), &tasks] {
            assert_eq!(imported(folder), [""; 0], "{file} {python} {variable}={value}");
        }
        std::fs::remove_dir_all(place.path("a")).unwrap();
    }
    // A package where one stands is none; the message says how it becomes one.
    std::fs::write(place.path("here.py"), "raise SystemExit('a decoy')\n").unwrap();
    let task = text.replace("mine.py:make", "here:Name-v0");
    std::fs::write(tasks.join("task.toml"), task).unwrap();
    let said = place.fails(2, &["train", "tasks/task.toml", "--out", "a", ALLOW]);
    assert!(said.contains("No module named 'here'") && said.contains("PYTHONPATH"), "{said}");
}
