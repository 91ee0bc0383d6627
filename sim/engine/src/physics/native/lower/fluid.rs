//! Forces of the medium: on bodies by their equivalent inertia boxes, on geoms as
//! ellipsoids.
//!
//! Source: MuJoCo, Computation, "Fluid forces", "Inertia model" and "Ellipsoid model".

use super::context::Context;
use super::soft::MIN_VALUE;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{Pose, matrix};
use ostler_model::{Geom, Options};
use std::f64::consts::PI;

/// Writes the shapes in the medium, in the frames of the moving bodies that carry it:
/// every body of the model by itself, or in its place those of its geoms that are
/// ellipsoids.
pub(super) fn write(c: &Context, plan: &mut RobotTables) {
    let o = &c.model.options;
    plan.density = o.density;
    plan.viscosity = o.viscosity;
    [plan.wind_x, plan.wind_y, plan.wind_z] = o.wind;
    if !c.flags.passive() || (o.density == 0.0 && o.viscosity == 0.0) {
        return;
    }
    for (body, carrier) in c.model.bodies.iter().zip(&c.tree.carrier) {
        if carrier.body.is_none() || body.mass < MIN_VALUE {
            continue;
        }
        let mut ellipsoid = false;
        for geom in &c.model.geoms[body.geoms.clone()] {
            let Some(fluid) = &geom.fluid else { continue };
            ellipsoid = true;
            let axes = carrier.pose.then(Pose { pos: geom.pos, quat: geom.quat });
            plan.ell_body.push(carrier.index());
            plan.ell_pos.extend(axes.pos);
            plan.ell_mat.extend(matrix(axes.quat).concat());
            plan.ell_real.extend(numbers(o, geom, fluid));
        }
        if ellipsoid {
            continue;
        }
        let axes = carrier.pose.then(Pose { pos: body.ipos, quat: body.iquat });
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
    plan.nell = plan.ell_body.len();
}

/// An ellipsoid.
fn numbers(o: &Options, geom: &Geom, fluid: &[f64; 11]) -> [f64; kernels::ELL] {
    let [blunt, slender, angular, kutta, magnus, ..] = *fluid;
    let axes = geom.kind.semi_axes(geom.size);
    let [a, b, c] = axes;
    let mut sorted = axes;
    sorted.sort_by(f64::total_cmp);
    let [_, middle, largest] = sorted;
    let moment = |along: f64, across: f64| 8.0 / 15.0 * PI * along * across.powi(4);
    let most = moment(middle, largest);
    let turning = |along: f64, u: f64, v: f64| {
        let own = moment(along, u.max(v));
        angular * own + slender * (most - own)
    };
    let diameter = 2.0 / 3.0 * (a + b + c);
    let areas = [(b * c).powi(2), (c * a).powi(2), (a * b).powi(2)];
    let widest = areas.into_iter().fold(0.0, f64::max);
    let moments = [turning(a, b, c), turning(b, c, a), turning(c, a, b)];
    // Nothing resists turning if both coefficients are zero.
    let drill = moments.into_iter().fold(0.0, |x: f64, m| x.max(m.abs()));
    let mut out = [0.0; kernels::ELL];
    for i in 0..6 {
        out[kernels::ELL_MASS + i] = o.density * fluid[5 + i];
    }
    for i in 0..3 {
        out[kernels::ELL_AREA + i] = areas[i] / widest;
        out[kernels::ELL_MOMENT + i] = if drill > 0.0 { moments[i] / drill } else { 0.0 };
    }
    out[kernels::ELL_MAGNUS] = magnus * o.density * 4.0 / 3.0 * PI * a * b * c;
    out[kernels::ELL_KUTTA] = kutta * o.density * PI * widest.sqrt();
    out[kernels::ELL_BLUNT] = (blunt - slender) * o.density * PI * widest.sqrt();
    out[kernels::ELL_SLENDER] = slender * o.density * PI * largest * middle;
    out[kernels::ELL_STILL_LIN] = o.viscosity * 3.0 * PI * diameter;
    out[kernels::ELL_STILL_ANG] = o.viscosity * PI * diameter.powi(3);
    out[kernels::ELL_DRILL] = o.density * drill;
    out
}
