//! Actuators as moment arms on joints.

use super::{Context, LowerError};
use crate::model::JointKind;
use crate::physics::native::tables::{Plan, UNLIMITED};

/// No limit on either side.
const FREE: [f64; 2] = [-UNLIMITED, UNLIMITED];

/// Writes actuators and the limits on their sum at each joint.
pub(super) fn write(c: &Context, plan: &mut Plan) -> Result<(), LowerError> {
    plan.nu = c.model.nu();
    plan.act_adr.push(0);
    for actuator in &c.model.actuators {
        let joint = &c.model.joints[actuator.joint];
        if !matches!(joint.kind, JointKind::Hinge | JointKind::Slide) {
            return Err(LowerError::new(
                format!("actuator \"{}\" on a ball or free joint", actuator.name),
                "drive hinge or slide joints",
            ));
        }
        plan.act_qpos.push(joint.qpos_adr as i32);
        plan.act_dof.push(joint.dof_adr as i32);
        plan.act_coef.push(actuator.gear[0]);
        plan.act_adr.push(plan.act_dof.len() as i32);
        let clamped = actuator.ctrlrange.filter(|_| c.flags.clampctrl);
        let [lo, hi] = clamped.unwrap_or(FREE);
        plan.act_ctrllo.push(lo);
        plan.act_ctrlhi.push(hi);
        // Without actuation nothing pulls, whatever the control.
        let on = |x: [f64; 3]| if c.flags.actuation { x } else { [0.0; 3] };
        plan.act_gain.extend(on(actuator.gain));
        plan.act_bias.extend(on(actuator.bias));
        let limited = actuator.forcerange.filter(|_| c.flags.actuation);
        let [lo, hi] = limited.unwrap_or(FREE);
        plan.act_forcelo.push(lo);
        plan.act_forcehi.push(hi);
        plan.act_dyn.push(0);
        plan.act_state.push(-1);
        plan.act_early.push(0);
        plan.act_prm.push(1.0);
        plan.act_lo.push(-UNLIMITED);
        plan.act_hi.push(UNLIMITED);
    }
    plan.dof_actlo = vec![-UNLIMITED; plan.nv];
    plan.dof_acthi = vec![UNLIMITED; plan.nv];
    for joint in c.model.joints.iter().filter(|_| c.flags.actuation) {
        if let (JointKind::Hinge | JointKind::Slide, Some([lo, hi])) =
            (joint.kind, joint.actfrcrange)
        {
            plan.dof_actlo[joint.dof_adr] = lo;
            plan.dof_acthi[joint.dof_adr] = hi;
        }
    }
    Ok(())
}
