//! The world as tasks see it, beside MuJoCo's worlds: every array of `State` after a time step
//! from the same states.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/support/mod.rs"]
mod support;

use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, State, fault, native};
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::worlds::MuJoCoWorlds;
use ostler_sim::rng::{self, Purpose};
use std::path::Path;
use std::sync::Arc;

const WORLDS: usize = 8;
const STEPS: usize = 60;

fn robot(name: &str) -> Arc<Model> {
    let folder = match name.starts_with("sensor") {
        true => "tests/referee/features",
        false => "configs/robots",
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{folder}/{name}.xml"));
    Arc::new(mjcf::load(&path).unwrap())
}

/// A number in -1..1 that depends on what it is for alone.
fn draw(world: usize, step: usize, k: usize) -> f32 {
    let bits = rng::philox(11, world as u32, Purpose::Reset, step as u64, k as u32);
    2.0 * rng::unit(bits[0]) - 1.0
}

fn pair(model: &Arc<Model>) -> Option<(native::NativePhysics, MuJoCoWorlds)> {
    let python = support::referee::referee_python()?;
    let config = SimConfig {
        specialize: Specialize::Off,
        ..SimConfig::default()
    };
    let pool = Arc::new(Pool::new(1).unwrap());
    let ours = native::new(model, &config, WORLDS, &pool).unwrap();
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let theirs = MuJoCoWorlds::new(mujoco, model, WORLDS, &config).unwrap();
    Some((ours, theirs))
}

/// The arrays by name.
fn arrays(s: &State) -> [(&'static str, &Vec<f32>); 10] {
    let names = [
        "qpos",
        "qvel",
        "body_pos",
        "body_quat",
        "body_lin_vel",
        "body_ang_vel",
        "contact_force",
        "actuator_force",
        "qacc",
        "sensordata",
    ];
    let mut named = names.into_iter();
    s.floats().map(|b| (named.next().unwrap(), b))
}

fn compare(name: &str, step: usize, ours: &State, theirs: &State) -> bool {
    let mut touching = false;
    for ((array, a), (_, b)) in arrays(ours).into_iter().zip(arrays(theirs)) {
        let scale = b.iter().fold(1.0_f32, |m, x| m.max(x.abs()));
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            // A quaternion and its negative are the same orientation.
            let same = |y: f32| (x - y).abs() <= 2e-4 * scale;
            assert!(
                same(*y) || (array == "body_quat" && same(-y)),
                "{name}, step {step}: {array}[{}] of world {} is {x}, MuJoCo's {y}",
                i / WORLDS,
                i % WORLDS
            );
            touching |= array == "contact_force" && *y > 0.0;
        }
    }
    assert_eq!(ours.fault, theirs.fault, "{name}, step {step}");
    touching
}

/// Steps both from the same states; returns whether anything ever touched.
fn side_by_side(name: &str) -> Option<bool> {
    let model = robot(name);
    let (mut ours, mut theirs) = pair(&model)?;
    let n = WORLDS;
    let mut qpos = ours.state().qpos.clone();
    for (i, q) in qpos.iter_mut().enumerate() {
        *q += 0.05 * draw(i % n, 0, i / n);
    }
    let qvel: Vec<f32> = (0..model.nv * n)
        .map(|i| 0.2 * draw(i % n, 1, i / n))
        .collect();
    let all = vec![1; n];
    ours.reset(&all, &qpos, &qvel);
    theirs.reset(&all, &qpos, &qvel);
    compare(name, 0, ours.state(), theirs.state());
    let mut touched = false;
    for step in 1..=STEPS {
        let ctrl: Vec<f32> = (0..model.nu() * n)
            .map(|i| draw(i % n, 1 + step / 5, i / n))
            .collect();
        // Sensors are of the last of several time steps.
        let substeps = if step % 5 == 0 { 3 } else { 1 };
        ours.step(&ctrl, substeps);
        theirs.step(&ctrl, substeps);
        touched |= compare(name, step, ours.state(), theirs.state());
        // From the same state again: a difference does not grow.
        let (qpos, qvel) = (theirs.state().qpos.clone(), theirs.state().qvel.clone());
        ours.reset(&all, &qpos, &qvel);
        theirs.reset(&all, &qpos, &qvel);
    }
    Some(touched)
}

#[test]
fn every_array_that_tasks_see_is_mujocos() {
    for name in [
        "cartpole",
        "hopper",
        "half_cheetah",
        "ant",
        "quadruped",
        "sensor_planar",
        "sensor_force_elliptic",
        "sensor_touch",
    ] {
        let Some(touched) = side_by_side(name) else {
            return;
        };
        assert!(
            touched || name == "cartpole",
            "{name} never touched anything"
        );
    }
}

#[test]
fn a_world_that_mujoco_breaks_is_flagged_and_starts_anew() {
    let model = robot("hopper");
    let Some((_, mut worlds)) = pair(&model) else {
        return;
    };
    let n = WORLDS;
    let before = worlds.state().clone();
    let mut ctrl = vec![0.0; model.nu() * n];
    ctrl[2] = f32::NAN;
    worlds.step(&ctrl, 1);
    assert_eq!(worlds.state().fault[2], fault::CONTROL);
    assert_ne!(worlds.state().qvel[2], before.qvel[2]);
    let qpos = before.qpos.clone();
    let mut qvel = before.qvel.clone();
    qvel[3] = f32::NAN;
    let mut mask = vec![0; n];
    mask[3] = 1;
    worlds.reset(&mask, &qpos, &qvel);
    assert_eq!(worlds.state().fault[3], fault::NON_FINITE);
    assert!(worlds.state().qvel.iter().all(|v| v.is_finite()));
    qvel[3] = 2e3;
    worlds.reset(&mask, &qpos, &qvel);
    assert_eq!(worlds.state().fault[3], fault::SPEED);
    worlds.reset(&mask, &qpos, &before.qvel);
    worlds.step(&vec![0.0; ctrl.len()], 1);
    assert_eq!(worlds.state().fault[3], 0);
}

#[test]
fn another_robot_in_the_file_is_refused() {
    let Some(python) = support::referee::referee_python() else {
        return;
    };
    let mut model = Arc::unwrap_or_clone(robot("hopper"));
    model.sources = robot("ant").sources.clone();
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let error = MuJoCoWorlds::new(mujoco, &Arc::new(model), 2, &SimConfig::default()).err();
    let text = error.unwrap().to_string();
    assert!(text.contains("another robot"), "{text}");
}
