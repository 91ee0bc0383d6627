//! Constraints other than contacts: limits, dry friction and general rows.

use super::soft::{self, Soft};
use super::{Case, numbers};
use ostler_sim::model::JointKind;
use ostler_sim::physics::native::tables::RobotTables;
use serde_json::Value;
use std::collections::BTreeSet;

type Vec3 = [f64; 3];
type Quat = [f64; 4];

/// No limit.
const FAR: f64 = 1e29;

impl Case<'_> {
    /// Compares the constraint rows of one state; how many there were.
    pub fn rows(&self, state: &Value, kinds: &mut BTreeSet<String>) -> usize {
        let rows = state["rows"].as_array().unwrap();
        let mut i = 0;
        while i < rows.len() {
            let row = &rows[i];
            let kind = row["kind"].as_str().unwrap();
            let id = row["id"].as_u64().unwrap() as usize;
            kinds.insert(kind.to_string());
            let p = self.plan;
            i += match kind {
                "limit_joint" if self.model.joints[id].kind == JointKind::Ball => {
                    let first = self.model.joints[id].dof_adr as i32;
                    let item = self.item(6, |k| p.item_int[4 * k + 1] == first);
                    self.item_rows(item, state, &rows[i..])
                }
                "limit_joint" => self.joint_limit(id, state, row),
                "friction_dof" => {
                    let k = p.fric_dof.iter().position(|d| *d == id as i32).unwrap();
                    self.loss(p.fric_loss[k], row);
                    self.soft("friction", soft::packed(&p.fric_soft, k), 0.0, row);
                    1
                }
                "friction_tendon" => {
                    let item = self.item(5, |k| p.item_int[4 * k] == id as i32);
                    self.loss(p.row_loss[p.item_row[item] as usize], row);
                    self.item_rows(item, state, &rows[i..])
                }
                "limit_tendon" => {
                    let lower = first_sign(p, id, row) > 0.0;
                    let item = self.item(4, |k| {
                        let bound = p.item_real[16 * k + usize::from(!lower)];
                        p.item_int[4 * k] == id as i32 && bound.abs() < FAR
                    });
                    self.item_rows(item, state, &rows[i..])
                }
                "equality" => {
                    let before = &self.model.equalities[..id];
                    let item = before.iter().filter(|e| e.active).count();
                    self.item_rows(item, state, &rows[i..])
                }
                kind => panic!("{}: {kind}", self.path),
            };
        }
        rows.len()
    }

    /// The item of a kind for which `is` holds.
    fn item(&self, kind: i32, is: impl Fn(usize) -> bool) -> usize {
        (0..self.plan.nitem)
            .find(|k| self.plan.item_kind[*k] == kind && is(*k))
            .unwrap_or_else(|| panic!("{}: no item of kind {kind}", self.path))
    }

    fn loss(&self, ours: f64, row: &Value) {
        let theirs = row["loss"].as_f64().unwrap();
        self.same("frictionloss", &[ours], &[theirs]);
    }

    fn soft(&self, what: &str, ours: Soft, pos: f64, row: &Value) {
        let theirs = numbers(&row["KBIP"]);
        let kbi = [ours.k(), ours.b(), ours.impedance(pos)];
        self.same(&format!("{what}: KBI"), &kbi, &theirs[..3]);
        let r = row["R"].as_f64().unwrap();
        self.same(&format!("{what}: R"), &[ours.regularisation(pos) / r], &[1.0]);
        let margin = row["margin"].as_f64().unwrap();
        self.same(&format!("{what}: margin"), &[ours.margin()], &[margin]);
    }

    fn joint_limit(&self, id: usize, state: &Value, row: &Value) -> usize {
        let (p, joint) = (self.plan, &self.model.joints[id]);
        let dof = joint.dof_adr;
        let lower = numbers(&row["J"])[dof] > 0.0;
        let k = (0..p.nlim)
            .find(|k| {
                let bound = if lower { p.lim_lo[*k] } else { p.lim_hi[*k] };
                p.lim_dof[*k] == dof as i32 && bound.abs() < FAR
            })
            .unwrap();
        let q = numbers(&state["qpos"])[p.lim_qpos[k] as usize];
        let pos = if lower { q - p.lim_lo[k] } else { p.lim_hi[k] - q };
        self.same("limit", &[pos], &[row["pos"].as_f64().unwrap()]);
        self.soft(&joint.name, soft::packed(&p.lim_soft, k), pos, row);
        1
    }

    /// Compares all rows of an item with the first of `rows`; how many they are.
    fn item_rows(&self, item: usize, state: &Value, rows: &[Value]) -> usize {
        let p = self.plan;
        let what = format!("item {item} of kind {}", p.item_kind[item]);
        let first = p.item_row[item] as usize;
        let end = p.item_row.get(item + 1).map_or(p.nrow, |r| *r as usize);
        let lower = match p.item_kind[item] {
            4 => first_sign(p, p.item_int[4 * item] as usize, &rows[0]) > 0.0,
            _ => true,
        };
        let ours = positions(p, item, lower, state);
        let theirs: Vec<f64> =
            rows[..end - first].iter().map(|r| r["pos"].as_f64().unwrap()).collect();
        self.same(&format!("{what}: pos"), &ours, &theirs);
        let norm = match p.item_kind[item] {
            2 | 3 => ours.iter().map(|x| x * x).sum::<f64>().sqrt(),
            _ => ours[0],
        };
        for (r, row) in (first..end).zip(rows) {
            self.soft(&what, soft::packed(&p.row_soft, r), norm, row);
            let dofs = &p.row_dof[p.row_adr[r] as usize..p.row_adr[r + 1] as usize];
            for (d, j) in numbers(&row["J"]).iter().enumerate() {
                let known = dofs.contains(&(d as i32));
                assert!(*j == 0.0 || known, "{}: {what}: J[{d}]", self.path);
            }
        }
        end - first
    }
}

/// Sign of the tendon's Jacobian in a row: +1 for the lower limit.
fn first_sign(p: &RobotTables, tendon: usize, row: &Value) -> f64 {
    let at = p.ten_adr[tendon] as usize;
    numbers(&row["J"])[p.ten_dof[at] as usize] * p.ten_coef[at].signum()
}

/// Positions of an item's rows, by the formulas that `lower/rows.rs` documents.
fn positions(p: &RobotTables, item: usize, lower: bool, state: &Value) -> Vec<f64> {
    let ints = &p.item_int[4 * item..4 * item + 4];
    let reals = &p.item_real[16 * item..16 * item + 16];
    let q = numbers(&state["qpos"]);
    let length = |t: i32| -> f64 {
        (p.ten_adr[t as usize] as usize..p.ten_adr[t as usize + 1] as usize)
            .map(|i| p.ten_coef[i] * q[p.ten_qpos[i] as usize])
            .sum()
    };
    let coupled = |value: &dyn Fn(i32) -> f64| {
        let d = if ints[1] < 0 { 0.0 } else { value(ints[1]) - reals[6] };
        let polynomial = (0..5).map(|k| reals[k] * d.powi(k as i32)).sum::<f64>();
        vec![value(ints[0]) - reals[5] - polynomial]
    };
    let v3 = |at: usize| -> Vec3 { reals[at..at + 3].try_into().unwrap() };
    let v4 = |at: usize| -> Quat { reals[at..at + 4].try_into().unwrap() };
    let anchored = || {
        let (p1, q1) = carrier(p, state, ints[0]);
        let (p2, q2) = carrier(p, state, ints[1]);
        let (x1, x2) = (point(p1, q1, v3(0)), point(p2, q2, v3(3)));
        ([0, 1, 2].map(|k| x1[k] - x2[k]).to_vec(), q1, q2)
    };
    match p.item_kind[item] {
        0 => coupled(&|adr| q[adr as usize]),
        1 => coupled(&length),
        2 => anchored().0,
        3 => {
            let (mut rows, q1, q2) = anchored();
            let [w, x, y, z] = mul(q2, v4(10));
            let e = mul([w, -x, -y, -z], mul(q1, v4(6)));
            rows.extend(e[1..].iter().map(|x| reals[14] * x));
            rows
        }
        4 if lower => vec![length(ints[0]) - reals[0]],
        4 => vec![reals[1] - length(ints[0])],
        6 => {
            let quat = &q[ints[0] as usize..ints[0] as usize + 4];
            let sine = quat[1..].iter().map(|x| x * x).sum::<f64>().sqrt();
            vec![reals[0] - 2.0 * sine.atan2(quat[0].abs())]
        }
        _ => vec![0.0],
    }
}

/// Pose of a moving body, or of the world (-1), from MuJoCo's poses.
pub fn carrier(p: &RobotTables, state: &Value, body: i32) -> (Vec3, Quat) {
    if body < 0 {
        return ([0.0; 3], [1.0, 0.0, 0.0, 0.0]);
    }
    // The first frame that it carries is its own.
    let f = p.frame_body.iter().position(|b| *b == body).unwrap();
    (
        numbers(&state["xpos"][f]).try_into().unwrap(),
        numbers(&state["xquat"][f]).try_into().unwrap(),
    )
}

/// A point of a frame, in the world.
pub fn point(pos: Vec3, quat: Quat, at: Vec3) -> Vec3 {
    let q = nalgebra::UnitQuaternion::new_normalize(nalgebra::Quaternion::new(
        quat[0], quat[1], quat[2], quat[3],
    ));
    let turned = q * nalgebra::Vector3::from(at);
    [0, 1, 2].map(|k| pos[k] + turned[k])
}

fn mul(a: Quat, b: Quat) -> Quat {
    let q = nalgebra::Quaternion::new(a[0], a[1], a[2], a[3])
        * nalgebra::Quaternion::new(b[0], b[1], b[2], b[3]);
    [q.w, q.i, q.j, q.k]
}
