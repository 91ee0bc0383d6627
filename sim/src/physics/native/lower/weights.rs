//! Inverse weights at the initial pose: what a unit force does there.
//!
//! MuJoCo regularises its constraints with them (Computation, "Constraint model",
//! "Diagonal approximation"): `body_invweight0`, `dof_invweight0`,
//! `tendon_invweight0`, `meaninertia`. All are diagonals of `J M^-1 J^T`, averaged
//! over what may not depend on a choice of axes.

use super::LowerError;
use super::tree::{Tree, axes, lever, turned};
use crate::model::rotation::{Pose, add, rotate};
use crate::model::{Body, Joint, JointKind, Model, Vec3};
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// Poses closer than this are the same, as in MuJoCo's compiler.
const SAME_FRAME: f64 = 1e-6;
/// An axis component smaller than this is none, as in MuJoCo's compiler.
const AXIS: f64 = 1e-14;

/// What the initial pose says about the inertia that forces meet.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// Translation, rotation for each body of the model; 0 for static ones.
    pub body: Vec<[f64; 2]>,
    /// For each degree of freedom.
    pub dof: Vec<f64>,
    /// Mean of the mass matrix's diagonal.
    pub mean_inertia: f64,
    factor: Option<Cholesky<f64, Dyn>>,
}

impl Weights {
    /// Computes all of them.
    pub fn new(model: &Model, tree: &Tree) -> Result<Self, LowerError> {
        let pose = poses(model);
        let motion = motions(model, &pose);
        let mass = mass_matrix(model, tree, &pose, &motion);
        let mean_inertia = match model.nv {
            0 => 1.0,
            nv => mass.diagonal().sum() / nv as f64,
        };
        let factor = match model.nv {
            0 => None,
            _ => Some(factor(model, tree, mass)?),
        };
        let mut weights = Self {
            body: vec![[0.0; 2]; model.bodies.len()],
            dof: vec![0.0; model.nv],
            mean_inertia,
            factor,
        };
        for (b, carrier) in tree.carrier.iter().enumerate() {
            let Some(moving) = carrier.body else { continue };
            let chain = tree.chain(Some(moving));
            weights.body[b] = if only_slides(model, b) {
                [1.0 / model.bodies[b].mass.max(super::soft::MIN_VALUE), 0.0]
            } else {
                let com = pose[b].point(model.bodies[b].ipos);
                weights.of_body(&chain, &motion, com)
            };
        }
        for joint in &model.joints {
            let first = joint.dof_adr;
            if only_slides(model, joint.body) {
                let mass = model.bodies[joint.body].mass;
                weights.dof[first] = 1.0 / mass.max(super::soft::MIN_VALUE);
                continue;
            }
            let diagonal: Vec<f64> = (first..first + joint.kind.nv())
                .map(|d| weights.inverse(&[(d, 1.0)]))
                .collect();
            // The axes of ball and free joints are a choice.
            for (group, values) in diagonal.chunks(3).enumerate() {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let start = first + 3 * group;
                weights.dof[start..start + values.len()].fill(mean);
            }
        }
        Ok(weights)
    }

    /// `J M^-1 J^T` of one row, given as (degree of freedom, entry).
    pub fn inverse(&self, row: &[(usize, f64)]) -> f64 {
        let Some(factor) = &self.factor else {
            return 0.0;
        };
        let mut force = DVector::zeros(self.dof.len());
        for &(dof, entry) in row {
            force[dof] += entry;
        }
        force.dot(&factor.solve(&force))
    }

    /// Means over three axes of a point of a body and of its rotation.
    fn of_body(&self, chain: &[usize], motion: &[Motion], point: Vec3) -> [f64; 2] {
        let mut mean = [0.0; 2];
        for k in 0..3 {
            let row = |of: &dyn Fn(&Motion) -> Vec3| -> Vec<(usize, f64)> {
                chain.iter().map(|&d| (d, of(&motion[d])[k])).collect()
            };
            mean[0] += self.inverse(&row(&|m| m.at(point))) / 3.0;
            mean[1] += self.inverse(&row(&|m| m.angular)) / 3.0;
        }
        mean
    }
}

/// What one unit of a degree of freedom's velocity does, in the world's frame.
#[derive(Debug, Clone, Copy)]
struct Motion {
    angular: Vec3,
    /// Velocity of the anchor.
    linear: Vec3,
    anchor: Vec3,
}

impl Motion {
    /// Velocity of a point of the body that moves.
    fn at(&self, point: Vec3) -> Vec3 {
        add(self.linear, lever(self.angular, self.anchor, point))
    }
}

/// Poses of all bodies in the initial pose, where all joints are at their reference.
fn poses(model: &Model) -> Vec<Pose> {
    let mut poses: Vec<Pose> = Vec::with_capacity(model.bodies.len());
    for (i, body) in model.bodies.iter().enumerate() {
        let own = Pose {
            pos: body.pos,
            quat: body.quat,
        };
        let pose = match i {
            0 => Pose::IDENTITY,
            _ => poses[body.parent].then(own),
        };
        poses.push(pose);
    }
    poses
}

fn motions(model: &Model, pose: &[Pose]) -> Vec<Motion> {
    let mut motions = Vec::with_capacity(model.nv);
    for joint in &model.joints {
        let body = pose[joint.body];
        let anchor = body.point(joint.pos);
        let axis = rotate(body.quat, joint.axis);
        let none = [0.0; 3];
        let mut push = |angular, linear, anchor| {
            motions.push(Motion {
                angular,
                linear,
                anchor,
            });
        };
        match joint.kind {
            JointKind::Slide => push(none, axis, anchor),
            JointKind::Hinge => push(axis, none, anchor),
            JointKind::Ball => axes(body.quat)
                .into_iter()
                .for_each(|a| push(a, none, anchor)),
            JointKind::Free => {
                let world = axes(Pose::IDENTITY.quat);
                world.into_iter().for_each(|a| push(none, a, body.pos));
                let own = axes(body.quat);
                own.into_iter().for_each(|a| push(a, none, body.pos));
            }
        }
    }
    motions
}

/// Sum over the bodies of `J^T diag(mass, inertia) J`, plus the rotors.
fn mass_matrix(model: &Model, tree: &Tree, pose: &[Pose], motion: &[Motion]) -> DMatrix<f64> {
    let mut mass = DMatrix::zeros(model.nv, model.nv);
    for (b, body) in model.bodies.iter().enumerate() {
        let chain = tree.chain(tree.carrier[b].body);
        let com = pose[b].point(body.ipos);
        let axes = pose[b].then(Pose {
            pos: body.ipos,
            quat: body.iquat,
        });
        let [xx, yy, zz, xy, xz, yz] = turned(body.inertia, axes.quat);
        for &i in &chain {
            let w = motion[i].angular;
            let spin = [
                xx * w[0] + xy * w[1] + xz * w[2],
                xy * w[0] + yy * w[1] + yz * w[2],
                xz * w[0] + yz * w[1] + zz * w[2],
            ];
            let momentum = motion[i].at(com).map(|v| body.mass * v);
            for &j in chain.iter().filter(|j| **j <= i) {
                let (v, w) = (motion[j].at(com), motion[j].angular);
                let entry: f64 = (0..3).map(|k| momentum[k] * v[k] + spin[k] * w[k]).sum();
                mass[(i, j)] += entry;
                if i != j {
                    mass[(j, i)] += entry;
                }
            }
        }
    }
    for (d, &joint) in tree.dof_joint.iter().enumerate() {
        mass[(d, d)] += model.joints[joint].armature;
    }
    mass
}

/// Factorises, or names the first degree of freedom that nothing resists.
fn factor(
    model: &Model,
    tree: &Tree,
    mass: DMatrix<f64>,
) -> Result<Cholesky<f64, Dyn>, LowerError> {
    if let Some(factor) = mass.clone().cholesky() {
        return Ok(factor);
    }
    let singular = |n: &usize| {
        mass.view((0, 0), (*n, *n))
            .clone_owned()
            .cholesky()
            .is_none()
    };
    let first = (1..=model.nv).find(singular).unwrap_or(1) - 1;
    let joint = &model.joints[tree.dof_joint[first]];
    Err(LowerError::new(
        format!(
            "joint \"{}\" of body \"{}\" without inertia (the mass matrix is singular)",
            joint.name, model.bodies[joint.body].name
        ),
        "give the body mass and inertia, or the joint armature",
    ))
}

/// Bodies on slides alone whose mass matrix is their mass times one: MuJoCo takes
/// the mass itself there, without the joints' armature (its "simple" bodies, level 2).
fn only_slides(model: &Model, b: usize) -> bool {
    let body: &Body = &model.bodies[b];
    let parent = &model.bodies[body.parent];
    let on_ground = body.parent == 0 || (parent.parent == 0 && parent.joints.is_empty());
    let leaf = || model.bodies.iter().skip(1).all(|c| c.parent != b);
    let slide = |j: &Joint| {
        j.kind == JointKind::Slide
            && near_zero(j.pos)
            && j.axis.iter().filter(|a| a.abs() > AXIS).count() == 1
    };
    !body.joints.is_empty()
        && on_ground
        && near_zero(body.ipos)
        && near_zero([body.iquat[1], body.iquat[2], body.iquat[3]])
        && model.joints[body.joints.clone()].iter().all(slide)
        && leaf()
}

fn near_zero(v: Vec3) -> bool {
    v.iter().all(|x| x.abs() < SAME_FRAME)
}
