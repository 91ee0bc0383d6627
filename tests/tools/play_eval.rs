//! `ostler play` and `ostler eval` as users call them: after a short training and
//! straight from a configuration.

use crate::common::forked::Forked as _;
use crate::common::{ostler, root};
use assert_cmd::assert::OutputAssertExt as _;
use std::path::{Path, PathBuf};

fn config() -> PathBuf {
    root().join("configs/cartpole.toml")
}

/// A cart-pole run of two iterations in `dir`.
fn train(dir: &Path) -> PathBuf {
    let run = dir.join("run");
    ostler()
        .arg("train")
        .arg(config())
        .args(["--quiet", "--out"])
        .arg(&run)
        .args(["env.num_envs=8", "runner.max_iterations=2", "sim.specialize=off"])
        .assert()
        .success();
    run
}

fn eval(run: &Path, extra: &[&str]) -> serde_json::Value {
    let out = ostler().arg("eval").arg(run).arg("--json").args(extra).forked().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Exactly one object: anything else on standard output would not parse.
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn eval_counts_exactly_and_repeats_itself() {
    let dir = tempfile::tempdir().unwrap();
    let run = train(dir.path());
    let mut first = eval(&run, &["--episodes", "21", "--num-envs", "4"]);
    let mut again = eval(&run, &["--episodes", "21", "--num-envs", "4"]);
    assert_eq!(first["episodes"], 21);
    assert!(first["env_steps_per_s"].as_f64().unwrap() > 0.0);
    let [low, mean, high] =
        ["min_return", "mean_return", "max_return"].map(|k| first[k].as_f64().unwrap());
    assert!(low <= mean && mean <= high);
    // One reward for each step that the pole stands; the last of an episode that
    // fell gives none.
    let length = first["mean_length"].as_f64().unwrap();
    assert!(mean <= length && mean >= length - 1.0, "{first}");
    for result in [&mut first, &mut again] {
        result.as_object_mut().unwrap().remove("env_steps_per_s");
    }
    assert_eq!(first, again);
    let other = eval(&run, &["--episodes", "21", "--num-envs", "4", "--seed", "77"]);
    assert_eq!(other["seed"], 77);
    assert_ne!(other["mean_return"], first["mean_return"]);
}

#[test]
fn a_policy_is_judged_on_both_engines() {
    let dir = tempfile::tempdir().unwrap();
    let run = train(dir.path());
    let size = ["--episodes", "256", "--num-envs", "32"];
    let with = |backend: &[&str]| eval(&run, &[&size[..], backend].concat());
    let both = with(&["--backend", "native,rapier"]);
    let names: Vec<&String> = both.as_object().unwrap().keys().collect();
    assert_eq!(names, ["native", "rapier"]);
    for name in ["native", "rapier"] {
        assert_eq!(both[name]["backend"], name);
        assert_eq!(both[name]["episodes"], 256);
        let mut alone = with(&["--backend", name]);
        alone["env_steps_per_s"] = both[name]["env_steps_per_s"].clone();
        assert_eq!(alone, both[name]);
    }
    // Two engines are two answers, near each other for a cart and a pole: 256 episodes of
    // some 41 steps from the same starts are 3.1 % apart, and either mean is known to 2.9 %.
    let mean = |name: &str| both[name]["mean_return"].as_f64().unwrap();
    assert_ne!(both["native"]["kernel"], both["rapier"]["kernel"]);
    assert!((mean("native") / mean("rapier") - 1.0).abs() < 0.04, "{both}");
    let out = ostler()
        .arg("eval")
        .arg(&run)
        .args(size)
        .args(["--backend", "rapier", "--backend", "native"])
        .forked()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).to_string();
    let head: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["cartpole", "rapier", "native"], "{text}");
    assert!(text.contains("mean return"), "{text}");
}

#[test]
fn mujoco_judges_a_policy_as_native_does() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let config = config().with_file_name("half_cheetah.toml");
    ostler()
        .arg("train")
        .arg(config)
        .args(["--quiet", "--out"])
        .arg(&run)
        .args(["runner.max_iterations=3", "sim.specialize=off"])
        .assert()
        .success();
    let python = python.to_str().unwrap();
    let asked = ["--backend", "native,mujoco", "--python", python];
    let both = eval(&run, &[&asked[..], &["--episodes", "8"]].concat());
    let number = |name: &str, key: &str| both[name][key].as_f64().unwrap();
    let kernel = both["mujoco"]["kernel"].as_str().unwrap();
    assert!(kernel.starts_with("mujoco-"), "{both}");
    // Trajectories part after some hundred steps, so means differ by chance alone.
    let apart = number("native", "mean_return") - number("mujoco", "mean_return");
    let chance = number("native", "ci95_return").hypot(number("mujoco", "ci95_return"));
    assert!(chance > 0.0 && apart.abs() < 2.0 * chance, "{both}");
    assert_eq!(both["mujoco"]["broken_episodes"], 0);
    let out = ostler().arg("eval").arg(&run).args(&asked[2..]).forked();
    let text = String::from_utf8_lossy(&out.unwrap().stderr).to_string();
    assert!(text.contains("--backend mujoco"), "{text}");
    // Whatever the user tells Pythons about where they look: the program's own find their parts.
    let out = ostler()
        .arg("eval")
        .arg(&run)
        .args(asked)
        .args(["--episodes", "1"])
        .env("PYTHONSAFEPATH", "1")
        .forked()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr).to_string();
    assert!(out.status.success(), "{text}");
}

#[test]
fn play_prints_episodes_and_draws_them() {
    let dir = tempfile::tempdir().unwrap();
    let run = train(dir.path());
    let (png, gif) = (dir.path().join("s.png"), dir.path().join("o.gif"));
    let out = ostler()
        .arg("play")
        .arg(&run)
        .args(["--episodes", "2", "--seconds", "1", "--size", "64x48", "--png"])
        .arg(&png)
        .arg("--gif")
        .arg(&gif)
        .forked()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read(&gif).unwrap().starts_with(b"GIF89a"));
    assert!(run.join("curve.png").is_file());
    let look = |asked: &[&str]| {
        let out =
            ostler().current_dir(dir.path()).arg("play").arg(&run).args(asked).forked().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).to_string())
    };
    let near = ["--episodes", "1", "--seconds", "0.2", "--png", "near.png", "--distance", "0.7"];
    assert_eq!(look(&near).0, Some(0));
    for (asked, said) in [
        (&["--look-at", "pole"][..], "--look-at and --distance are of --png and --gif"),
        (
            &["--png", "p.png", "--look-at", "poel"],
            "no body called \"poel\"; did you mean \"pole\"?",
        ),
        (&["--png", "p.png", "--distance", "0"], "0.01 to 10000"),
        (&["--png", "one.html", "--html", "one.html"], "one.html is asked for twice"),
    ] {
        let (code, text) = look(asked);
        assert!(code == Some(2) && text.contains(said), "{asked:?}: {text}");
    }
    let out = ostler().arg("play").arg(&run).args(["--webp", "o.webp"]).forked().unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).to_string();
    assert!(said.contains("--webp is gone: --gif FILE writes the same film"), "{said}");
}

#[test]
fn simple_agents_need_no_run_and_a_policy_does() {
    for agent in ["zero", "random"] {
        let out = ostler().arg("play").arg(config()).args(["--agent", agent]).forked().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).to_string();
        assert!(out.status.success() && text.contains("mean of    5 episodes"), "{text}");
    }
    let out = ostler().arg("play").arg(config()).forked().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--agent zero"));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut play = ostler();
    let play = play.arg("play").arg(config()).args(["--agent", "zero", "--episodes", "1"]);
    let out = play.stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).to_string();
    assert!(out.status.code() == Some(1) && said.contains("cannot be written to"), "{said}");
    let out = ostler().args(["eval", "no/such/run", "--json"]).forked().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stdout.is_empty() && !out.stderr.is_empty());
}
