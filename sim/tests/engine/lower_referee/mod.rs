//! MuJoCo as referee of the lowering: inverse weights, candidate contacts, and the
//! parameters of every constraint that appears in random states.
//!
//! Needs the referees' Python (`OSTLER_REFEREE_PYTHON`); without it the tests say
//! that they were skipped.

use crate::support::script::numbers;
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::physics::native::tables::RobotTables;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

mod features;
mod rows;
mod soft;

/// Largest relative difference that counts as equal.
const TOLERANCE: f64 = 1e-10;

/// MuJoCo's answers about the files, by path; `None` without a referee.
fn referee(args: &[PathBuf]) -> Option<serde_json::Map<String, Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/lower_referee");
    crate::support::script::answer(&folder.join("dump.py"), args)
}

/// How much of MuJoCo was seen, so that a comparison of nothing cannot pass.
#[derive(Debug, Default)]
struct Seen {
    contacts: usize,
    rows: usize,
    kinds: BTreeSet<String>,
}

fn compare(path: &str, theirs: &Value, seen: &mut Seen) {
    let model = mjcf::load(Path::new(path)).unwrap_or_else(|e| panic!("{e}"));
    let plan = lower(&model, &LowerOptions::default()).unwrap_or_else(|e| panic!("{path}: {e}"));
    let case = Case { path, model: &model, plan: &plan };
    case.weights(theirs);
    case.mass_pattern(theirs);
    case.candidates(theirs);
    for state in theirs["states"].as_array().unwrap() {
        case.frames(state);
        case.lengths(state);
        seen.contacts += case.contacts(state);
        seen.rows += case.rows(state, &mut seen.kinds);
    }
}

/// One model, ours and lowered.
struct Case<'a> {
    path: &'a str,
    model: &'a Model,
    plan: &'a RobotTables,
}

impl Case<'_> {
    #[track_caller]
    fn same(&self, what: &str, ours: &[f64], theirs: &[f64]) {
        let what = format!("{}: {what}", self.path);
        crate::support::script::same(TOLERANCE, &what, ours, theirs);
    }

    /// Inverse weights, through the constraints that carry them.
    fn weights(&self, theirs: &Value) {
        let p = self.plan;
        let mean = theirs["meaninertia"].as_f64().unwrap();
        let scale = 1.0 / (mean * p.nv.max(1) as f64);
        self.same("scale", &[p.scale], &[scale]);
        let weights = ostler_sim::physics::native::lower::inverse_weights(self.model).unwrap();
        let rows = theirs["body_invweight0"].as_array().unwrap();
        assert_eq!(weights.body.len(), rows.len());
        for (b, (ours, theirs)) in weights.body.iter().zip(rows).enumerate() {
            self.same(&format!("body_invweight0[{b}]"), ours, &numbers(theirs));
        }
        let dofs = numbers(&theirs["dof_invweight0"]);
        self.same("dof_invweight0", &weights.dof, &dofs);
        let tendons = numbers(&theirs["tendon_invweight0"]);
        self.same("tendon_invweight0", &weights.tendon, &tendons);
    }

    /// Every entry that is ever other than zero is in the pattern.
    fn mass_pattern(&self, theirs: &Value) {
        let p = self.plan;
        for i in 0..p.nv {
            let row = &p.mrow_col[p.mrow_adr[i] as usize..p.mrow_adr[i + 1] as usize];
            assert_eq!(p.dof_nanc[i] as usize, row.len() + 1);
            for j in 0..i {
                let filled = theirs["mass"][i][j].as_bool().unwrap();
                let ours = row.contains(&(j as i32));
                assert!(!filled || ours, "{}: M[{i}][{j}]", self.path);
            }
        }
    }

    /// Geoms of candidate `k` in MuJoCo's order.
    fn geoms(&self, k: usize) -> [i32; 2] {
        let p = self.plan;
        let geoms = [p.pair_g1[k], p.pair_g2[k]].map(|g| p.cg_geom[g as usize]);
        if p.pair_flip[k] == 0 { geoms } else { [geoms[1], geoms[0]] }
    }

    fn candidates(&self, theirs: &Value) {
        let ours: BTreeSet<[i32; 2]> = (0..self.plan.npair).map(|k| self.geoms(k)).collect();
        let theirs: BTreeSet<[i32; 2]> =
            serde_json::from_value(theirs["candidates"].clone()).unwrap();
        assert_eq!(ours, theirs, "{}: candidate contacts", self.path);
        assert_eq!(ours.len(), self.plan.npair, "{}: repeated", self.path);
    }

    /// Bodies are where their carriers put them.
    fn frames(&self, state: &Value) {
        for (f, &body) in self.plan.frame_body.iter().enumerate() {
            let (pos, quat) = rows::carrier(self.plan, state, body);
            let at: [f64; 3] = self.plan.frame_pos[3 * f..3 * f + 3].try_into().unwrap();
            let x = rows::point(pos, quat, at);
            self.same(&format!("xpos[{f}]"), &x, &numbers(&state["xpos"][f]));
        }
    }

    fn lengths(&self, state: &Value) {
        let (p, q) = (self.plan, numbers(&state["qpos"]));
        let sum = |adr: &[i32], qpos: &[i32], coef: &[f64]| -> Vec<f64> {
            adr.windows(2)
                .map(|w| {
                    (w[0] as usize..w[1] as usize).map(|i| coef[i] * q[qpos[i] as usize]).sum()
                })
                .collect()
        };
        let actuators = sum(&p.act_adr, &p.act_qpos, &p.act_coef);
        self.same("actuator_length", &actuators, &numbers(&state["actuator_length"]));
        let tendons = sum(&p.ten_adr, &p.ten_qpos, &p.ten_coef);
        self.same("ten_length", &tendons, &numbers(&state["tendon_length"]));
    }

    /// Parameters of the contacts of one state; how many there were.
    fn contacts(&self, state: &Value) -> usize {
        let p = self.plan;
        let contacts = state["contacts"].as_array().unwrap();
        let mut hits = vec![0; p.npair];
        for c in contacts {
            let geoms: [i32; 2] = serde_json::from_value(c["geoms"].clone()).unwrap();
            let k = (0..p.npair).find(|k| self.geoms(*k) == geoms).unwrap();
            hits[k] += 1;
            assert!(hits[k] <= p.pair_hits[k], "{}: {geoms:?}", self.path);
            let what = format!("contact of geoms {geoms:?}");
            let soft = soft::packed(&p.pair_soft, k);
            let dim = p.pair_dim[k];
            assert_eq!(Some(i64::from(dim)), c["dim"].as_i64(), "{what}");
            let margin = c["margin"].as_f64().unwrap();
            self.same(&format!("{what}: margin"), &[soft.margin()], &[margin]);
            let mu = &p.pair_mu[5 * k..5 * k + 5];
            self.same(&format!("{what}: mu"), mu, &numbers(&c["friction"]));
            let dist = c["dist"].as_f64().unwrap();
            assert!(dist <= p.pair_reach[k], "{}: {what}: reach", self.path);
            let Some(r) = c.get("R") else { continue };
            let (imp, normal) = (soft.impedance(dist), soft.regularisation(dist));
            for (i, r) in numbers(r).iter().enumerate() {
                let friction = p.elliptic == 1 && i > 0;
                let (k_, b, ours) = if friction {
                    (0.0, p.pair_fricb[k], normal / p.pair_dfri[5 * k + i - 1])
                } else {
                    (soft.k(), soft.b(), normal)
                };
                self.same(&format!("{what}: R[{i}]"), &[ours], &[*r]);
                let theirs = numbers(&c["KBIP"][i]);
                self.same(&format!("{what}: KBI[{i}]"), &[k_, b, imp], &theirs[..3]);
            }
        }
        contacts.len()
    }
}

#[test]
fn robots_constraints_are_what_mujoco_makes_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
        .collect();
    assert!(paths.len() >= 6);
    paths.push("gymnasium".into());
    let Some(answer) = referee(&paths) else {
        return;
    };
    assert!(answer.len() >= paths.len() + 13);
    let mut seen = Seen::default();
    for (path, theirs) in &answer {
        compare(path, theirs, &mut seen);
    }
    assert!(seen.contacts > 1000 && seen.rows > 500, "{seen:?}");
}

#[test]
fn every_feature_is_what_mujoco_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = features::MODELS
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(format!("{name}.xml"));
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    let Some(answer) = referee(&paths) else {
        return;
    };
    let mut seen = Seen::default();
    for (path, theirs) in &answer {
        compare(path, theirs, &mut seen);
    }
    assert!(seen.contacts > 1000 && seen.rows > 1000, "{seen:?}");
    for kind in ["equality", "friction_dof", "friction_tendon", "limit_joint", "limit_tendon"] {
        assert!(seen.kinds.contains(kind), "no {kind}: {seen:?}");
    }
}
