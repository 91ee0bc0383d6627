//! Lowering: a [`Model`] becomes the [`RobotTables`] through which kernels know it.
//!
//! Everything that depends on the model alone is computed here, once, in double
//! precision: static bodies are merged into the bodies that they are welded to (`tree`),
//! inverse weights are taken at the initial pose (`weights`), soft constraints are
//! packed (`soft`), candidate contacts are listed with their parameters
//! (`contacts`), frames that nearly coincide become one (`frames`), other constraints than joint
//! limits become general rows (`rows`), disable flags take effect (`flags`), sensors that no
//! state can answer are listed (`meters`). Features that the kernels lack are refused by name.
//! The meaning of everything is MuJoCo's.

mod actuators;
mod contact_sensors;
mod contacts;
mod context;
mod error;
mod flags;
mod fluid;
mod frames;
mod gravity;
mod implicit;
mod limits;
mod meters;
mod motors;
mod pattern;
mod rows;
mod soft;
mod spots;
mod tendons;
mod tree;
mod vary;
mod weights;

pub use contact_sensors::contact_pairs;
pub use context::LowerOptions;
pub use error::LowerError;

use super::tables::RobotTables;
use crate::kernels;
use context::Context;
use ostler_model::{Cone, Integrator, Model, Varied};
use spots::FixedFrames;
use tendons::Tendons;

/// MuJoCo's inverse weights of a model (`body_invweight0` and so on), which scale
/// the softness of its constraints.
#[derive(Debug, Clone, PartialEq)]
pub struct InverseWeights {
    /// Translation (1/kg) and rotation (1/(kg m^2)) for each body `(nbody)`.
    pub body: Vec<[f64; 2]>,
    /// For each degree of freedom `(nv)`.
    pub dof: Vec<f64>,
    /// For each tendon `(ntendon)`.
    pub tendon: Vec<f64>,
}

/// Computes the inverse weights of `model`.
///
/// # Errors
/// As [`lower`].
pub fn inverse_weights(model: &Model) -> Result<InverseWeights, LowerError> {
    let model = frames::merged(model);
    let context = Context::new(&model, &LowerOptions::default())?;
    let tendons = Tendons::new(&context)?;
    Ok(InverseWeights {
        tendon: (0..model.tendons.len()).map(|t| tendons.weight(&context, t)).collect(),
        body: context.weights.body,
        dof: context.weights.dof,
    })
}

/// `model` with numbers that differ between environments.
///
/// # Errors
/// As [`lower`], also where something does not follow from them.
pub fn vary(model: &Model, varied: Vec<Varied>) -> Result<Model, LowerError> {
    let mut model = Model { varied, ..model.clone() };
    model.nderived = lower(&model, &LowerOptions::default())?.nderive;
    Ok(model)
}

/// Lowers `model` to the kernels' tables.
///
/// # Errors
/// The model needs features that the kernels lack, or a number in it is not finite
/// where the dynamics need it; the message names the element and a way out.
pub fn lower(model: &Model, options: &LowerOptions) -> Result<RobotTables, LowerError> {
    let merged = frames::merged(model);
    let model = &*merged;
    let context = Context::new(model, options)?;
    vary::check(&context)?;
    let integrator = options.integrator.unwrap_or(model.options.integrator);
    let mut plan = RobotTables {
        timestep: context.packer.timestep,
        ngeom: model.geoms.len(),
        elliptic: usize::from(context.cone == Cone::Elliptic),
        nslip: model.options.noslip_iterations.min(i32::MAX as u32 - 1) as usize,
        nstop: usize::from(model.options.stops_early),
        slip_tolerance: model.options.noslip_tolerance,
        scale: 1.0 / (context.weights.mean_inertia * model.nv.max(1) as f64),
        integrator: match integrator {
            Integrator::Euler => kernels::EULER,
            Integrator::Rk4 => kernels::RK4,
            Integrator::ImplicitFast => kernels::IMPLICITFAST,
            Integrator::Implicit => kernels::IMPLICIT,
        },
        ..RobotTables::default()
    };
    if context.flags.gravity {
        [plan.gravity_x, plan.gravity_y, plan.gravity_z] = model.options.gravity;
    }
    context.tree.write(model, &mut plan);
    passive(&context, &mut plan);
    limits::write(&context, &mut plan)?;
    contacts::write(&context, &mut plan)?;
    let tendons = Tendons::new(&context)?;
    let mut spots = FixedFrames::default();
    tendons.write(&context, &mut spots, &mut plan);
    let rows = rows::write(&context, &tendons, &mut plan)?;
    actuators::write(&context, &tendons, &mut spots, &mut plan)?;
    spots.write(&mut plan);
    fluid::write(&context, &mut plan);
    gravity::write(&context, &mut plan);
    implicit::write(&context, integrator, &mut plan);
    meters::write(&context, &rows.held, &tendons.strung(&context), &mut plan);
    contact_sensors::write(&context, &mut plan);
    motors::write(&context, &mut plan)?;
    vary::write(&context, &rows, &mut plan);
    pattern::write(model, &context.tree, &mut plan);
    bounded(&plan)?;
    finite(&plan)?;
    Ok(plan)
}

/// Springs and dampers that flags switch off, and whether Euler is implicit in them.
fn passive(c: &Context, plan: &mut RobotTables) {
    if !c.flags.spring {
        plan.jnt_stiffness.fill(0.0);
    }
    if !c.flags.damper {
        plan.dof_damping.fill(0.0);
    }
    let damped = plan.dof_damping.iter().any(|d| *d > 0.0);
    plan.eulerdamp = usize::from(c.flags.eulerdamp && damped);
}

/// Kernels count with 32 bits.
fn bounded(plan: &RobotTables) -> Result<(), LowerError> {
    let ints = plan.ints().map(|(name, x)| (name, x.len()));
    let reals = plan.reals().map(|(name, x)| (name, x.len()));
    let large = |(_, n): &(&str, usize)| i32::try_from(*n).is_err();
    match plan.counts().chain(ints).chain(reals).find(large) {
        None => Ok(()),
        Some((name, n)) => Err(LowerError::new(
            format!("a model this large ({n} in table {name})"),
            "fewer geoms that collide make it smaller",
        )),
    }
}

/// Numbers that are not finite would come out as accelerations that are not.
fn finite(plan: &RobotTables) -> Result<(), LowerError> {
    let bad = |x: &f64| !x.is_finite();
    let scalars = plan.scalars().find(|(_, x)| bad(x)).map(|(name, _)| name);
    let array = || plan.reals().find(|(_, x)| x.iter().any(bad)).map(|x| x.0);
    match scalars.or_else(array) {
        None => Ok(()),
        Some(name) => Err(LowerError::new(
            format!("a model with numbers that are not finite (in table {name})"),
            "look for infinite or absurdly large values",
        )),
    }
}

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;
