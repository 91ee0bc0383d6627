//! The robots' specialised kernels, compiled here, against MuJoCo: the states, the answers and
//! the gate of `native_referee`.

use crate::native_referee::engine::{Findings, files, model_hash, table};
use crate::native_referee::reference::{gymnasium, mujoco, reference};
use crate::support::need::Need;
use crate::support::{alone, share};
use ostler_sim::Model;
use ostler_sim::config::Specialize;
use ostler_sim::model::mjcf;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::physics::native::generate::{generate, program_hash};
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::physics::native::{self, EvalOptions, InstructionSet};
use std::path::Path;

const STATES: usize = 10_000;
/// With the other tests: states, and every so many-th model.
const SHARE: usize = 500;
const EVERY: usize = 4;
/// States of each of [`FEATURES`]: sensors in a step, of contacts that are kept by body and by
/// Jacobians; forces that depend on contacts.
const FEATURE_STATES: usize = 400;
const FEATURES: [&str; 8] = [
    "actuator_adhesion",
    "adhesion",
    "implicitfast_actuatorfrcrange",
    "sensor_acceleration",
    "sensor_force",
    "sensor_force_elliptic",
    "sensor_planar",
    "sensor_touch",
];
const GYMNASIUM: [&str; 9] = [
    "inverted_double_pendulum",
    "reacher",
    "pusher",
    "swimmer",
    "hopper",
    "walker2d_v5",
    "half_cheetah",
    "ant",
    "humanoid",
];

/// The hash of a model's files and of the kernel that is printed for it.
fn hash(model: &Model) -> String {
    let plan = lower(model, &LowerOptions::default()).unwrap_or_else(|e| panic!("{e:?}"));
    // One width: the record is of any processor.
    let text = generate(&plan, 8).unwrap().source.text;
    let mut hash = blake3::Hasher::new();
    hash.update(model_hash(model).as_bytes());
    hash.update(program_hash(&plan, &text).as_bytes());
    hash.finalize().to_hex()[..16].to_owned()
}

#[test]
fn robots_specialised_kernels_agree_with_mujoco() {
    let test = "specialised_kernels::robots_specialised_kernels_agree_with_mujoco";
    // Kept beside MuJoCo's answers: the next run compiles nothing.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("specialised_kernels");
    if !alone::here(test, &[("OSTLER_CACHE", cache.as_os_str())]) {
        return;
    }
    let Some(mut mujoco) = mujoco() else { return };
    let specialises = InstructionSet::detect() != InstructionSet::Portable;
    let found = specialises.then_some(()).ok_or("the processor lacks them");
    let Some(()) = Need::Avx2.or_skip(found) else {
        return;
    };
    let folder = gymnasium(&mut mujoco);
    let others = GYMNASIUM.map(|name| (name.to_string(), folder.join(format!("{name}.xml"))));
    let mut findings = Findings::default();
    let features = files("tests/referee/features");
    let features = (features.into_iter()).filter(|(name, _)| FEATURES.contains(&name.as_str()));
    let robots = files("configs/robots").into_iter().chain(others);
    let robots = robots.chain(files("tests/referee/robots"));
    let all = robots.map(|(name, path)| (name, path, STATES));
    let features = features.map(|(name, path)| (name, path, FEATURE_STATES));
    let all: Vec<_> = all.chain(features).collect();
    let few = share::of(all.len(), "models", all.len().div_ceil(EVERY));
    let every = if few < all.len() { EVERY } else { 1 };
    let most = share::of(STATES, "states", SHARE);
    for (i, (name, path, states)) in all.into_iter().enumerate() {
        let states = states.min(most);
        let model = mjcf::load(&path).unwrap_or_else(|e| panic!("{e}"));
        if !share::due(&name, &hash(&model)) || i % every != 0 {
            continue;
        }
        let answers = reference(&mut mujoco, &path, &model, states, 1);
        let (label, precision) = ("own", Precision::F32);
        let options = EvalOptions { specialize: Specialize::Wait, ..EvalOptions::default() };
        let ours = native::evaluate(&model, &options, precision, &answers.states.view());
        let ours = ours.map_err(|e| e.to_string());
        let table = table(&model, label, precision, ours, &answers);
        findings.judge(&name, table, label, &answers);
    }
    findings.finish();
}
