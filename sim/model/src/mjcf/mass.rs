//! Masses of the whole model: every moving body has mass; the sum.

use super::element::{At, Fault, Read};
use crate::Model;
use crate::rotation::EPS;

/// Every body with joints needs mass and inertia, its own or of bodies welded to it.
pub(super) fn check(model: &Model, places: &[At]) -> Read<()> {
    let enough = |x: f64| x >= super::inertia::MIN_VALUE;
    let mut heavy = vec![false; model.bodies.len()];
    for (i, body) in model.bodies.iter().enumerate() {
        if enough(body.mass) && body.inertia.iter().all(|m| enough(*m)) {
            heavy[i] = true;
            heavy[body.weld] = true;
        }
    }
    for (i, body) in model.bodies.iter().enumerate() {
        if !body.joints.is_empty() && !heavy[i] {
            return Err(Fault::new(
                places[i],
                format!(
                    "body \"{}\" moves but has no mass or inertia (mass {} kg, moments {:?} \
                     kg m^2); give it a geom with density or an <inertial>",
                    body.name, body.mass, body.inertia
                ),
            ));
        }
    }
    Ok(())
}

/// Scales all masses and inertias to the wanted sum (kg).
pub(super) fn scale(model: &mut Model, total: f64) {
    let sum: f64 = model.bodies.iter().map(|b| b.mass).sum();
    if total > 0.0 && sum > EPS {
        let scale = total / sum;
        for body in &mut model.bodies {
            body.mass *= scale;
            body.inertia = body.inertia.map(|i| i * scale);
        }
    }
}
