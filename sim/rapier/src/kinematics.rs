//! Where the bodies are, from generalised positions and velocities.
//!
//! The formulas are MuJoCo's `mj_kinematics` (Computation, "Forward kinematics"):
//! the joints of a body act in order, each on the frame the previous ones left. The
//! kernels have the same, lane by lane, for native worlds (`sim/kernels/env/frames.cuh`);
//! rapier's worlds are stepped one by one, and a build without rapier does not have this.

use ostler_base::math::{normalized, sin_cos};
use ostler_model::{JointKind, Model};

type V3 = [f32; 3];
type Q4 = [f32; 4];

/// Pose and velocity of a body's frame, in the world.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Frame {
    /// Origin (m).
    pub pos: V3,
    /// Orientation (w, x, y, z).
    pub quat: Q4,
    /// Velocity of the origin (m/s).
    pub lin: V3,
    /// Angular velocity (rad/s).
    pub ang: V3,
}

#[derive(Debug, Clone)]
pub(crate) struct Joint {
    pub kind: JointKind,
    pub pos: V3,
    pub axis: V3,
    pub reference: f32,
    pub qpos: usize,
    pub dof: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub parent: usize,
    pub pos: V3,
    pub quat: Q4,
    pub joints: std::ops::Range<usize>,
}

/// The parts of a model that kinematics needs, in single precision.
#[derive(Debug, Clone)]
pub(crate) struct Kinematics {
    pub bodies: Vec<Body>,
    pub joints: Vec<Joint>,
}

impl Kinematics {
    pub(crate) fn new(model: &Model) -> Self {
        let v3 = |v: [f64; 3]| v.map(|x| x as f32);
        Self {
            bodies: model
                .bodies
                .iter()
                .map(|b| Body {
                    parent: b.parent,
                    pos: v3(b.pos),
                    quat: normalized(b.quat.map(|x| x as f32)),
                    joints: b.joints.clone(),
                })
                .collect(),
            joints: model
                .joints
                .iter()
                .map(|j| Joint {
                    kind: j.kind,
                    pos: v3(j.pos),
                    axis: v3(j.axis),
                    reference: j.reference as f32,
                    qpos: j.qpos_adr,
                    dof: j.dof_adr,
                })
                .collect(),
        }
    }

    /// Fills `out` (one frame per body) from `qpos (nq)` and `qvel (nv)`.
    pub(crate) fn frames(&self, qpos: &[f32], qvel: &[f32], out: &mut [Frame]) {
        for (i, body) in self.bodies.iter().enumerate() {
            let mut f = if i == 0 {
                Frame { quat: [1.0, 0.0, 0.0, 0.0], ..Frame::default() }
            } else {
                let p = out[body.parent];
                let offset = rotate(p.quat, body.pos);
                Frame {
                    pos: add(p.pos, offset),
                    quat: mul(p.quat, body.quat),
                    lin: add(p.lin, cross(p.ang, offset)),
                    ang: p.ang,
                }
            };
            for joint in &self.joints[body.joints.clone()] {
                joint.apply(qpos, qvel, &mut f);
            }
            f.quat = normalized(f.quat);
            out[i] = f;
        }
    }
}

impl Joint {
    fn apply(&self, qpos: &[f32], qvel: &[f32], f: &mut Frame) {
        let (q, v) = (&qpos[self.qpos..], &qvel[self.dof..]);
        match self.kind {
            JointKind::Free => {
                f.pos = [q[0], q[1], q[2]];
                f.quat = normalized([q[3], q[4], q[5], q[6]]);
                f.lin = [v[0], v[1], v[2]];
                f.ang = rotate(f.quat, [v[3], v[4], v[5]]);
            }
            JointKind::Slide => {
                let axis = rotate(f.quat, self.axis);
                let shift = scale(axis, q[0] - self.reference);
                f.pos = add(f.pos, shift);
                f.lin = add(add(f.lin, cross(f.ang, shift)), scale(axis, v[0]));
            }
            JointKind::Hinge => {
                let (sin, cos) = sin_cos(0.5 * (q[0] - self.reference));
                let turn = [cos, sin * self.axis[0], sin * self.axis[1], sin * self.axis[2]];
                let rate = scale(rotate(f.quat, self.axis), v[0]);
                self.turn(f, turn, rate);
            }
            JointKind::Ball => {
                let turn = normalized([q[0], q[1], q[2], q[3]]);
                let rate = rotate(mul(f.quat, turn), [v[0], v[1], v[2]]);
                self.turn(f, turn, rate);
            }
        }
    }

    /// Turns the frame about the joint's anchor.
    fn turn(&self, f: &mut Frame, turn: Q4, rate: V3) {
        let to_anchor = rotate(f.quat, self.pos);
        let anchor_vel = add(f.lin, cross(f.ang, to_anchor));
        f.ang = add(f.ang, rate);
        f.quat = mul(f.quat, turn);
        let back = scale(rotate(f.quat, self.pos), -1.0);
        f.pos = add(add(f.pos, to_anchor), back);
        f.lin = add(anchor_vel, cross(f.ang, back));
    }
}

pub(crate) fn add(a: V3, b: V3) -> V3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn scale(a: V3, s: f32) -> V3 {
    a.map(|x| x * s)
}

pub(crate) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Hamilton product.
pub(crate) fn mul(a: Q4, b: Q4) -> Q4 {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// `v` turned by the unit quaternion `q`.
pub(crate) fn rotate(q: Q4, v: V3) -> V3 {
    let u = [q[1], q[2], q[3]];
    let t = scale(cross(u, v), 2.0);
    add(v, add(scale(t, q[0]), cross(u, t)))
}
