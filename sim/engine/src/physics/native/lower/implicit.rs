//! Which rows of a time step's matrix are not symmetric.

use super::context::Context;
use crate::physics::native::tables::{RobotTables, UNLIMITED};
use ostler_model::{Integrator, JointKind, Model};

/// Writes it; the bodies in the medium are known.
pub(super) fn write(c: &Context, integrator: Integrator, plan: &mut RobotTables) {
    plan.body_skew = c
        .tree
        .moving
        .iter()
        .map(|b| match integrator {
            Integrator::Euler | Integrator::Rk4 => 0,
            Integrator::ImplicitFast => i32::from(alone(c.model, *b)),
            Integrator::Implicit => 1,
        })
        .collect();
    // MuJoCo leaves the derivatives of actuators out where the range of their joint's or
    // tendon's actuator force (`actuatorfrcrange`) is reached.
    let ranges = plan.nshare > 0 || plan.dof_acthi.iter().any(|hi| *hi < UNLIMITED);
    if ranges && matches!(integrator, Integrator::ImplicitFast | Integrator::Implicit) {
        plan.nheld = plan.nu;
    }
    let wet = plan.nfluid + plan.nell > 0;
    plan.slopes = match integrator {
        _ if plan.body_skew.contains(&1) => 2,
        Integrator::ImplicitFast if wet => 1,
        _ => 0,
    };
}

/// A free body that carries nothing that moves: MuJoCo solves a block of its own for
/// it under `implicitfast`, with the derivatives of gyroscopic forces.
fn alone(model: &Model, b: usize) -> bool {
    let below = |mut other: usize| {
        while other > b {
            other = model.bodies[other].parent;
        }
        other == b
    };
    let joints = &model.joints[model.bodies[b].joints.clone()];
    joints.len() == 1
        && joints[0].kind == JointKind::Free
        && (b + 1..model.bodies.len())
            .filter(|other| below(*other))
            .all(|other| model.bodies[other].joints.is_empty())
}
