//! Bodies whose weight is carried (`gravcomp`).
//!
//! Source: MuJoCo, XML reference, body/gravcomp and joint/actuatorgravcomp.

use super::context::Context;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::add;

/// Writes the mass that is compensated on each moving body, and who does it at each
/// degree of freedom.
pub(super) fn write(c: &Context, plan: &mut RobotTables) {
    // In MuJoCo nothing is computed for actuators where there are none.
    let actuated = c.flags.actuation && c.model.nu() > 0;
    for joint in &c.model.joints {
        let who = match (joint.actuator_gravcomp, actuated) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        plan.dof_grav.extend(std::iter::repeat_n(who, joint.kind.nv()));
    }
    // MuJoCo asks first whether any body's share is above 0.
    if !c.flags.passive() || c.model.bodies.iter().all(|body| body.gravcomp <= 0.0) {
        return;
    }
    let mut carried = vec![(0.0, [0.0; 3]); plan.nb];
    for (body, carrier) in c.model.bodies.iter().zip(&c.tree.carrier) {
        let Some(by) = carrier.body else { continue };
        let mass = body.mass * body.gravcomp;
        let com = carrier.pose.point(body.ipos);
        carried[by].0 += mass;
        carried[by].1 = add(carried[by].1, com.map(|x| mass * x));
    }
    for (b, (mass, first)) in carried.iter().enumerate() {
        if *mass != 0.0 || *first != [0.0; 3] {
            plan.grav_body.push(b as i32);
            plan.grav_mass.push(*mass);
            plan.grav_mcom.extend(first);
        }
    }
    plan.ngrav = plan.grav_body.len();
}
