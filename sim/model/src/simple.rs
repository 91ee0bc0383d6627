//! MuJoCo's "simple" bodies: those whose rows of the mass matrix are diagonal for
//! ever. It takes short cuts for them that show: in what regularises constraints, and
//! in which couplings `implicitfast` knows of.

use super::{Body, JointKind, Model, PathPart, TendonKind, Vec3};

/// Poses closer than this are the same, as in MuJoCo's compiler.
const SAME_FRAME: f64 = 1e-6;
/// An axis component smaller than this is none, as in MuJoCo's compiler.
const AXIS: f64 = 1e-14;

/// A leaf on the world (or on a body that is fixed to it) whose frame is that of its
/// inertia, with slides along its axes and at most one turning joint, the last, about
/// them.
pub fn is_simple(model: &Model, b: usize) -> bool {
    let body: &Body = &model.bodies[b];
    let parent = &model.bodies[body.parent];
    let on_ground = body.parent == 0 || (parent.parent == 0 && parent.joints.is_empty());
    let leaf = || model.bodies.iter().skip(1).all(|c| c.parent != b);
    let joints = &model.joints[body.joints.clone()];
    let straight = |(i, j): (usize, &super::Joint)| {
        let turns = matches!(j.kind, JointKind::Hinge | JointKind::Ball);
        near_zero(j.pos)
            && (!j.is_scalar() || j.axis.iter().filter(|a| a.abs() > AXIS).count() == 1)
            && (!turns || i + 1 == joints.len())
    };
    let tied = || {
        model.tendons.iter().any(|t| {
            let reaches = || match &t.kind {
                TendonKind::Fixed(parts) => parts.iter().any(|(j, _)| model.joints[*j].body == b),
                TendonKind::Spatial(path) => {
                    path.iter().any(|p| matches!(p, PathPart::Site(s) if model.sites[*s].body == b))
                }
            };
            t.armature > 0.0 && reaches()
        })
    };
    body.simple
        && on_ground
        && near_zero(body.ipos)
        && near_zero([body.iquat[1], body.iquat[2], body.iquat[3]])
        && joints.iter().enumerate().all(straight)
        && leaf()
        && !tied()
}

/// A simple body on slides alone: its mass matrix is its mass times one, and MuJoCo
/// takes the mass itself as inertia there, without the joints' armature.
pub fn only_slides(model: &Model, b: usize) -> bool {
    let joints = &model.joints[model.bodies[b].joints.clone()];
    !joints.is_empty() && joints.iter().all(|j| j.kind == JointKind::Slide) && is_simple(model, b)
}

fn near_zero(v: Vec3) -> bool {
    v.iter().all(|x| x.abs() < SAME_FRAME)
}
