//! Fixed tendons as linear combinations of joint positions.

use super::{Context, LowerError};
use crate::model::{JointKind, Tendon, TendonKind};
use crate::physics::native::tables::Plan;

/// The tendons that a kernel has to know, and what moves them.
#[derive(Debug, Clone)]
pub(super) struct Tendons {
    /// For each tendon of the model its joints and their coefficients, by joint.
    pub parts: Vec<Vec<(usize, f64)>>,
}

impl Tendons {
    /// Reads all of them.
    pub fn new(c: &Context) -> Result<Self, LowerError> {
        let read = |tendon: &Tendon| {
            if tendon.armature != 0.0 {
                return Err(LowerError::new(
                    format!("armature of tendon \"{}\"", tendon.name),
                    "give its joints armature instead",
                ));
            }
            let TendonKind::Fixed(parts) = &tendon.kind;
            let mut sums: Vec<(usize, f64)> = Vec::new();
            for &(joint, coefficient) in parts {
                let kind = c.model.joints[joint].kind;
                if !matches!(kind, JointKind::Hinge | JointKind::Slide) {
                    return Err(LowerError::new(
                        format!("tendon \"{}\" over a ball or free joint", tendon.name),
                        "fixed tendons run over hinge and slide joints",
                    ));
                }
                match sums.iter_mut().find(|(j, _)| *j == joint) {
                    Some((_, sum)) => *sum += coefficient,
                    None => sums.push((joint, coefficient)),
                }
            }
            sums.sort_unstable_by_key(|(joint, _)| *joint);
            Ok(sums)
        };
        let parts = c.model.tendons.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { parts })
    }

    /// Row of the tendon's length: (degree of freedom, coefficient), ascending.
    pub fn row(&self, c: &Context, tendon: usize) -> Vec<(usize, f64)> {
        self.parts[tendon]
            .iter()
            .map(|(joint, x)| (c.model.joints[*joint].dof_adr, *x))
            .collect()
    }

    /// Inverse weight of the tendon's length.
    pub fn weight(&self, c: &Context, tendon: usize) -> f64 {
        c.weights.inverse(&self.row(c, tendon))
    }

    /// Writes lengths, springs and dampers of all tendons.
    pub fn write(&self, c: &Context, plan: &mut Plan) {
        plan.nten = self.parts.len();
        plan.ten_adr.push(0);
        for (tendon, parts) in c.model.tendons.iter().zip(&self.parts) {
            for (joint, coefficient) in parts {
                let joint = &c.model.joints[*joint];
                plan.ten_qpos.push(joint.qpos_adr as i32);
                plan.ten_dof.push(joint.dof_adr as i32);
                plan.ten_coef.push(*coefficient);
            }
            plan.ten_adr.push(plan.ten_dof.len() as i32);
            let on = |flag: bool, x: f64| if flag { x } else { 0.0 };
            plan.ten_stiffness
                .push(on(c.flags.spring, tendon.stiffness));
            plan.ten_damping.push(on(c.flags.damper, tendon.damping));
            plan.ten_lo.push(tendon.springlength[0]);
            plan.ten_hi.push(tendon.springlength[1]);
        }
    }
}
