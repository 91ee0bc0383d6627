//! Our robots, those of laboratories' classes and Gymnasium's: 10,000 states each.

use super::engine::{Findings, due, files, repository};
use super::reference::{gymnasium, mujoco, reference};
use crate::support::share;
use ostler_sim::model::mjcf;
use ostler_sim::referee::states::Reference;

const STATES: usize = 10_000;
/// With the other tests.
const SHARE: usize = 500;

#[test]
fn shipped_robots_agree_with_the_kept_answers() {
    let mut findings = Findings::default();
    for (name, path) in files("configs/robots") {
        let model = mjcf::load(&path).unwrap();
        let kept = repository("tests/referee/kept/robots").join(format!("{name}.npz"));
        let kept = Reference::read(&kept, &model).unwrap_or_else(|e| panic!("{e}"));
        findings.check(&name, &model, &kept);
    }
    findings.finish();
}

#[test]
fn shipped_robots_agree_with_mujoco() {
    agree("configs/robots");
}

/// A quadruped whose parts all may touch each other, an arm that holds a box.
#[test]
fn robots_with_many_shapes_agree_with_mujoco() {
    agree("tests/referee/robots");
}

#[track_caller]
fn agree(folder: &str) {
    let Some(mut mujoco) = mujoco() else { return };
    let mut findings = Findings::default();
    let states = share::of(STATES, "states", SHARE);
    for (name, path) in files(folder) {
        let model = mjcf::load(&path).unwrap();
        if due(&name, &model) {
            let answers = reference(&mut mujoco, &path, &model, states, 1);
            findings.check(&name, &model, &answers);
        }
    }
    findings.finish();
}

#[track_caller]
fn gymnasiums(names: &[&str]) {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = gymnasium(&mut mujoco);
    let states = share::of(STATES, "states", SHARE);
    let mut findings = Findings::default();
    for name in names {
        let path = folder.join(format!("{name}.xml"));
        let model = mjcf::load(&path).unwrap_or_else(|e| panic!("{e}"));
        if due(name, &model) {
            let answers = reference(&mut mujoco, &path, &model, states, 1);
            findings.check(name, &model, &answers);
        }
    }
    findings.finish();
}

#[test]
fn gymnasiums_pendulums_and_arms_agree_with_mujoco() {
    gymnasiums(&["inverted_pendulum", "inverted_double_pendulum", "reacher", "pusher"]);
}

#[test]
fn gymnasiums_planar_robots_agree_with_mujoco() {
    gymnasiums(&["swimmer", "hopper", "walker2d", "walker2d_v5", "half_cheetah"]);
}

#[test]
fn gymnasiums_ant_agrees_with_mujoco() {
    gymnasiums(&["ant"]);
}

#[test]
fn gymnasiums_humanoids_agree_with_mujoco() {
    gymnasiums(&["humanoid", "humanoidstandup"]);
}
