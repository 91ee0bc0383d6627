//! Limits of hinge and slide joints, and dry friction of degrees of freedom.

use super::context::Context;
use super::error::LowerError;
use super::soft::{Soft, Spec};
use crate::physics::native::tables::{RobotTables, UNLIMITED};
use ostler_model::{Field, Joint, JointKind};

/// The soft constraint of a joint's limit.
pub(super) fn packed(c: &Context, joint: &Joint) -> Result<Soft, LowerError> {
    let of = format!("the limit of joint \"{}\"", joint.name);
    let spec = Spec { of: &of, solref: joint.solref_limit, solimp: joint.solimp_limit };
    c.packer.position(spec, joint.margin, c.weights.dof[joint.dof_adr])
}

/// Writes limits and dry friction; limits of ball joints are general rows.
pub(super) fn write(c: &Context, plan: &mut RobotTables) -> Result<(), LowerError> {
    for joint in c.model.joints.iter().filter(|_| c.flags.limit) {
        let (JointKind::Hinge | JointKind::Slide, Some([lo, hi])) = (joint.kind, joint.range)
        else {
            continue;
        };
        let soft = packed(c, joint)?;
        for [lo, hi] in sides([lo, hi], joint.margin) {
            plan.lim_qpos.push(joint.qpos_adr as i32);
            plan.lim_dof.push(joint.dof_adr as i32);
            plan.lim_lo.push(lo);
            plan.lim_hi.push(hi);
            plan.lim_soft.extend(soft);
        }
    }
    let joints = c.model.joints.iter().enumerate();
    for (j, joint) in joints.filter(|_| c.flags.frictionloss) {
        if joint.frictionloss == 0.0 && !c.varies(Field::Frictionloss, j) {
            continue;
        }
        let of = format!("the friction of joint \"{}\"", joint.name);
        let spec = Spec { of: &of, solref: joint.solref_friction, solimp: joint.solimp_friction };
        for dof in joint.dof_adr..joint.dof_adr + joint.kind.nv() {
            plan.fric_dof.push(dof as i32);
            plan.fric_loss.push(joint.frictionloss);
            let soft = c.packer.friction(spec, c.weights.dof[dof]);
            plan.fric_soft.extend(soft);
        }
    }
    plan.nlim = plan.lim_dof.len();
    plan.nfric = plan.fric_dof.len();
    Ok(())
}

/// The limits that may act together: one with two sides, or, where a range is
/// narrower than its margins, each side alone.
pub(super) fn sides([lo, hi]: [f64; 2], margin: f64) -> Vec<[f64; 2]> {
    if 2.0 * margin > hi - lo { vec![[lo, UNLIMITED], [-UNLIMITED, hi]] } else { vec![[lo, hi]] }
}
