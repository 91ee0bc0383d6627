//! One small model per feature of MJCF.

use super::engine::{Findings, due, files, repository};
use super::reference::{mujoco, reference};
use crate::support::share;
use ostler_sim::model::mjcf;
use ostler_sim::referee::states::Reference;

const STATES: usize = 400;
/// With the other tests.
const SHARE: usize = 40;

#[test]
fn features_agree_with_the_kept_answers() {
    let mut findings = Findings::default();
    for (name, path) in files("tests/referee/features") {
        let model = match mjcf::load(&path) {
            Ok(model) => model,
            Err(error) => {
                findings.add(&name, "refused", &[error.to_string()]);
                continue;
            }
        };
        let kept = repository("tests/referee/kept/features").join(format!("{name}.npz"));
        let kept = Reference::read(&kept, &model).unwrap_or_else(|e| panic!("{e}"));
        findings.check(&name, &model, &kept);
    }
    findings.finish();
}

#[test]
fn features_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let states = share::of(STATES, "states", SHARE);
    let mut findings = Findings::default();
    for (name, path) in files("tests/referee/features") {
        let model = match mjcf::load(&path) {
            Ok(model) => model,
            Err(error) => {
                findings.add(&name, "refused", &[error.to_string()]);
                continue;
            }
        };
        if due(&name, &model) {
            let answers = reference(&mut mujoco, &path, &model, states, 2);
            findings.check(&name, &model, &answers);
        }
    }
    findings.finish();
}
