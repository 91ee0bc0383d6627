//! Drawn robots as strangers write them (`sim/tests/engine/mjcf_referee/foreign`), from end to end:
//! trained, read back where the original is gone, gone on with, exported. What each output of
//! the policy drives, and how, is what the task says of its name, in every file.
//!
//! `OSTLER_FOREIGN=SEED` runs one alone.

use super::ostler;
use crate::common::forked::Forked as _;
use crate::common::root;
use crate::support::{referee, script, share};
use serde_json::{Map, Value};
use std::path::Path;

/// Of these seeds some robots have nothing to drive.
const SEEDS: usize = 80;
const SHARE: usize = 10;
/// So many are judged in MuJoCo's worlds, too.
const JUDGED: usize = 3;

fn run(folder: &Path, args: &[&str]) -> Result<String, String> {
    let out = ostler().current_dir(folder).args(args).forked().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    let said = String::from_utf8_lossy(&out.stdout);
    match out.status.success() {
        true => Ok(said.into_owned()),
        false => Err(format!("ostler {}: {said}{errors}", args.join(" "))),
    }
}

fn same(what: &str, ours: &Value, wanted: &Value) -> Result<(), String> {
    let near = match (ours.as_f64(), wanted.as_f64()) {
        // Numbers of policies are single.
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs().max(1.0),
        (None, Some(b)) => b == 0.0 && ours.is_null(),
        _ => ours == wanted,
    };
    if near { Ok(()) } else { Err(format!("{what}: {ours}, not {wanted}")) }
}

/// Per-action numbers of an export against the task's, by name.
fn exported(folder: &Path, wanted: &Value, python: &Path) -> Result<(), String> {
    let read = |name: &str| std::fs::read_to_string(folder.join("out").join(name)).unwrap();
    let manifest: Value = serde_json::from_str(&read("p.json")).unwrap();
    let list = |of: &Value| of.as_array().unwrap().clone();
    let actions = &wanted["actions"];
    let controls = list(&manifest["controls"]);
    let outputs = list(&manifest["actions"]);
    if outputs.len() != actions.as_object().unwrap().len() {
        return Err(format!("{} outputs", outputs.len()));
    }
    let mut joints = Vec::new();
    for (i, output) in outputs.iter().enumerate() {
        let name = output["name"].as_str().unwrap();
        let one = &actions[name];
        let control =
            controls.iter().find(|c| c["action"] == i).ok_or(format!("no control of {name}"))?;
        for key in ["joint", "stiffness", "damping"] {
            same(&format!("{key} of {name}"), &control[key], &one[key])?;
        }
        let joint = one["joint"].as_str().unwrap();
        same(&format!("scale of {name}"), &control["mapping"]["scale"], &one["scale"])?;
        same(&format!("offset of {name}"), &control["mapping"]["offset"], &one["offset"])?;
        joints.push((joint.to_string(), one.clone()));
    }
    for joint in list(&manifest["robot"]["joints"]) {
        let name = joint["name"].as_str().unwrap();
        if !wanted["poses"][name].is_null() {
            same(
                &format!("default pose of {name}"),
                &joint["default_pos"],
                &wanted["poses"][name],
            )?;
        }
    }
    let script = root().join("tests/referee/exported.py");
    let out = script::run(python, &script, &["vectors", folder.join("out").to_str().unwrap(), "p"]);
    let found: Value = serde_json::from_slice(&out.stdout)
        .map_err(|_| String::from_utf8_lossy(&out.stderr).into_owned())?;
    for kind in ["onnx", "c"] {
        let off = found[kind].as_f64().unwrap();
        if off > 1e-5 {
            return Err(format!("{kind} differs by {off}"));
        }
    }
    // Lists with commas, in the order of the outputs.
    let metadata = &found["metadata"];
    let words =
        |key: &str| -> Vec<&str> { metadata[key].as_str().unwrap_or("").split(',').collect() };
    if joints.iter().all(|(name, _)| !name.contains(',')) {
        for (i, (name, one)) in joints.iter().enumerate() {
            same("joint_names", &words("joint_names")[i].into(), &name.as_str().into())?;
            let pose = words("default_joint_pos")[i].parse::<f64>().unwrap_or(f64::NAN);
            same("default_joint_pos", &pose.into(), &wanted["poses"][name])?;
            for (key, own) in [
                ("joint_stiffness", "stiffness"),
                ("joint_damping", "damping"),
                ("action_scale", "scale"),
            ] {
                let number = words(key)[i].parse::<f64>().unwrap_or(f64::NAN);
                same(&format!("{key} of {name}"), &number.into(), &one[own])?;
            }
        }
    }
    Ok(())
}

fn judge(
    folder: &Path,
    seed: &str,
    robot: &Value,
    python: &Path,
    in_mujoco: bool,
) -> Result<(), String> {
    let task = format!("{seed}/task.toml");
    run(folder, &["train", &task, "--quiet", "--out", "run"])?;
    std::fs::rename(folder.join(seed), folder.join("gone")).unwrap();
    run(folder, &["eval", "run", "--episodes", "2"])?;
    run(folder, &["train", "--quiet", "runner.max_iterations=3", "--resume", "run"])?;
    run(
        folder,
        &["export", "run", "--format", "onnx,c", "--out", "out", "--name", "p", "--vectors", "8"],
    )?;
    exported(folder, &robot["wanted"], python)?;
    if in_mujoco {
        let python = python.to_str().unwrap();
        let both = run(
            folder,
            &[
                "eval",
                "run",
                "--episodes",
                "4",
                "--json",
                "--backend",
                "native,mujoco",
                "--python",
                python,
            ],
        )?;
        let both: Value = serde_json::from_str(&both).unwrap();
        let number = |engine: &str| both[engine]["mean_return"].as_f64().unwrap();
        let (ours, theirs) = (number("native"), number("mujoco"));
        if (ours - theirs).abs() > 1e-2 * theirs.abs().max(1.0) {
            return Err(format!("a return of {ours}, in MuJoCo {theirs}"));
        }
    }
    Ok(())
}

#[test]
fn foreign_robots_train_read_back_and_export_what_their_task_says_by_name() {
    let Some(python) = referee::referee_python() else {
        return;
    };
    let one = std::env::var("OSTLER_FOREIGN").ok();
    let (first, count) = match &one {
        Some(seed) => (seed.clone(), 1),
        None => ("0".into(), share::of(SEEDS, "robots", SHARE)),
    };
    let folder = tempfile::tempdir().unwrap();
    let robots = root().join("sim/tests/engine/mjcf_referee/foreign/robots.py");
    let args = [folder.path().to_str().unwrap(), &first, &count.to_string(), "--train"];
    let out = script::run(&python, &robots, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let robots: Map<String, Value> = serde_json::from_slice(&out.stdout).unwrap();
    let mut different = Vec::new();
    let driven = robots.iter().filter(|(_, r)| !r["wanted"].is_null());
    for (i, (seed, robot)) in driven.enumerate() {
        let place = folder.path().join(format!("place_{seed}"));
        std::fs::create_dir(&place).unwrap();
        std::fs::rename(folder.path().join(seed), place.join(seed)).unwrap();
        let judged = i < JUDGED || share::in_full();
        if let Err(why) = judge(&place, seed, robot, &python, judged) {
            different.push(format!("{seed}, {}: {why}", robot["quirks"]));
        }
    }
    assert!(different.is_empty(), "{} robots differ:\n{}", different.len(), different.join("\n"));
}
