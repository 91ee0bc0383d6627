//! What the broad phase leaves out has no contact.

#![allow(clippy::unwrap_used)]

use super::*;
use ostler_model::{JointKind, mjcf};
use std::path::Path;

/// The same tables with tests that let every pair through.
fn everything(mut plan: RobotTables) -> RobotTables {
    plan.group_ball.fill(-1);
    plan.group_live = plan.group_adr[1..].to_vec();
    plan.pair_near.fill(1e30);
    plan.cg_bound.fill(1e9);
    plan
}

/// Poses in which much touches: joints anywhere in their ranges and a share of these beyond,
/// free bodies near the origin, turned at random.
fn scattered(model: &Model, count: usize, beyond: f64, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
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
                    let norm = qpos[quat..quat + 4].iter().map(|x| x * x).sum::<f64>().sqrt();
                    (0..4).for_each(|k| qpos[quat + k] /= norm);
                }
                JointKind::Hinge | JointKind::Slide => {
                    let [low, high] = joint.range.unwrap_or([-1.0, 1.0]);
                    qpos[at] = low + (high - low) * ((1.0 + 2.0 * beyond) * random() - beyond);
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["configs/robots", "tests/referee/robots", "tests/referee/features"];
    let files = folders.map(|f| root.join(f));
    let files = files.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let (mut seen, mut grouped, mut kept_apart) = (0, 0, 0);
    for file in files.map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "xml") {
            continue;
        }
        let model = mjcf::load(&file).unwrap();
        let options = EvalOptions { iterations: 12, ..EvalOptions::default() };
        let plan = lower(&model, &options.lower).unwrap();
        if plan.npair == 0 {
            continue;
        }
        grouped += usize::from(plan.group_ball.iter().any(|b| *b >= 0));
        let ends = &plan.group_adr[1..];
        kept_apart += usize::from(plan.group_live.iter().zip(ends).any(|(a, b)| a < b));
        // Far beyond, beyond by what pairs are kept apart for at most, and within.
        for beyond in [0.1, 0.02, 0.0] {
            let qpos = scattered(&model, STATES, beyond, 1);
            let states = States {
                qpos: &qpos,
                qvel: &vec![0.0; STATES * model.nv],
                ctrl: &vec![0.0; STATES * model.nu()],
                act: &vec![0.0; STATES * model.na],
                varied: &[],
            };
            let generic = InstructionSet::detect().generic().unwrap();
            let both = [plan.clone(), everything(plan.clone())]
                .map(|plan| run::<f32>(plan, &options, generic, &states).unwrap());
            let bits = |e: &Evaluation| e.qacc.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(both[0].ncon, both[1].ncon, "{file:?}");
            assert_eq!(bits(&both[0]), bits(&both[1]), "{file:?}");
            seen += both[0].ncon.iter().sum::<u32>();
        }
    }
    // There were contacts, groups to leave out, and pairs that ranges keep apart.
    assert!(seen > 10_000, "{seen}");
    assert!(grouped > 5, "{grouped}");
    assert!(kept_apart > 1, "{kept_apart}");
}

/// Two arms side by side, each with a ball at its end: where `a` and `b` are 0, the balls
/// overlap.
fn arms(range_a: &str, range_b: &str, between: f64) -> Model {
    let text = format!(
        r#"<mujoco><compiler angle="radian"/><worldbody>
          <body><joint name="a" axis="0 0 1" {range_a}/><geom size="0.1" pos="1 0 0"/></body>
          <body pos="{between} 0 0"><joint name="b" axis="0 0 1" {range_b}/><geom size="0.1" pos="-1 0 0"/></body>
        </worldbody></mujoco>"#
    );
    mjcf::parse(Path::new("arms.xml"), text).unwrap()
}

#[test]
fn ranges_keep_pairs_apart_where_nothing_within_them_touches() {
    let apart = |range_a: &str, range_b: &str, between: f64| {
        let plan = lower(&arms(range_a, range_b, between), &LowerOptions::default()).unwrap();
        assert_eq!((plan.npair, plan.ngroup), (1, 1));
        plan.group_live[0] == 0
    };
    let (near, away) = ("range='-0.5 0.5'", "range='1 1.5'");
    // The balls' least distances: 1, 0.2, touching, and touching 0.1 beyond the range only.
    assert!(apart(near, near, 3.2));
    assert!(apart(near, near, 2.4));
    assert!(!apart(near, near, 2.19));
    assert!(!apart("range='0.1 0.5'", near, 2.1));
    // They touch where one of them is at 0.
    assert!(apart(away, near, 2.1));
    // Nothing keeps them.
    assert!(!apart("", near, 3.2));
    assert!(!apart("range='-4 4'", "range='-4 4'", 2.1));
}

#[test]
fn pairs_that_ranges_keep_apart_touch_beyond_them() {
    const STATES: usize = 32;
    let model = arms("range='1 1.5'", "range='-0.5 0.5'", 2.1);
    let options = EvalOptions::default();
    let plan = lower(&model, &options.lower).unwrap();
    assert_eq!((plan.group_live[0], plan.nwatch), (0, 2));
    assert_eq!(plan.watch_lo, [0.85, -0.65]);
    // One of all has its arm far beyond its range.
    let mut qpos = [1.2, 0.0].repeat(STATES);
    qpos[2 * 5] = 0.0;
    let states = States {
        qpos: &qpos,
        qvel: &vec![0.0; STATES * model.nv],
        ctrl: &[],
        act: &[],
        varied: &[],
    };
    let generic = InstructionSet::detect().generic().unwrap();
    let found = run::<f32>(plan, &options, generic, &states).unwrap();
    let expected: Vec<u32> = (0..STATES).map(|i| u32::from(i == 5)).collect();
    assert_eq!(found.ncon, expected);
}
