//! Motions of small robots: as they are, broken on purpose, written and read back.

mod broken;
mod file;
mod mended;
mod other;
mod valid;

use super::*;
use crate::rotation::{about, mul};
use crate::{JointKind, mjcf};
use file::{File, table};
use std::path::Path;

/// A trunk on two legs of three joints each, and an arm on one side: no two bodies are at the
/// same place, and its sides differ.
fn walker() -> Model {
    let leg = |side: &str, y: f64| {
        format!(
            r#"<body name="{side}_hip" pos="0 {y} -0.1">
              <joint name="{side}_hip_pitch" axis="0 1 0" range="-1.5 1.5"/>
              <geom type="sphere" size="0.04" contype="0" conaffinity="0"/>
              <body name="{side}_thigh" pos="0 {} -0.08">
                <joint name="{side}_hip_roll" axis="1 0 0" range="-0.8 0.8"/>
                <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03"/>
                <body name="{side}_shin" pos="0 0 -0.25">
                  <joint name="{side}_knee" axis="0 1 0" range="-0.1 2"/>
                  <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.02"/>
                  <geom name="{side}_foot" type="sphere" pos="0 0 -0.25" size="0.04"/>
                </body></body></body>"#,
            0.5 * y
        )
    };
    parse(&format!(
        r#"<body name="trunk" pos="0 0 0.72"><freejoint name="root"/>
          <geom type="box" size="0.08 0.12 0.15" pos="0 0 0.1"/>{}{}
          <body name="arm" pos="0.02 0.15 0.2"><joint name="elbow" axis="0 1 0" range="-2 2"/>
            <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/></body></body>"#,
        leg("left", 0.08),
        leg("right", -0.08)
    ))
}

/// Two hinges on a wall.
fn arm() -> Model {
    parse(
        r#"<body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
          <body name="lower" pos="0.3 0 0"><joint name="slide" type="slide" axis="1 0 0"/>
          <joint name="elbow" axis="0 0 1"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/></body></body>"#,
    )
}

fn parse(body: &str) -> Model {
    let text = format!(
        r#"<mujoco><compiler angle="radian" autolimits="true"/><worldbody>
        <geom name="floor" type="plane" size="5 5 0.1"/>{body}</worldbody></mujoco>"#
    );
    mjcf::parse(Path::new("robot.xml"), text).unwrap()
}

const FRAMES: usize = 80;
const FPS: f64 = 50.0;

/// Positions of the walker's joints at a time (s): steps of half a second.
fn gait(model: &Model, time: f64) -> Vec<f64> {
    let mut qpos = model.qpos0.clone();
    let swing = |rate: f64, shift: f64| (rate * time + shift).sin();
    for (i, joint) in model.joints.iter().enumerate() {
        let at = joint.qpos_adr;
        if joint.kind == JointKind::Free {
            qpos[at..at + 3].copy_from_slice(&[
                0.6 * time,
                0.05 * swing(5.0, 0.3),
                0.7 + 0.01 * swing(9.0, 0.0),
            ]);
            let yaw = about([0.0, 0.0, 1.0], 0.8 + 0.9 * time);
            let pitch = about([0.0, 1.0, 0.0], 0.15 * swing(4.0, 0.7));
            qpos[at + 3..at + 7].copy_from_slice(&mul(yaw, pitch));
        } else {
            let range = joint.range.unwrap_or([-1.0, 1.0]);
            let part = 0.5 + 0.35 * swing(5.0 + 0.7 * i as f64, 0.9 * i as f64);
            qpos[at] = 0.5 * (range[0] + part * (range[1] - range[0]));
        }
    }
    qpos
}

/// A motion of a robot, computed without the reader: velocities are differences.
fn motion(model: &Model, frames: usize, fps: f64) -> Motion {
    let root = model.joints.iter().find(|j| j.kind == JointKind::Free);
    let all: Vec<Vec<f64>> = (0..frames).map(|t| gait(model, t as f64 / fps)).collect();
    let mut motion = Motion {
        name: "made".into(),
        step: 1.0 / fps,
        frames,
        qpos: all.concat(),
        qvel: Vec::new(),
        bodies: Vec::new(),
        notes: Vec::new(),
    };
    for t in 0..frames {
        let (a, b) = (t.saturating_sub(1), (t + 1).min(frames - 1));
        let time = (b - a) as f64 / fps;
        let mut qvel = vec![0.0; model.nv];
        for joint in model.joints.iter().filter(|j| j.is_scalar()) {
            qvel[joint.dof_adr] = (all[b][joint.qpos_adr] - all[a][joint.qpos_adr]) / time;
        }
        if let Some(root) = root {
            let (q, v) = (root.qpos_adr, root.dof_adr);
            for i in 0..3 {
                qvel[v + i] = (all[b][q + i] - all[a][q + i]) / time;
            }
            let quat = |t: usize| [3, 4, 5, 6].map(|i| all[t][q + i]);
            let inner = t.clamp(1, frames - 2);
            let world = differences::turn(quat(inner - 1), quat(inner + 1));
            let body = into_body(quat(t), world.map(|w| w * fps / 2.0));
            qvel[v + 3..v + 6].copy_from_slice(&body);
        }
        motion.bodies.extend(kinematics(model, &all[t], &qvel));
        motion.qvel.extend(qvel);
    }
    motion
}
