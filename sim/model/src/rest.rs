//! Where everything is, and how heavy it feels, in one pose.
//!
//! MuJoCo's compiler fills some fields from the initial pose: anchors of equality
//! constraints, rest lengths of tendons, stiffness from `springdamper`, damping from
//! `dampratio`. Dense and in double precision: it runs once per model.

use super::rotation::{Pose, about, add, cross, matrix, mul, normalized, rotate};
use super::{JointKind, Model, Vec3};
use nalgebra::{Cholesky, DMatrix, Dyn};

/// MuJoCo's smallest divisor.
pub const MIN_VALUE: f64 = 1e-15;

/// Most degrees of freedom for which the mass matrix is made.
const MAX_DENSE: u64 = 2048;
/// Most products for it and the systems solved with it.
const MAX_PRODUCTS: u64 = 10_000_000_000;

/// A degree of freedom in the world: a unit of its velocity turns its body by `turn`
/// and moves the point that lies at `at` by `shift`.
#[derive(Debug, Clone, Copy)]
struct Dof {
    body: usize,
    at: Vec3,
    turn: Vec3,
    shift: Vec3,
}

/// The model in one pose.
pub struct Rest<'a> {
    pub(super) model: &'a Model,
    /// Body frames in the world.
    pub bodies: Vec<Pose>,
    dofs: Vec<Dof>,
}

const AXES: [Vec3; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

impl<'a> Rest<'a> {
    /// The model in the pose `qpos (nq)`.
    pub fn new(model: &'a Model, qpos: &[f64]) -> Self {
        let mut bodies = vec![Pose::IDENTITY; model.bodies.len()];
        let mut dofs = Vec::with_capacity(model.nv);
        for (b, body) in model.bodies.iter().enumerate().skip(1) {
            let parent = bodies[body.parent];
            let mut pose = parent.then(Pose { pos: body.pos, quat: body.quat });
            let first = dofs.len();
            for joint in &model.joints[body.joints.clone()] {
                let q = &qpos[joint.qpos_adr..];
                let anchor = pose.point(joint.pos);
                let axis = rotate(pose.quat, joint.axis);
                let moved = q[0] - model.qpos0[joint.qpos_adr];
                let slide = |shift: Vec3| Dof { body: b, at: [0.0; 3], turn: [0.0; 3], shift };
                let hinge = |at: Vec3, turn: Vec3| Dof { body: b, at, turn, shift: [0.0; 3] };
                match joint.kind {
                    JointKind::Free => {
                        pose.pos = [q[0], q[1], q[2]];
                        pose.quat =
                            normalized([q[3], q[4], q[5], q[6]]).unwrap_or(Pose::IDENTITY.quat);
                        dofs.extend(AXES.map(slide));
                        // The axes turn with the body: set below.
                        dofs.extend(AXES.map(|a| hinge(pose.pos, a)));
                    }
                    JointKind::Ball => {
                        let turn =
                            normalized([q[0], q[1], q[2], q[3]]).unwrap_or(Pose::IDENTITY.quat);
                        pose.quat = mul(pose.quat, turn);
                        dofs.extend(AXES.map(|a| hinge(anchor, a)));
                    }
                    JointKind::Slide => {
                        pose.pos = add(pose.pos, axis.map(|a| moved * a));
                        dofs.push(slide(axis));
                    }
                    JointKind::Hinge => {
                        pose.quat = mul(pose.quat, about(joint.axis, moved));
                        dofs.push(hinge(anchor, axis));
                    }
                }
                if joint.kind != JointKind::Slide && joint.kind != JointKind::Free {
                    let arm = rotate(pose.quat, joint.pos);
                    pose.pos = [0, 1, 2].map(|i| anchor[i] - arm[i]);
                }
            }
            pose.quat = normalized(pose.quat).unwrap_or(Pose::IDENTITY.quat);
            let mut d = first;
            for joint in &model.joints[body.joints.clone()] {
                let turning = match joint.kind {
                    JointKind::Free => d + 3..d + 6,
                    JointKind::Ball => d..d + 3,
                    _ => d..d,
                };
                for dof in &mut dofs[turning] {
                    dof.turn = rotate(pose.quat, dof.turn);
                }
                d += joint.kind.nv();
            }
            bodies[b] = pose;
        }
        Self { model, bodies, dofs }
    }

    /// The model with its bodies at these places; nothing is known of how they move.
    pub fn posed(model: &'a Model, bodies: Vec<Pose>) -> Self {
        Self { model, bodies, dofs: Vec::new() }
    }

    /// How a point of a body moves per degree of freedom: columns (velocity of the
    /// point, angular velocity) for the degrees of freedom that move it.
    pub fn jacobian(
        &self,
        mut body: usize,
        point: Vec3,
    ) -> impl Iterator<Item = (usize, Vec3, Vec3)> + '_ {
        let mut joints = Vec::new();
        while body > 0 {
            joints.extend(self.model.bodies[body].joints.clone().rev());
            body = self.model.bodies[body].parent;
        }
        let joints = joints.into_iter().rev().map(|j| &self.model.joints[j]);
        let dofs = joints.flat_map(|j| j.dof_adr..j.dof_adr + j.kind.nv());
        dofs.map(move |i| {
            let d = &self.dofs[i];
            let arm = [0, 1, 2].map(|k| point[k] - d.at[k]);
            (i, add(d.shift, cross(d.turn, arm)), d.turn)
        })
    }

    /// How fast every body is at `qvel (nv)`: the linear velocity of its frame's origin and its
    /// angular velocity, in the world.
    pub fn velocities(&self, qvel: &[f64]) -> Vec<[Vec3; 2]> {
        // Of each body the velocity of that point of it which is at the world's origin, and its
        // angular velocity: a child has its parent's, and what its own joints add.
        let mut twists = vec![[[0.0; 3]; 2]; self.bodies.len()];
        for (b, body) in self.model.bodies.iter().enumerate().skip(1) {
            let [mut linear, mut angular] = twists[body.parent];
            for joint in &self.model.joints[body.joints.clone()] {
                let own = joint.dof_adr..joint.dof_adr + joint.kind.nv();
                for (d, speed) in self.dofs[own.clone()].iter().zip(&qvel[own]) {
                    let shift = add(d.shift, cross(d.at, d.turn));
                    linear = add(linear, shift.map(|x| speed * x));
                    angular = add(angular, d.turn.map(|x| speed * x));
                }
            }
            twists[b] = [linear, angular];
        }
        let at = |(pose, [linear, angular]): (&Pose, [Vec3; 2])| {
            [add(linear, cross(angular, pose.pos)), angular]
        };
        self.bodies.iter().zip(twists).map(at).collect()
    }

    /// The mass matrix `(nv, nv)`. As in MuJoCo a tendon's inertia couples only joints
    /// of which one carries the other.
    pub fn mass_matrix(&self) -> DMatrix<f64> {
        let nv = self.model.nv;
        let mut mass = DMatrix::zeros(nv, nv);
        for (b, body) in self.model.bodies.iter().enumerate() {
            if body.mass == 0.0 && body.inertia == [0.0; 3] {
                continue;
            }
            let frame = self.bodies[b].then(Pose { pos: body.ipos, quat: body.iquat });
            let axes = matrix(frame.quat);
            // Velocity of the centre and momentum-like weights, six numbers per column.
            let columns: Vec<_> = self
                .jacobian(b, frame.pos)
                .map(|(i, v, w)| {
                    let local = [0, 1, 2].map(|k| (0..3).map(|r| axes[r][k] * w[r]).sum::<f64>());
                    (i, v, local)
                })
                .collect();
            for (i, v, w) in &columns {
                for (j, x, y) in &columns {
                    mass[(*i, *j)] += (0..3)
                        .map(|k| body.mass * v[k] * x[k] + body.inertia[k] * w[k] * y[k])
                        .sum::<f64>();
                }
            }
        }
        for joint in &self.model.joints {
            for d in joint.dof_adr..joint.dof_adr + joint.kind.nv() {
                mass[(d, d)] += joint.armature;
            }
        }
        for (t, tendon) in self.model.tendons.iter().enumerate() {
            if tendon.armature != 0.0 {
                let row = self.tendon_jacobian(t);
                let felt: Vec<usize> = (0..row.len()).filter(|i| row[*i] != 0.0).collect();
                for &i in &felt {
                    for &j in &felt {
                        if self.above(i, j) || self.above(j, i) {
                            mass[(i, j)] += tendon.armature * row[i] * row[j];
                        }
                    }
                }
            }
        }
        mass
    }

    /// True if degree of freedom `i` moves the body of `j`.
    fn above(&self, i: usize, j: usize) -> bool {
        let (root, mut body) = (self.dofs[i].body, self.dofs[j].body);
        while body > root {
            body = self.model.bodies[body].parent;
        }
        body == root
    }

    /// Whether the mass matrix and `solves` solutions with it take seconds at most. A
    /// kilobyte can describe a robot for which they take hours.
    pub fn affordable(&self, solves: usize) -> bool {
        let nv = self.model.nv as u64;
        let mut chains: Vec<u64> = vec![0];
        for body in &self.model.bodies[1..] {
            let joints = &self.model.joints[body.joints.clone()];
            let own = joints.iter().map(|j| j.kind.nv() as u64).sum::<u64>();
            chains.push(chains[body.parent] + own);
        }
        let mass: u64 = chains.iter().map(|n| n * n).sum();
        let products = mass.saturating_add((nv + solves as u64).saturating_mul(nv * nv));
        nv <= MAX_DENSE && products <= MAX_PRODUCTS
    }

    /// The factor of the mass matrix; `None` where it has none.
    pub fn factor(&self) -> Option<Cholesky<f64, Dyn>> {
        Cholesky::new(self.mass_matrix())
    }
}

/// The pose in which the joints' springs are at rest `(nq)`.
pub(crate) fn spring_pose(model: &Model) -> Vec<f64> {
    let mut qpos = model.qpos0.clone();
    for joint in &model.joints {
        if matches!(joint.kind, JointKind::Slide | JointKind::Hinge) {
            qpos[joint.qpos_adr] = joint.springref;
        }
    }
    qpos
}
