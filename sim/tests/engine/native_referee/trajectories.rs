//! A thousand steps under recorded controls; energy and momentum of closed systems.

use super::engine::{Findings, PRECISIONS, due, evaluator, files};
use super::reference::{gymnasium, mujoco};
use ostler_sim::Model;
use ostler_sim::model::mjcf;
use ostler_sim::npz::{Expected, Npz, NpzWriter};
use ostler_sim::physics::evaluate::{Precision, States};
use ostler_sim::physics::native::Evaluator;
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::residual::Quantiles;
use serde_json::json;
use std::path::Path;

const TRAJECTORIES: usize = 8;
const STEPS: usize = 1000;
const HOLD: usize = 5;

/// Arrays of a file without checks of their number of rows.
fn array(file: &mut Npz, name: &str, columns: usize) -> Vec<f64> {
    let expected = Expected { rows: None, columns: Some(columns), label: "n" };
    file.finite(name, expected).unwrap_or_else(|e| panic!("{e}")).0
}

/// States that are stepped together.
struct Walk {
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    act: Vec<f64>,
}

impl Walk {
    fn step(&mut self, engine: &Evaluator<'_>, ctrl: &[f64]) -> Result<(), String> {
        let states =
            States { qpos: &self.qpos, qvel: &self.qvel, ctrl, act: &self.act, varied: &[] };
        let next = engine.evaluate(&states, None).map_err(|e| e.to_string())?;
        (self.qpos, self.qvel, self.act) = (next.qpos_next, next.qvel_next, next.act_next);
        Ok(())
    }
}

/// Relative distance of positions per control row, `[B, S, nq]` to `[S]`: of the
/// trajectory in the middle, since a single one may meet the floor a step later.
fn distances(a: &[f64], b: &[f64], nq: usize) -> Vec<f64> {
    let rows = STEPS / HOLD;
    let mut all = vec![Vec::new(); rows];
    for (i, (x, y)) in a.chunks_exact(nq).zip(b.chunks_exact(nq)).enumerate() {
        let gaps = x.iter().zip(y).map(|(p, q)| (p - q).abs() / q.abs().max(1.0));
        all[i % rows].push(gaps.fold(0.0_f64, f64::max));
    }
    all.into_iter().map(|gaps| Quantiles::of(gaps).median).collect()
}

/// Our path beside MuJoCo's: `[B, S, nq]`.
fn path(model: &Model, precision: Precision, file: &mut Npz) -> Result<Vec<f64>, String> {
    let (nq, nu, rows) = (model.nq, model.nu(), STEPS / HOLD);
    let ctrl = array(file, "ctrl", nu);
    let engine = evaluator(model, precision)?;
    let mut walk = Walk {
        qpos: array(file, "qpos", nq),
        qvel: array(file, "qvel", model.nv),
        act: array(file, "act", model.na),
    };
    let mut path = vec![0.0; TRAJECTORIES * rows * nq];
    for row in 0..rows {
        let controls: Vec<f64> = (0..TRAJECTORIES)
            .flat_map(|t| ctrl[(t * rows + row) * nu..(t * rows + row + 1) * nu].to_vec())
            .collect();
        for _ in 0..HOLD {
            walk.step(&engine, &controls)?;
        }
        for (t, qpos) in walk.qpos.chunks_exact(nq).enumerate() {
            path[(t * rows + row) * nq..(t * rows + row + 1) * nq].copy_from_slice(qpos);
        }
    }
    Ok(path)
}

fn follow(mujoco: &mut MuJoCo, findings: &mut Findings, name: &str, file: &Path) {
    let model = mjcf::load(file).unwrap_or_else(|e| panic!("{e}"));
    if !due(name, &model) {
        return;
    }
    let out = mujoco.scratch("trajectories.npz");
    mujoco
        .ask(&json!({
            "op": "trajectories", "model": file, "out": out, "trajectories": TRAJECTORIES,
            "steps": STEPS, "hold": HOLD, "seed": 11,
        }))
        .unwrap_or_else(|e| panic!("{e}"));
    let mut npz = Npz::open(&out).unwrap();
    let theirs = array(&mut npz, "path", model.nq);
    let beside = array(&mut npz, "beside", model.nq);
    let ulp = distances(&beside, &theirs, model.nq);
    for (label, precision) in PRECISIONS {
        let ours = match path(&model, precision, &mut npz) {
            Ok(ours) => ours,
            Err(error) => {
                findings.add(name, label, &[error]);
                continue;
            }
        };
        let apart = distances(&ours, &theirs, model.nq);
        let at = |steps: usize| steps / HOLD - 1;
        print!("{name} {label}: apart after");
        for steps in [10, 50, 100, 200, 500, 1000] {
            print!("  {steps}: {:.0e} ({:.0e})", apart[at(steps)], ulp[at(steps)]);
        }
        println!("  (MuJoCo one float32 ulp away)");
        // Double stays below what a float32 ulp becomes; single within what a few
        // hundred of them do, until chaos has made them all as large as the robot.
        let slack = match precision {
            Precision::F64 => 1.0,
            Precision::F32 => 1e3,
        };
        // Distant trajectories may come near again by chance: keep the largest distance so far.
        let mut largest = 1e-7_f64;
        let beyond = apart.iter().zip(&ulp).position(|(a, u)| {
            largest = largest.max(*u);
            largest <= 1e-3 && *a > slack * largest
        });
        if let Some(row) = beyond {
            let steps = (row + 1) * HOLD;
            let (a, u) = (apart[row], ulp[row]);
            let what = format!("{a:.1e} apart after {steps} steps, an ulp becomes {u:.1e}");
            findings.add(name, label, &[what]);
        }
    }
}

#[test]
fn shipped_robots_go_where_mujocos_go() {
    let Some(mut mujoco) = mujoco() else { return };
    let mut findings = Findings::default();
    for (name, file) in files("configs/robots") {
        follow(&mut mujoco, &mut findings, &name, &file);
    }
    findings.finish();
}

#[test]
fn gymnasiums_robots_go_where_mujocos_go() {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = gymnasium(&mut mujoco);
    let mut findings = Findings::default();
    for name in ["swimmer", "walker2d", "humanoid"] {
        let file = folder.join(format!("{name}.xml"));
        follow(&mut mujoco, &mut findings, name, &file);
    }
    findings.finish();
}

/// Energy, momentum and angular momentum of states.
fn invariants(mujoco: &mut MuJoCo, model: &Model, file: &Path, states: &[Walk]) -> Vec<[f64; 7]> {
    let (given, out) = (mujoco.scratch("given.npz"), mujoco.scratch("invariants.npz"));
    let all = |of: &dyn Fn(&Walk) -> &[f64]| -> Vec<f64> {
        states.iter().flat_map(|w| of(w).to_vec()).collect()
    };
    let (qpos, qvel) = (all(&|w| &w.qpos), all(&|w| &w.qvel));
    let mut npz = NpzWriter::create(&given).unwrap();
    npz.array("qpos", &[qpos.len() / model.nq, model.nq], &qpos).unwrap();
    npz.array("qvel", &[qvel.len() / model.nv, model.nv], &qvel).unwrap();
    npz.finish().unwrap();
    mujoco
        .ask(&json!({"op": "invariants", "model": file, "states": given, "out": out}))
        .unwrap_or_else(|e| panic!("{e}"));
    let mut npz = Npz::open(&out).unwrap();
    let scalar = Expected { rows: None, columns: None, label: "" };
    let energy = npz.finite("energy", scalar).unwrap().0;
    let (momentum, spin) = (array(&mut npz, "momentum", 3), array(&mut npz, "spin", 3));
    (0..energy.len())
        .map(|i| {
            let (p, l) = (&momentum[3 * i..], &spin[3 * i..]);
            [energy[i], p[0], p[1], p[2], l[0], l[1], l[2]]
        })
        .collect()
}

#[test]
fn closed_systems_keep_energy_and_momentum_as_mujocos_do() {
    let Some(mut mujoco) = mujoco() else { return };
    for (name, file) in files("tests/referee/closed") {
        let model = mjcf::load(&file).unwrap_or_else(|e| panic!("{e}"));
        let out = mujoco.scratch("trajectories.npz");
        mujoco
            .ask(&json!({
                "op": "trajectories", "model": file, "out": out, "trajectories": TRAJECTORIES,
                "steps": STEPS, "hold": HOLD, "seed": 3,
            }))
            .unwrap_or_else(|e| panic!("{e}"));
        let mut npz = Npz::open(&out).unwrap();
        let start = || Walk { qpos: Vec::new(), qvel: Vec::new(), act: Vec::new() };
        for (label, precision) in PRECISIONS {
            let mut walk = Walk {
                qpos: array(&mut npz, "qpos", model.nq),
                qvel: array(&mut npz, "qvel", model.nv),
                act: Vec::new(),
            };
            let first = invariants(
                &mut mujoco,
                &model,
                &file,
                &[Walk { qpos: walk.qpos.clone(), qvel: walk.qvel.clone(), ..start() }],
            );
            let engine = evaluator(&model, precision).unwrap();
            for _ in 0..STEPS {
                walk.step(&engine, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            let last = invariants(&mut mujoco, &model, &file, &[walk]);
            let floating = model.joints[0].kind == ostler_sim::model::JointKind::Free;
            let scale = first.iter().flatten().fold(1.0_f64, |m, x| m.max(x.abs()));
            let drift = |range: std::ops::Range<usize>| {
                let pairs = first.iter().zip(&last);
                pairs.fold(0.0_f64, |m, (a, b)| {
                    range.clone().fold(m, |m, i| m.max((a[i] - b[i]).abs() / scale))
                })
            };
            let (energy, momentum) = (drift(0..1), drift(1..7));
            println!("{name} {label}: energy drifts by {energy:.1e}, momenta by {momentum:.1e}");
            // RK4's own error, then rounding.
            let (allowed, kept) = match precision {
                Precision::F64 => (1e-6, 1e-6),
                Precision::F32 => (1e-3, 1e-3),
            };
            assert!(energy < allowed, "{name} {label}: energy drifts by {energy}");
            assert!(!floating || momentum < kept, "{name} {label}: momenta drift by {momentum}");
        }
    }
}
