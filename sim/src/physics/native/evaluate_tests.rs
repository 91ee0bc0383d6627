//! What the broad phase leaves out has no contact.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::model::{JointKind, mjcf};
use std::path::Path;

/// The same tables with tests that let every pair through.
fn everything(mut plan: RobotTables) -> RobotTables {
    plan.group_ball.fill(-1);
    plan.pair_near.fill(1e30);
    plan.cg_bound.fill(1e9);
    plan
}

/// Poses in which much touches: joints anywhere in their ranges and a little beyond, free
/// bodies near the origin, turned at random.
fn scattered(model: &Model, count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut qpos = model.qpos0.clone();
        for joint in &model.joints {
            let at = joint.qpos_adr;
            match joint.kind {
                JointKind::Free | JointKind::Ball => {
                    let mut quat = at;
                    if joint.kind == JointKind::Free {
                        (0..3).for_each(|k| qpos[at + k] += 0.6 * (random() - 0.5));
                        quat += 3;
                    }
                    (0..4).for_each(|k| qpos[quat + k] += 1.5 * (random() - 0.5));
                    let norm = qpos[quat..quat + 4]
                        .iter()
                        .map(|x| x * x)
                        .sum::<f64>()
                        .sqrt();
                    (0..4).for_each(|k| qpos[quat + k] /= norm);
                }
                JointKind::Hinge | JointKind::Slide => {
                    let [low, high] = joint.range.unwrap_or([-1.0, 1.0]);
                    qpos[at] = low + (high - low) * (1.2 * random() - 0.1);
                }
            }
        }
        rows.extend(qpos.iter().map(|x| f64::from(*x as f32)));
    }
    rows
}

#[test]
fn what_the_broad_phase_leaves_out_does_not_touch() {
    const STATES: usize = 96;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [
        "configs/robots",
        "tests/referee/robots",
        "tests/referee/features",
    ];
    let files = folders.map(|f| root.join(f));
    let files = files.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let (mut seen, mut grouped) = (0, 0);
    for file in files.map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "xml") {
            continue;
        }
        let model = mjcf::load(&file).unwrap();
        let options = EvalOptions {
            iterations: 12,
            ..EvalOptions::default()
        };
        let plan = lower(&model, &options.lower).unwrap();
        if plan.npair == 0 {
            continue;
        }
        grouped += usize::from(plan.group_ball.iter().any(|b| *b >= 0));
        let qpos = scattered(&model, STATES, 1);
        let states = States {
            qpos: &qpos,
            qvel: &vec![0.0; STATES * model.nv],
            ctrl: &vec![0.0; STATES * model.nu()],
            act: &vec![0.0; STATES * model.na],
            varied: &[],
        };
        let generic = InstructionSet::detect().generic().unwrap();
        let both = [plan.clone(), everything(plan)]
            .map(|plan| run::<f32>(plan, &options, generic, &states).unwrap());
        let bits = |e: &Evaluation| e.qacc.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(both[0].ncon, both[1].ncon, "{file:?}");
        assert_eq!(bits(&both[0]), bits(&both[1]), "{file:?}");
        seen += both[0].ncon.iter().sum::<u32>();
    }
    // There were contacts, and groups to leave out.
    assert!(seen > 10_000, "{seen}");
    assert!(grouped > 5, "{grouped}");
}
