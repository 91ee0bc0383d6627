//! Between MuJoCo's generalised coordinates and rapier's.
//!
//! | joint | rapier's coordinates | MuJoCo's |
//! |---|---|---|
//! | slide, hinge | `sign * (q - ref)`, rate | `q`, rate |
//! | ball | rotation, rate in the parent's frame | quaternion, rate in the child's frame |
//! | free | pose of the centre of mass, its velocity, rate in the world | pose of the body's origin, its velocity, rate in the body's frame |

use super::actuate::turn_of;
use super::build::{Layout, Spatial};
use super::kinematics::{add, cross, rotate, scale};
use super::sets::Sets;
use ostler_base::math::normalized;
use rapier3d::math;

fn quat_from(r: math::Rotation) -> [f32; 4] {
    [r.w, r.x, r.y, r.z]
}

fn quat_to(q: [f32; 4]) -> math::Rotation {
    math::Rotation::from_xyzw(q[1], q[2], q[3], q[0])
}

impl Spatial {
    /// The unit quaternion in `qpos`.
    fn quat(&self, first: usize, qpos: &[f32]) -> [f32; 4] {
        let q = &qpos[self.qpos + first..];
        normalized([q[0], q[1], q[2], q[3]])
    }
}

impl Layout {
    /// Makes the quaternions in `qpos (nq)` unit quaternions.
    pub(super) fn normalize(&self, qpos: &mut [f32]) {
        let at = self.balls.iter().map(|b| (b, 0));
        for (joint, first) in at.chain(self.frees.iter().map(|f| (f, 3))) {
            let quat = joint.quat(first, qpos);
            let from = joint.qpos + first;
            qpos[from..from + 4].copy_from_slice(&quat);
        }
    }

    /// Puts a pristine world at `qpos (nq)`, `qvel (nv)`. `scratch` has room for one
    /// multibody's velocities.
    pub(super) fn write(
        &self,
        sets: &mut Sets,
        qpos: &[f32],
        qvel: &[f32],
        scratch: &mut Vec<f32>,
    ) {
        for free in &self.frees {
            let quat = free.quat(3, qpos);
            let p = &qpos[free.qpos..];
            let com = add([p[0], p[1], p[2]], rotate(quat, free.com));
            if let Some(body) = sets.bodies.get_mut(free.body) {
                let pose = math::Pose::from_parts(math::Vector::from_array(com), quat_to(quat));
                body.set_position(pose, true);
            }
        }
        for tree in &self.trees {
            let Some(multibody) = sets.multibody_joints.get_multibody_mut_internal(*tree) else {
                continue;
            };
            // Coordinates of a pristine world are zero, so the displacement is the
            // position.
            scratch.clear();
            scratch.resize(multibody.ndofs(), 0.0);
            for s in self.scalars.iter().filter(|s| s.place.tree == *tree) {
                scratch[s.dof] = s.sign * (qpos[s.qpos] - s.reference);
            }
            for b in self.balls.iter().filter(|b| b.place.tree == *tree) {
                let turn = turn_of(b.quat(0, qpos));
                scratch[b.place.assembly..b.place.assembly + 3].copy_from_slice(&turn);
            }
            multibody.apply_displacements(scratch);
            multibody.forward_kinematics(&sets.bodies, true);
            // `update_rigid_bodies` would leave the shapes where they were for the
            // first step: it does not mark the bodies as moved.
            for link in multibody.links() {
                if let Some(body) = sets.bodies.get_mut(link.rigid_body_handle()) {
                    body.set_position(*link.local_to_world(), true);
                }
            }

            let mut v = multibody.generalized_velocity_mut();
            v.fill(0.0);
            for s in self.scalars.iter().filter(|s| s.place.tree == *tree) {
                v[s.dof] = s.sign * qvel[s.qvel];
            }
            for b in self.balls.iter().filter(|b| b.place.tree == *tree) {
                let w = &qvel[b.qvel..];
                let rate = rotate(b.quat(0, qpos), [w[0], w[1], w[2]]);
                for i in 0..3 {
                    v[b.place.assembly + i] = rate[i];
                }
            }
            for f in self.frees.iter().filter(|f| f.place.tree == *tree) {
                let quat = f.quat(3, qpos);
                let u = &qvel[f.qvel..];
                let rate = rotate(quat, [u[3], u[4], u[5]]);
                let lin = add([u[0], u[1], u[2]], cross(rate, rotate(quat, f.com)));
                for i in 0..3 {
                    v[f.place.assembly + i] = lin[i];
                    v[f.place.assembly + 3 + i] = rate[i];
                }
            }
        }
    }

    /// Reads `qpos (nq)` and `qvel (nv)`: generalised velocities, for the
    /// velocities of rapier's bodies are those of an earlier substep.
    pub(super) fn read(&self, sets: &Sets, qpos: &mut [f32], qvel: &mut [f32]) {
        for s in &self.scalars {
            let Some(multibody) = sets.multibody_joints.get_multibody(s.place.tree) else {
                continue;
            };
            if let Some(link) = multibody.link(s.place.link) {
                qpos[s.qpos] = s.reference + s.sign * link.joint.coords()[s.axis];
            }
            qvel[s.qvel] = s.sign * multibody.generalized_velocity()[s.dof];
        }
        for b in &self.balls {
            let Some(multibody) = sets.multibody_joints.get_multibody(b.place.tree) else {
                continue;
            };
            if let Some(link) = multibody.link(b.place.link) {
                let quat = normalized(quat_from(link.joint.joint_rot()));
                qpos[b.qpos..b.qpos + 4].copy_from_slice(&quat);
                let v = multibody.generalized_velocity();
                let at = b.place.assembly;
                let rate = rotate(conjugate(quat), [v[at], v[at + 1], v[at + 2]]);
                qvel[b.qvel..b.qvel + 3].copy_from_slice(&rate);
            }
        }
        for f in &self.frees {
            let Some(multibody) = sets.multibody_joints.get_multibody(f.place.tree) else {
                continue;
            };
            if let Some(link) = multibody.link(f.place.link) {
                let pose = link.local_to_world();
                let quat = normalized(quat_from(pose.rotation));
                let arm = rotate(quat, f.com);
                let origin = add(pose.translation.to_array(), scale(arm, -1.0));
                qpos[f.qpos..f.qpos + 3].copy_from_slice(&origin);
                qpos[f.qpos + 3..f.qpos + 7].copy_from_slice(&quat);
                let v = multibody.generalized_velocity();
                let at = f.place.assembly;
                let rate = [v[at + 3], v[at + 4], v[at + 5]];
                let lin = add([v[at], v[at + 1], v[at + 2]], scale(cross(rate, arm), -1.0));
                qvel[f.qvel..f.qvel + 3].copy_from_slice(&lin);
                let local = rotate(conjugate(quat), rate);
                qvel[f.qvel + 3..f.qvel + 6].copy_from_slice(&local);
            }
        }
    }
}

fn conjugate(q: [f32; 4]) -> [f32; 4] {
    [q[0], -q[1], -q[2], -q[3]]
}
