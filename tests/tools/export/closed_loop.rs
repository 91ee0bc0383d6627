//! The exported C moves floating robots of MuJoCo's, from the starts of an evaluation and with its
//! commands: single steps are those of the evaluation, and the mean return lies within its
//! interval. Returns are worked out in Python (`closed_loop.py`).

use crate::common::{Place, root};
use crate::support::need::Need;
use crate::support::referee::referee_python;
use crate::support::share;
use ostler_sim::BatchEnv;
use ostler_trainer::run::stage::{Agent, Stage};
use ostler_trainer::run::{LoadedRun, load_run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// First control steps of every episode whose numbers are compared with the evaluation's.
const COMPARED: usize = 50;
/// In the earliest of them no number is farther off than [`TOLERANCE`]. Later a contact that just
/// happens, or just does not, may send an episode elsewhere, but not many.
const EARLY: usize = 10;
const TOLERANCE: f64 = 1e-4;
const SHARE: f64 = 0.95;

/// What an evaluation does: every environment's first episode.
struct Played {
    /// Where it begins, `[E][nq]` and `[E][nv]`.
    qpos: Vec<Vec<f32>>,
    qvel: Vec<Vec<f32>>,
    /// Commands of every step, `[T][E][C]`.
    given: Vec<Vec<Vec<f32>>>,
    /// Positions after a step and its reward, `[COMPARED][E]`.
    trail: Vec<Vec<(Vec<f32>, f32)>>,
    /// Commands: name, first component, components.
    commands: Vec<(String, usize, usize)>,
    mean: f64,
}

fn column(rows: &[f32], e: usize, n: usize) -> Vec<f32> {
    rows.iter().skip(e).step_by(n).copied().collect()
}

/// Plays as `ostler eval --num-envs E --episodes E` does.
fn play(run: &LoadedRun, env: BatchEnv) -> Played {
    let mut agent = Agent::Policy(run.policy(env.spec()).unwrap().into());
    let mut stage = Stage::new(Box::new(env)).unwrap();
    let n = stage.env().spec().num_envs;
    let steps = stage.env().spec().max_episode_steps as usize;
    let positions = |stage: &Stage, velocities: bool| -> Vec<Vec<f32>> {
        let state = stage.env().physics().state();
        let rows = if velocities { &state.qvel } else { &state.qpos };
        (0..n).map(|e| column(rows, e, n)).collect()
    };
    let specs = stage.env().command_specs();
    let mut played = Played {
        qpos: positions(&stage, false),
        qvel: positions(&stage, true),
        given: Vec::new(),
        trail: Vec::new(),
        commands: (specs.iter()).map(|c| (c.name.clone(), c.first, c.ranges.len())).collect(),
        mean: 0.0,
    };
    let mut returns = vec![None; n];
    for step in 0..steps {
        let commands = |e| stage.env().commands(e).collect();
        played.given.push((0..n).map(commands).collect());
        for episode in &stage.step(&mut agent).unwrap().finished {
            returns[episode.env as usize].get_or_insert(f64::from(episode.ret));
        }
        if step < COMPARED {
            let after = positions(&stage, false).into_iter().enumerate();
            let after = after.map(|(e, qpos)| (qpos, stage.reward(e)));
            played.trail.push(after.collect());
        }
    }
    let returns: Vec<f64> = returns.into_iter().map(|r| r.unwrap()).collect();
    played.mean = returns.iter().sum::<f64>() / n as f64;
    played
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The run `a` of a task that `closed_loop.py` knows; `inputs`: what its robot does not measure.
fn closes_the_loop(place: &Place, task: &str, robot: &str, inputs: &[&str], episodes: usize) {
    let Some(python) = referee_python() else {
        return;
    };
    let gcc = Command::new("gcc").arg("--version").output();
    if Need::Compiler.or_skip(gcc.map_err(|e| format!("gcc: {e}"))).is_none() {
        return;
    }
    let mut export = vec!["export", "a", "--format", "c", "--out", "out", "--name", "p"];
    for input in inputs {
        export.extend(["--input", input]);
    }
    place.ok(&export);

    let mut run = load_run(&place.path("a")).unwrap();
    run.settle(None).unwrap();
    let seed = run.config.seed + 1000;
    let own = play(&run, run.env(episodes, seed).unwrap());
    let (env, _) = run.judged_env(episodes, seed, Some(&python)).unwrap();
    let judged = play(&run, env);
    assert_eq!(own.qpos, judged.qpos);
    assert_eq!(own.given[0], judged.given[0]);
    let starts = json!({
        "episodes": episodes, "steps": own.given.len(), "commands": own.commands,
        "qpos": own.qpos, "qvel": own.qvel, "given": own.given,
        "early": EARLY, "tolerance": TOLERANCE,
        "trail": { "native": own.trail, "mujoco": judged.trail },
    });
    let file = place.path("starts.json");
    std::fs::write(&file, serde_json::to_vec(&starts).unwrap()).unwrap();

    let script = root().join("tests/tools/export/closed_loop.py");
    let out = Command::new(&python)
        .arg(script)
        .arg(task)
        .args([&place.path("out"), Path::new("p"), &place.path(robot), &file])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{err}");
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    let two = |key: &str, engine: &str| [0, 1].map(|k| found[key][engine][k].as_f64().unwrap());
    let numbers = |key: &str| -> Vec<f64> {
        let all = found[key].as_array().unwrap().iter();
        all.map(|x| x.as_f64().unwrap()).collect()
    };
    let (returns, lengths) = (numbers("returns"), numbers("lengths"));
    assert_eq!(returns.len(), episodes);

    let (n, exe) = (episodes.to_string(), python.to_str().unwrap());
    let said: Value = serde_json::from_str(&place.ok(&[
        "eval",
        "a",
        "--episodes",
        &n,
        "--num-envs",
        &n,
        "--json",
        "--backend",
        "native,mujoco",
        "--python",
        exe,
    ]))
    .unwrap();
    let c = mean(&returns);
    let steps = mean(&lengths);
    eprintln!("{task}: mean return {c:.4} in C, {episodes} episodes of {steps:.1} steps");
    for (engine, played) in [("native", &own), ("mujoco", &judged)] {
        let number = |key: &str| said[engine][key].as_f64().unwrap_or_else(|| panic!("{said}"));
        let (mean, ci) = (number("mean_return"), number("ci95_return"));
        let (early, same) = (two("early", engine), two("same", engine));
        eprintln!(
            "{task}: {engine} {mean:.4} +- {ci:.4}; positions and rewards: {early:?} off in the \
             first {EARLY} steps, shares of {same:.3?} within {TOLERANCE} in {COMPARED}"
        );
        // It is the evaluation that was looked into.
        let off = (played.mean - mean).abs() / mean.abs().max(1.0);
        assert!(off < 1e-5, "{engine}: {} is not {mean}", played.mean);
        assert!(ci > 0.0 && ci < 0.2 * mean.abs(), "{engine}: {said}");
        assert!((c - mean).abs() < ci, "{engine}: {c} in C, {mean} +- {ci}");
        assert!(early.iter().all(|off| *off < TOLERANCE), "{engine}: {early:?}");
        assert!(same.iter().all(|share| *share > SHARE), "{engine}: {same:?}");
    }
    assert!(found["moved"].as_f64().unwrap() > 0.2, "it stands still");
}

fn text(file: &str) -> String {
    let path = root().join(file);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_quadruped_walks_by_the_c_policy_as_eval_says() {
    let task = text("configs/quadruped.toml")
        .replace("episode_length_s = 20.0", "episode_length_s = 4.0")
        .replace("resample_s = 10.0", "resample_s = 1.5");
    let place = Place::with(&task);
    let robot = "robots/quadruped.xml";
    std::fs::write(place.path(robot), text("configs/robots/quadruped.xml")).unwrap();
    let iterations = share::of(200, "iterations of training", 40);
    let set = ["sim.specialize=off", "runner.eval_interval=0"];
    place.train("a", iterations as u64, &set);
    let episodes = share::of(192, "episodes", 24);
    closes_the_loop(&place, "quadruped", robot, &["lin_vel"], episodes);
}

#[test]
fn a_robot_with_all_sorts_of_sensors_moves_by_the_c_policy_as_eval_says() {
    let place = Place::with(&text("tests/tools/export/crab.toml"));
    let robot = "robots/crab.xml";
    std::fs::write(place.path(robot), text("tests/tools/export/crab.xml")).unwrap();
    let iterations = share::of(200, "iterations of training", 40);
    place.train("a", iterations as u64, &[]);
    let episodes = share::of(192, "episodes", 24);
    closes_the_loop(&place, "crab", robot, &["lin_vel"], episodes);
}
