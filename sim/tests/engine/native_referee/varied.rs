//! Numbers of a model that differ between environments: as MuJoCo with the same fields changed
//! and `mj_setConst`.

use super::engine::{Findings, due, files};
use super::reference::{cached, mujoco};
use crate::support::share;
use ostler_sim::Model;
use ostler_sim::model::{Field, JointKind, Varied, mjcf};
use ostler_sim::physics::native::vary;
use ostler_sim::referee::mujoco::{MuJoCo, RefereeError};
use ostler_sim::referee::states::Reference;
use std::path::{Path, PathBuf};

const STATES: usize = 1000;
/// Of a feature's model: as many as of its own numbers (`features`).
const FEATURE_STATES: usize = 400;
/// With the other tests.
const SHARE: usize = 40;

/// Elements of a model whose field can differ.
fn elements(model: &Model, field: Field) -> Vec<Varied> {
    let moving = |b: &usize| model.bodies[*b].weld != 0;
    let named = |name: &str, kind: &str| {
        // MuJoCo knows no names that the file does not give.
        let digits = name.strip_prefix(kind);
        !digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    // MuJoCo takes short cuts for such bodies, and refuses to move their centres of mass.
    let simple = |b: usize| {
        let body = &model.bodies[b];
        body.parent == 0 && body.ipos == [0.0; 3] && model.bodies.iter().all(|c| c.parent != b)
    };
    let moves = |b: &usize| !matches!(field, Field::Com | Field::Tensor) || !simple(*b);
    let servo = |u: &usize| {
        let a = &model.actuators[*u];
        a.muscle.is_none() && a.gain[0] != 0.0 && a.bias[1] == -a.gain[0] && a.gain[1..] == [0.0; 2]
    };
    let elements: Vec<usize> = match field {
        Field::Gravity => vec![0],
        Field::Mass | Field::Com | Field::Moments | Field::Tensor | Field::Wrench => {
            (1..model.bodies.len())
                .filter(moving)
                .filter(moves)
                .filter(|b| model.bodies[*b].mass > 0.0)
                .collect()
        }
        Field::Friction => {
            (0..model.geoms.len()).filter(|g| named(&model.geoms[*g].name, "geom")).collect()
        }
        // Only motors with laws of their own have one: sim/tests/env/task_robot.rs.
        Field::Delay => Vec::new(),
        Field::Kp | Field::Kd => (0..model.nu()).filter(servo).collect(),
        Field::Gain => (0..model.nu()).filter(|u| model.actuators[*u].is_motor()).collect(),
        Field::Effort => (0..model.nu()).filter(|u| model.actuators[*u].muscle.is_none()).collect(),
        Field::Qpos0 => (0..model.joints.len()).filter(|j| model.joints[*j].is_scalar()).collect(),
        _ => (0..model.joints.len()).filter(|j| model.joints[*j].kind != JointKind::Free).collect(),
    };
    let elements = elements.into_iter();
    elements.map(|element| Varied { field, element }).collect()
}

fn reference(
    mujoco: &mut MuJoCo,
    path: &Path,
    model: &Model,
    states: usize,
) -> Result<Reference, RefereeError> {
    let pairs = model.varied.iter();
    let pairs: Vec<[serde_json::Value; 2]> =
        pairs.map(|v| [v.field.name().into(), model.varied_name(*v)]).collect();
    let request = serde_json::json!({
        "op": "varied", "model": path, "states": states, "seed": 2, "varied": pairs,
    });
    cached(mujoco, model, &request)
}

/// `fields` of every element of a robot.
fn check(
    mujoco: &mut MuJoCo,
    findings: &mut Findings,
    (stem, path): &(String, PathBuf),
    fields: &[Field],
    states: usize,
) {
    let model = mjcf::load(path).unwrap();
    let varied: Vec<Varied> = fields.iter().flat_map(|f| elements(&model, *f)).collect();
    if varied.is_empty() {
        return;
    }
    let label = match fields.len() {
        1..=4 => fields.iter().map(|f| f.name()).collect::<Vec<_>>().join(" "),
        many => format!("{many} fields"),
    };
    let label = format!("{stem}: {label}");
    let model = match vary(&model, varied) {
        Ok(model) => model,
        // The message says what does not follow from which field.
        Err(e) if e.to_string().contains("differ between environments") => {
            println!("{label}: {e}");
            return;
        }
        Err(e) => panic!("{label}: {e}"),
    };
    let states = share::of(states, "states", SHARE);
    if !due(&label, &model) {
        return;
    }
    let answers = match reference(mujoco, path, &model, states) {
        Ok(answers) => answers,
        // MuJoCo takes short cuts for some bodies, and says where they do not hold any more.
        Err(e) if e.to_string().contains("compiled as simple") => {
            println!("{label}: {e}");
            return;
        }
        Err(e) => panic!("{label}: {e}"),
    };
    findings.check(&label, &model, &answers);
}

#[test]
fn every_field_alone_agrees_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let mut findings = Findings::default();
    for robot in files("configs/robots") {
        for field in Field::ALL {
            check(&mut mujoco, &mut findings, &robot, &[field], STATES);
        }
    }
    findings.finish();
}

#[test]
fn all_fields_together_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let mut findings = Findings::default();
    // Two forms of one field.
    let all: Vec<Field> = Field::ALL.into_iter().filter(|f| *f != Field::Tensor).collect();
    for robot in files("configs/robots") {
        check(&mut mujoco, &mut findings, &robot, &all, STATES);
    }
    findings.finish();
}

/// A model for each feature of MJCF: every kind of constraint, cone and actuator.
fn of_features(fields: &[Field]) {
    let Some(mut mujoco) = mujoco() else { return };
    let mut findings = Findings::of_features();
    for model in files("tests/referee/features") {
        check(&mut mujoco, &mut findings, &model, fields, FEATURE_STATES);
    }
    findings.finish();
}

#[test]
fn masses_of_features_agree_with_mujoco() {
    of_features(&[Field::Mass, Field::Com, Field::Moments, Field::Armature]);
}

#[test]
fn contacts_and_forces_of_features_agree_with_mujoco() {
    of_features(&[Field::Friction, Field::Wrench, Field::Gravity]);
}

#[test]
fn joints_of_features_agree_with_mujoco() {
    of_features(&[Field::Damping, Field::Frictionloss, Field::Stiffness, Field::Qpos0]);
}

#[test]
fn actuators_of_features_agree_with_mujoco() {
    of_features(&[Field::Kp, Field::Kd, Field::Effort]);
    of_features(&[Field::Gain]);
}
