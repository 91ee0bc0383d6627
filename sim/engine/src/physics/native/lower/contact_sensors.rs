//! Contact sensors of a task: `kernels/contact_sensor.cuh`.

use super::context::{Context, LowerOptions};
use super::error::LowerError;
use super::lower;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::{ContactReading, Model};

/// Of how many pairs of geoms each contact sensor of a model reads; 0: nothing of it can touch.
///
/// # Errors
/// Something in the model that the native engine does not do.
pub fn contact_pairs(model: &Model) -> Result<Vec<usize>, LowerError> {
    let plan = lower(model, &LowerOptions::default())?;
    let counts = (0..plan.ncsensor).map(|s| {
        let sides = &plan.csensor_side[s * plan.npair..(s + 1) * plan.npair];
        sides.iter().filter(|side| **side != 0).count()
    });
    Ok(counts.collect())
}

/// Writes all of them; the pairs of geoms are written.
pub(super) fn write(c: &Context, plan: &mut RobotTables) {
    for sensor in &c.model.contact_sensors {
        let (kind, above) = match sensor.reads {
            ContactReading::Force => (kernels::CONTACT_FORCE, 0.0),
            ContactReading::Net => (kernels::CONTACT_NET, 0.0),
            ContactReading::Place => (kernels::CONTACT_PLACE, 0.0),
            ContactReading::Normal => (kernels::CONTACT_NORMAL, 0.0),
            ContactReading::Count(above) => (kernels::CONTACT_COUNT, above),
            ContactReading::TimeIn => (kernels::CONTACT_HELD, 0.0),
            ContactReading::TimeOut => (kernels::CONTACT_FREE, 0.0),
        };
        plan.csensor_kind.push(kind);
        plan.csensor_last.push(i32::from(sensor.last));
        plan.csensor_above.push(above);
        plan.csensor_adr.push(plan.ncread as i32);
        plan.ncread += sensor.reads.len();
        for pair in 0..plan.npair {
            let geom = |side: &[i32]| plan.cg_geom[side[pair] as usize] as usize;
            let [a, b] = [geom(&plan.pair_g1), geom(&plan.pair_g2)];
            let is = |of: usize, with: usize| {
                sensor.of.binary_search(&of).is_ok() && sensor.with.binary_search(&with).is_ok()
            };
            let side = match (is(b, a), is(a, b)) {
                (true, true) if a > b => -1,
                (true, _) => 1,
                (false, true) => -1,
                (false, false) => 0,
            };
            plan.csensor_side.push(side);
        }
        // Contacts that are kept by body have their places stored already.
        let places = matches!(kind, kernels::CONTACT_NET..=kernels::CONTACT_NORMAL);
        plan.felt = plan.felt.max(usize::from(places && plan.npslot > 0));
    }
    plan.csensor_adr.push(plan.ncread as i32);
    plan.ncsensor = plan.csensor_kind.len();
}
