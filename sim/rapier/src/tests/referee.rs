//! Against MuJoCo itself; skipped where there is none, unless it is required.

use super::{wiggle, worlds_with};
use ostler_engine::config::SimConfig;
use ostler_model::{JointKind, Model, mjcf};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Accelerations at a state, without contacts and limits, and poses and velocities
/// of the bodies.
const SCRIPT: &str = r#"
import json, sys, numpy as np, mujoco
path, cases = sys.argv[1], json.loads(sys.argv[2])
m = mujoco.MjModel.from_xml_path(path)
m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
out = []
for c in cases:
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = c["qpos"], c["qvel"], c["ctrl"]
    mujoco.mj_forward(m, d)
    vel = np.zeros(6)
    lin, ang = [], []
    for b in range(m.nbody):
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_XBODY, b, vel, 0)
        ang += list(vel[:3]); lin += list(vel[3:])
    out.append(dict(qacc=list(d.qacc), pos=list(d.xpos.ravel()), quat=list(d.xquat.ravel()),
                    lin=lin, ang=ang, force=list(d.actuator_force)))
print(json.dumps(out))
"#;

fn robot(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../configs/robots").join(name)
}

/// States in the air, inside all ranges.
fn cases(model: &Model, n: usize) -> Vec<serde_json::Value> {
    (0..n)
        .map(|id| {
            let mut qpos = model.qpos0.clone();
            let mut qvel = vec![0.0; model.nv];
            for j in &model.joints {
                let at = j.qpos_adr;
                let w = |k: usize| f64::from(wiggle(id, 17, at + k));
                match j.kind {
                    JointKind::Free => {
                        for k in 0..3 {
                            qpos[at + k] += w(k);
                        }
                        for k in 3..7 {
                            qpos[at + k] += 0.4 * w(k);
                        }
                        let norm = qpos[at + 3..at + 7].iter().map(|x| x * x).sum::<f64>().sqrt();
                        for k in 3..7 {
                            qpos[at + k] /= norm;
                        }
                    }
                    JointKind::Ball => unreachable!("no robot has one"),
                    JointKind::Slide | JointKind::Hinge => {
                        qpos[at] = match j.range {
                            Some([lo, hi]) => 0.5 * (lo + hi) + 0.3 * (hi - lo) * w(0),
                            None => qpos[at] + 0.5 * w(0),
                        };
                    }
                }
                for k in 0..j.kind.nv() {
                    qvel[j.dof_adr + k] = f64::from(wiggle(id, 23, j.dof_adr + k));
                }
            }
            let ctrl: Vec<f64> = (0..model.nu()).map(|u| f64::from(wiggle(id, 29, u))).collect();
            // The engine's inputs are single precision; MuJoCo gets the same.
            let single = |v: Vec<f64>| v.into_iter().map(|x| x as f32).collect::<Vec<_>>();
            serde_json::json!({"qpos": single(qpos), "qvel": single(qvel), "ctrl": single(ctrl)})
        })
        .collect()
}

fn floats(v: &serde_json::Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// Largest relative error of the accelerations, and the largest of the rest.
fn compare(python: &Path, name: &str, dt: f64) -> (f64, f64) {
    let path = robot(name);
    let mut model = mjcf::load(&path).unwrap();
    for g in &mut model.geoms {
        (g.contype, g.conaffinity) = (0, 0);
    }
    for j in &mut model.joints {
        j.range = None;
    }
    let states = cases(&mjcf::load(&path).unwrap(), 8);
    // MuJoCo leaves a log where it runs.
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .current_dir(folder.path())
        .args(["-c", SCRIPT])
        .arg(&path)
        .arg(serde_json::to_string(&states).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let want: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();

    let config = SimConfig { dt, ..SimConfig::default() };
    let mut w = worlds_with(model.clone(), 1, 1, &config);
    let (mut worst, mut kinematic) = (0.0_f64, 0.0_f64);
    let apart = |got: &[f32], want: &[f32]| {
        assert_eq!(got.len(), want.len());
        let scale = want.iter().fold(1.0_f32, |a, x| a.max(x.abs()));
        let gap = got.iter().zip(want).fold(0.0_f32, |a, (g, w)| a.max((g - w).abs()));
        f64::from(gap / scale)
    };
    for (state, want) in states.iter().zip(&want) {
        let (qpos, qvel) = (floats(&state["qpos"]), floats(&state["qvel"]));
        w.reset(&[1], &qpos, &qvel);
        let s = w.state();
        kinematic = kinematic
            .max(apart(&s.body_pos, &floats(&want["pos"])))
            .max(apart(&s.body_quat, &floats(&want["quat"])))
            .max(apart(&s.body_lin_vel, &floats(&want["lin"])))
            .max(apart(&s.body_ang_vel, &floats(&want["ang"])));
        w.step(&floats(&state["ctrl"]), 1);
        let s = w.state();
        assert_eq!(s.fault, [0]);
        kinematic = kinematic.max(apart(&s.actuator_force, &floats(&want["force"])));
        let qacc: Vec<f32> =
            s.qvel.iter().zip(&qvel).map(|(after, before)| (after - before) / dt as f32).collect();
        worst = worst.max(apart(&qacc, &floats(&want["qacc"])));
    }
    (worst, kinematic)
}

#[test]
fn smooth_dynamics_and_kinematics_are_mujocos() {
    let Some(python) = crate::test_support::referee::referee_python() else {
        return;
    };
    for (name, tolerance) in [
        ("cartpole.xml", 1e-3),
        ("double_pendulum.xml", 1e-3),
        ("hopper.xml", 1e-3),
        ("half_cheetah.xml", 5e-3),
        ("ant.xml", 1e-3),
        ("quadruped.xml", 1e-2),
    ] {
        let (dynamics, kinematics) = compare(&python, name, 1e-4);
        println!("{name}: accelerations {dynamics:.1e}, the rest {kinematics:.1e}");
        assert!(dynamics < tolerance, "{name}: accelerations differ by {dynamics}");
        assert!(kinematics < 1e-5, "{name}: the rest differs by {kinematics}");
    }
    // Dampers and springs are implicit here and explicit there: the difference goes
    // with the time step.
    for name in ["half_cheetah.xml", "quadruped.xml"] {
        let [coarse, fine] = [4e-4, 1e-4].map(|dt| compare(&python, name, dt).0);
        println!("{name}: {coarse:.1e} at 0.4 ms, {fine:.1e} at 0.1 ms");
        assert!(fine < 0.5 * coarse, "{name}: {coarse} {fine}");
    }
}
