//! Robots as strangers write them, drawn by `robots.py`: each means here what its plain twin
//! means to MuJoCo, number by number, in states with contacts and on a short way.
//!
//! One that does not is written again with fewer quirks, as long as it still does not, and
//! printed. `OSTLER_FOREIGN=SEED` runs one alone, `SEED:QUIRK,QUIRK` with these quirks.

use super::{compare, referee};
use crate::support::{self, share};
use ostler_sim::Model;
use ostler_sim::model::edit::Edits;
use ostler_sim::model::mjcf;
use ostler_sim::npz::{Expected, Npz};
use ostler_sim::physics::evaluate::{Evaluation, Precision, States};
use ostler_sim::physics::native::{EvalOptions, evaluate};
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::residual::{self, Gate};
use ostler_sim::referee::states::Reference;
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const ROBOTS: usize = 500;
/// With the other tests.
const SHARE: usize = 100;
const STATES: usize = 12;
/// Of a robot that differs in those: of twelve states one is a large share.
const MORE_STATES: usize = 96;
/// Steps of the way, each control for `HOLD` of them.
const STEPS: usize = 40;
const HOLD: usize = 5;
/// Robots that are written again with fewer quirks.
const SHRUNK: usize = 3;
/// Shapes and masses are drawn, so are condition numbers: times the gate of robots.
const SLACK: f64 = 10.0;

/// Robots of these seeds, by seed, in `folder`.
fn drawn(
    python: &Path,
    folder: &Path,
    first: u64,
    count: usize,
    only: Option<&str>,
) -> Map<String, Value> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/mjcf_referee/foreign/robots.py");
    let mut args = vec![folder.display().to_string(), first.to_string(), count.to_string()];
    if let Some(only) = only {
        args.extend(["--only".into(), only.into()]);
    }
    let out = support::script::run(python, &script, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn text<'a>(robot: &'a Value, key: &str) -> &'a str {
    robot[key].as_str().unwrap_or_else(|| panic!("{key} of {robot}"))
}

/// Why the robot does not mean what MuJoCo says of its twin, `theirs`.
fn judge(mujoco: &mut MuJoCo, robot: &Value, theirs: &Value) -> Result<(), String> {
    if let Some(error) = theirs["error"].as_str() {
        return Err(format!("MuJoCo refuses the twin: {error}"));
    }
    let edits = Edits { balance: text(robot, "meaning") == "balanced", ..Edits::default() };
    let within = robot["folder"].as_str().map(Path::new);
    let reading = mjcf::Reading { within, edits: Some(&edits), ..Default::default() };
    let model = match reading.read(Path::new(text(robot, "robot"))).map(|r| r.0) {
        Ok(model) => model,
        Err(_) if text(robot, "meaning") == "or refused" => return Ok(()),
        Err(e) => return Err(format!("refused: {e}")),
    };
    let theirs = &without(&model, theirs)?;
    catch_unwind(AssertUnwindSafe(|| compare(&model, theirs))).map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        said.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string())).unwrap_or_default()
    })?;
    if model.nv == 0 {
        return Ok(());
    }
    let plain = Path::new(text(robot, "plain"));
    // Of two meshes that hardly move to one another MuJoCo chooses the same one of equally deep
    // contacts in all states, and of deep overlaps its own answers move as far in up to half.
    let gate = Gate { excused: 0.5, choice: 0.75, ..Gate::of(Precision::F64).scaled(SLACK) };
    let mut compared = |states| -> Result<residual::Table, String> {
        let out = mujoco.scratch("states.npz");
        mujoco.states(plain, None, &out, states, 3, false).map_err(|e| e.to_string())?;
        let answers = Reference::read(&out, &model).map_err(|e| e.to_string())?;
        let ours = ours(&model, &answers.states.view())?;
        Ok(residual::compare(&model, "f64", &ours, &answers, gate))
    };
    let mut table = compared(STATES)?;
    if !table.beyond.is_empty() {
        table = compared(MORE_STATES)?;
    }
    if !table.beyond.is_empty() {
        return Err(format!("{}\n{table}", table.beyond.join("; ")));
    }
    if table.excused + table.choices + table.searched > 0 {
        return Ok(());
    }
    way(mujoco, &model, plain)
}

/// MuJoCo's numbers without the geoms that are only seen, which the model leaves out.
fn without(model: &Model, theirs: &Value) -> Result<Value, String> {
    let mut theirs = theirs.clone();
    for &g in model.skipped.iter().rev() {
        let number = |field: &str| theirs[field][g][0].as_f64();
        if number("geom_contype") != Some(0.0) || number("geom_conaffinity") != Some(0.0) {
            return Err(format!("geom {g} is left out, and touches"));
        }
        let body = number("geom_bodyid").unwrap_or_default() as usize;
        for (field, rows) in theirs.as_object_mut().unwrap() {
            match (rows.as_array_mut(), field.as_str()) {
                (Some(rows), "body_geomnum") => {
                    rows[body][0] = json!(rows[body][0].as_f64().unwrap() - 1.0)
                }
                (Some(rows), "body_geomadr") => {
                    for row in rows.iter_mut().filter(|r| r[0].as_f64() > Some(g as f64)) {
                        row[0] = json!(row[0].as_f64().unwrap() - 1.0);
                    }
                }
                (Some(rows), of) if of.starts_with("geom_") && rows.len() > g => {
                    drop(rows.remove(g))
                }
                _ => {}
            }
        }
        theirs["names"]["geom"].as_array_mut().unwrap().remove(g);
    }
    Ok(theirs)
}

fn ours(model: &Model, states: &States<'_>) -> Result<Evaluation, String> {
    evaluate(model, &EvalOptions::default(), Precision::F64, states).map_err(|e| e.to_string())
}

/// Whether the robot goes under drawn controls where MuJoCo's goes.
fn way(mujoco: &mut MuJoCo, model: &Model, plain: &Path) -> Result<(), String> {
    let out = mujoco.scratch("way.npz");
    let request = json!({"op": "trajectories", "model": plain, "out": out, "trajectories": 1,
        "steps": STEPS, "hold": HOLD, "seed": 4});
    mujoco.ask(&request).map_err(|e| e.to_string())?;
    let mut file = Npz::open(&out).unwrap();
    let mut array = |name: &str, columns: usize| {
        let expected = Expected { rows: None, columns: Some(columns), label: "n" };
        file.finite(name, expected).unwrap().0
    };
    let (nq, nu) = (model.nq, model.nu());
    let (path, beside, controls) = (array("path", nq), array("beside", nq), array("ctrl", nu));
    let (mut qpos, mut qvel) = (array("qpos", nq), array("qvel", model.nv));
    let mut largest = 1e-8_f64;
    for row in 0..STEPS / HOLD {
        for _ in 0..HOLD {
            let ctrl = &controls[row * nu..(row + 1) * nu];
            let states = States { qpos: &qpos, qvel: &qvel, ctrl, act: &[], varied: &[] };
            let next = ours(model, &states)?;
            (qpos, qvel) = (next.qpos_next, next.qvel_next);
        }
        let apart = |other: &[f64]| {
            let gaps =
                other.iter().zip(&path[row * nq..]).map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
            gaps.fold(0.0_f64, f64::max)
        };
        // As far as MuJoCo's own from one float32 ulp away.
        largest = largest.max(apart(&beside[row * nq..(row + 1) * nq]));
        let off = apart(&qpos);
        if off > largest && largest < 1e-3 {
            return Err(format!(
                "{off:.1e} apart after {} steps, an ulp becomes {largest:.1e}",
                (row + 1) * HOLD
            ));
        }
    }
    Ok(())
}

/// MuJoCo's numbers of the twins, by seed.
fn twins(robots: &Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    let list: Vec<_> = robots.iter().collect();
    for some in list.chunks(50) {
        let paths: Vec<PathBuf> = some.iter().map(|(_, r)| text(r, "plain").into()).collect();
        let mut said = referee(&paths).unwrap();
        let named = some.iter().map(|(seed, r)| ((*seed).clone(), said[text(r, "plain")].take()));
        all.extend(named.collect::<Vec<_>>());
    }
    all
}

fn quirks(robot: &Value) -> Vec<String> {
    serde_json::from_value(robot["quirks"].clone()).unwrap()
}

#[test]
fn foreign_robots_mean_what_mujoco_says_of_their_plain_twins() {
    let Some(python) = support::referee::referee_python() else {
        return;
    };
    let asked = std::env::var("OSTLER_FOREIGN").ok();
    let (seed, only) = match asked.as_deref().map(|a| a.split_once(':').unwrap_or((a, ""))) {
        Some((seed, only)) => (Some(seed.parse().expect("OSTLER_FOREIGN is a seed")), only),
        None => (None, ""),
    };
    let (first, count) = match seed {
        Some(seed) => (seed, 1),
        None => (0, share::of(ROBOTS, "robots", SHARE)),
    };
    let folder = tempfile::tempdir().unwrap();
    let only = (!only.is_empty()).then_some(only);
    let robots = drawn(&python, folder.path(), first, count, only);
    assert_eq!(robots.len(), count);
    let mut mujoco = MuJoCo::start(Some(&python)).unwrap_or_else(|e| panic!("{e}"));
    let theirs = twins(&robots);
    let mut different = Vec::new();
    for (seed, robot) in &robots {
        let Err(why) = judge(&mut mujoco, robot, &theirs[seed]) else {
            continue;
        };
        let mut left = quirks(robot);
        let mut last = (robot.clone(), why);
        if different.len() < SHRUNK {
            let again = tempfile::tempdir().unwrap();
            for quirk in quirks(robot) {
                let fewer: Vec<_> = left.iter().filter(|q| **q != quirk).cloned().collect();
                let mut one =
                    drawn(&python, again.path(), seed.parse().unwrap(), 1, Some(&fewer.join(",")));
                let answer = twins(&one);
                if let Err(why) = judge(&mut mujoco, &one[seed], &answer[seed]) {
                    (left, last) = (fewer, (one[seed].take(), why));
                }
            }
        }
        let line = format!("{seed}:{}: {}", left.join(","), last.1);
        let file = std::fs::read(text(&last.0, "robot")).unwrap_or_default();
        println!("{line}\n{}", String::from_utf8_lossy(&file));
        different.push(line);
    }
    assert!(
        different.is_empty(),
        "{} of {count} robots differ (OSTLER_FOREIGN=SEED:QUIRKS runs one):\n{}",
        different.len(),
        different.join("\n")
    );
}
