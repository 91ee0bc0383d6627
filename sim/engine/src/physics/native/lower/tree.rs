//! The moving tree: bodies without joints merged into the bodies that they are welded to.

use super::error::LowerError;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{Pose, add, dot, turned};
use ostler_model::{JointKind, Model, Quat, Vec3};

/// Where a body of the model is carried: by a moving body, or by the world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier {
    /// Index among the moving bodies; `None` for static bodies.
    pub body: Option<usize>,
    /// The body's pose in the carrier's frame.
    pub pose: Pose,
}

impl Carrier {
    /// The carrier as the kernels write it: -1 is the world.
    pub(crate) fn index(&self) -> i32 {
        self.body.map_or(-1, |b| b as i32)
    }
}

/// The moving bodies of a model and the carrier of each of its bodies.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// Bodies of the model that have joints, parents first.
    pub moving: Vec<usize>,
    /// For each body of the model, the body that carries it.
    pub carrier: Vec<Carrier>,
    /// Moving parent of each moving body.
    pub parent: Vec<Option<usize>>,
    /// Parent of each degree of freedom.
    pub dof_parent: Vec<Option<usize>>,
    /// Joint of each degree of freedom.
    pub dof_joint: Vec<usize>,
    /// Last degree of freedom that moves each moving body.
    pub last_dof: Vec<Option<usize>>,
}

impl Tree {
    /// Merges bodies that do not move by themselves.
    pub(crate) fn new(model: &Model) -> Result<Self, LowerError> {
        let mut moving = Vec::new();
        let mut carrier = Vec::with_capacity(model.bodies.len());
        let mut parent = Vec::new();
        for (i, body) in model.bodies.iter().enumerate() {
            let own = Pose { pos: body.pos, quat: body.quat };
            if i == 0 {
                carrier.push(Carrier { body: None, pose: Pose::IDENTITY });
                continue;
            }
            let above: &Carrier = carrier.get(body.parent).ok_or_else(|| {
                LowerError::new(
                    format!("body \"{}\" before its parent", body.name),
                    "parents come first",
                )
            })?;
            if body.joints.is_empty() {
                carrier.push(Carrier { body: above.body, pose: above.pose.then(own) });
            } else {
                parent.push(above.body);
                carrier.push(Carrier { body: Some(moving.len()), pose: Pose::IDENTITY });
                moving.push(i);
            }
        }
        let (mut dof_parent, mut dof_joint) = (Vec::new(), Vec::new());
        let mut last_dof: Vec<Option<usize>> = Vec::with_capacity(moving.len());
        for (m, &body) in moving.iter().enumerate() {
            let mut last = parent[m].and_then(|p: usize| last_dof[p]);
            for j in model.bodies[body].joints.clone() {
                for _ in 0..model.joints[j].kind.nv() {
                    dof_parent.push(last);
                    last = Some(dof_joint.len());
                    dof_joint.push(j);
                }
            }
            last_dof.push(last);
        }
        Ok(Self { moving, carrier, parent, dof_parent, dof_joint, last_dof })
    }

    /// Degrees of freedom that move the moving body `body`, from the root, ascending.
    pub(crate) fn chain(&self, body: Option<usize>) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut dof = body.and_then(|b| self.last_dof[b]);
        while let Some(d) = dof {
            chain.push(d);
            dof = self.dof_parent[d];
        }
        chain.reverse();
        chain
    }

    /// Pose of something fixed to the model's body `body`, in its carrier's frame.
    pub(crate) fn fixed(&self, body: usize, pos: Vec3, quat: Quat) -> Pose {
        self.carrier[body].pose.then(Pose { pos, quat })
    }

    /// Writes bodies, joints, degrees of freedom and frames.
    pub(crate) fn write(&self, model: &Model, plan: &mut RobotTables) {
        plan.nq = model.nq;
        plan.nv = model.nv;
        plan.nb = self.moving.len();
        plan.nj = model.joints.len();
        plan.nframe = model.bodies.len();
        plan.qpos0 = model.qpos0.clone();
        plan.qpos_spring = model.qpos0.clone();
        self.write_bodies(model, plan);
        for (j, joint) in model.joints.iter().enumerate() {
            plan.jnt_type.push(match joint.kind {
                JointKind::Free => kernels::JNT_FREE,
                JointKind::Ball => kernels::JNT_BALL,
                JointKind::Slide => kernels::JNT_SLIDE,
                JointKind::Hinge => kernels::JNT_HINGE,
            });
            plan.jnt_body.push(self.carrier[joint.body].index());
            plan.jnt_qpos.push(joint.qpos_adr as i32);
            plan.jnt_dof.push(joint.dof_adr as i32);
            plan.jnt_pos.extend(joint.pos);
            plan.jnt_axis.extend(joint.axis);
            plan.jnt_stiffness.push(joint.stiffness);
            if matches!(joint.kind, JointKind::Slide | JointKind::Hinge) {
                plan.qpos_spring[joint.qpos_adr] = joint.springref;
            }
            for _ in 0..joint.kind.nv() {
                plan.dof_body.push(self.carrier[joint.body].index());
                plan.dof_jnt.push(j as i32);
                plan.dof_damping.push(joint.damping);
                plan.dof_armature.push(joint.armature);
            }
        }
        let index = |d: &Option<usize>| d.map_or(-1, |d| d as i32);
        plan.dof_parent = self.dof_parent.iter().map(index).collect();
        plan.planar = (0..3).find(|&axis| moves_in_plane(plan, axis)).map_or(0, |axis| 1 + axis);
        for carrier in &self.carrier {
            plan.frame_body.push(carrier.index());
            plan.frame_pos.extend(carrier.pose.pos);
            plan.frame_quat.extend(carrier.pose.quat);
        }
    }

    fn write_bodies(&self, model: &Model, plan: &mut RobotTables) {
        let mut dofs = 0;
        for (m, &b) in self.moving.iter().enumerate() {
            let body = &model.bodies[b];
            let tree = match self.parent[m] {
                Some(p) => plan.body_tree[p],
                None => {
                    plan.tree_root.push(m as i32);
                    plan.tree_root.len() as i32 - 1
                }
            };
            plan.body_tree.push(tree);
            plan.body_parent.push(self.parent[m].map_or(-1, |p| p as i32));
            plan.body_jnt.push(body.joints.start as i32);
            plan.body_dof.push(dofs as i32);
            dofs += model.joints[body.joints.clone()].iter().map(|j| j.kind.nv()).sum::<usize>();
            let pose = self.fixed(body.parent, body.pos, body.quat);
            plan.body_pos.extend(pose.pos);
            plan.body_quat.extend(pose.quat);
        }
        plan.body_jnt.push(model.joints.len() as i32);
        plan.body_dof.push(dofs as i32);
        plan.ntree = plan.tree_root.len();

        let mut lumps = vec![RigidMass::default(); self.moving.len()];
        for (b, carrier) in self.carrier.iter().enumerate() {
            if let Some(m) = carrier.body {
                lumps[m].add(&RigidMass::of(model, b, carrier.pose));
            }
        }
        for lump in &lumps {
            plan.body_mass.push(lump.mass);
            plan.body_mcom.extend(lump.first);
            plan.body_inertia.extend(lump.inertia);
        }
    }
}

/// Whether all joints move in the plane normal to `axis`, and all bodies' frames have that
/// axis of the world for their own.
fn moves_in_plane(plan: &RobotTables, axis: usize) -> bool {
    let along = |v: &[f64]| (0..3).all(|k| k == axis || v[k] == 0.0);
    let joints = plan.jnt_type.iter().zip(plan.jnt_axis.chunks_exact(3));
    let mut quats = plan.body_quat.chunks_exact(4);
    quats.all(|q| along(&q[1..]))
        && joints.into_iter().all(|(kind, v)| match kind {
            2 => v[axis] == 0.0,
            3 => along(v),
            _ => false,
        })
}

/// Mass, first moment and inertia about an origin: the sum over rigidly joined bodies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RigidMass {
    pub mass: f64,
    pub first: Vec3,
    /// xx yy zz xy xz yz.
    pub inertia: [f64; 6],
}

impl RigidMass {
    /// A body of the model, in the frame where it has `pose`.
    pub(crate) fn of(model: &Model, body: usize, pose: Pose) -> Self {
        let body = &model.bodies[body];
        let (mass, com) = (body.mass, pose.point(body.ipos));
        let axes = pose.then(Pose { pos: body.ipos, quat: body.iquat });
        let central = turned(body.inertia, axes.quat);
        // Steiner: about the origin instead of the centre of mass.
        let square = dot(com, com);
        let [x, y, z] = com;
        let shift = [square - x * x, square - y * y, square - z * z, -x * y, -x * z, -y * z];
        let mut inertia = central;
        for (i, s) in inertia.iter_mut().zip(shift) {
            *i += mass * s;
        }
        Self { mass, first: com.map(|c| mass * c), inertia }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.mass += other.mass;
        self.first = add(self.first, other.first);
        for (a, b) in self.inertia.iter_mut().zip(other.inertia) {
            *a += b;
        }
    }
}
