//! Forces of the medium on bodies, by their equivalent inertia boxes.
//!
//! Source: MuJoCo, Computation, "Fluid forces", "Inertia model".

use super::soft::MIN_VALUE;
use super::{Context, LowerError};
use crate::model::rotation::{Pose, matrix};
use crate::physics::native::tables::Plan;

/// Writes the bodies that feel the medium: every body of the model by itself, in
/// the frame of the moving body that carries it.
pub(super) fn write(c: &Context, plan: &mut Plan) -> Result<(), LowerError> {
    let o = &c.model.options;
    // With springs and dampers both off MuJoCo computes no passive force at all.
    let passive = c.flags.spring || c.flags.damper;
    plan.density = o.density;
    plan.viscosity = o.viscosity;
    [plan.wind_x, plan.wind_y, plan.wind_z] = o.wind;
    if !passive || (o.density == 0.0 && o.viscosity == 0.0) {
        return Ok(());
    }
    for (body, carrier) in c.model.bodies.iter().zip(&c.tree.carrier) {
        if carrier.body.is_none() || body.mass < MIN_VALUE {
            continue;
        }
        let geoms = &c.model.geoms[body.geoms.clone()];
        if let Some(geom) = geoms.iter().find(|g| g.fluid.is_some()) {
            return Err(LowerError::new(
                format!("fluidshape=\"ellipsoid\" of geom \"{}\"", geom.name),
                "leave it out: the medium then acts on the body's inertia box",
            ));
        }
        let axes = carrier.pose.then(Pose {
            pos: body.ipos,
            quat: body.iquat,
        });
        let [x, y, z] = body.inertia;
        plan.fluid_body.push(carrier.index());
        plan.fluid_pos.extend(axes.pos);
        plan.fluid_mat.extend(matrix(axes.quat).concat());
        plan.fluid_box.extend(
            [y + z - x, x + z - y, x + y - z]
                .map(|square| (square.max(MIN_VALUE) / body.mass * 6.0).sqrt()),
        );
    }
    plan.nfluid = plan.fluid_body.len();
    Ok(())
}
