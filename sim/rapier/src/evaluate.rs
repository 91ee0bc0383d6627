//! Given states, one step each: rapier's side of [`Evaluation`].

use super::sets::Sets;
use super::{Rapier, build_worlds};
use ostler_engine::config::SimConfig;
use ostler_engine::physics::evaluate::{Evaluation, States};
use ostler_engine::physics::pool::Pool;
use ostler_engine::physics::{Physics, PhysicsError};
use ostler_model::Model;
use std::sync::Arc;

/// States at a time.
const BLOCK: usize = 64;

/// Steps every state once, in single precision, with the model's own time step.
///
/// rapier has no accelerations of its own: `qacc` is the change of velocity over the
/// step, divided by the time step. `ncon` counts the points at which shapes touch.
///
/// # Errors
/// As [`new`](super::new).
pub fn evaluate(
    model: &Arc<Model>,
    config: &SimConfig,
    pool: &Arc<Pool>,
    states: &States<'_>,
) -> Result<Evaluation, PhysicsError> {
    let count = states.qpos.len().checked_div(model.nq).unwrap_or(0);
    let n = count.clamp(1, BLOCK);
    let mut worlds = build_worlds(model, config, n, pool)?;
    let mut out = Evaluation::default();
    for first in (0..count).step_by(n) {
        let rows = first..(first + n).min(count);
        // The last block is filled up with its last state.
        let row = |e: usize| (first + e).min(rows.end - 1);
        let block = |data: &[f64], width: usize| -> Vec<f32> {
            (0..width * n).map(|i| data[row(i % n) * width + i / n] as f32).collect()
        };
        let qvel = block(states.qvel, model.nv);
        worlds.reset(&vec![1; n], &block(states.qpos, model.nq), &qvel);
        worlds.step(&block(states.ctrl, model.nu()), 1);
        read(&worlds, model, &qvel, rows.len(), &mut out);
    }
    Ok(out)
}

/// Appends the first `count` worlds.
fn read(worlds: &Rapier, model: &Model, before: &[f32], count: usize, out: &mut Evaluation) {
    let state = worlds.state();
    let n = state.num_envs;
    for e in 0..count {
        let column = |data: &[f32], width: usize| -> Vec<f64> {
            (0..width).map(|i| f64::from(data[i * n + e])).collect()
        };
        let qvel = column(&state.qvel, model.nv);
        let change = qvel.iter().zip(column(before, model.nv));
        out.qacc.extend(change.map(|(after, before)| (after - before) / worlds.dt));
        out.qvel_next.extend(qvel);
        out.qpos_next.extend(column(&state.qpos, model.nq));
        out.ncon.push(contacts(&worlds.worlds[e].sets));
        out.fault.push(state.fault[e]);
        out.iterations.push(0);
    }
}

/// Points at which shapes touch or overlap.
fn contacts(sets: &Sets) -> u32 {
    let points = |pair: &rapier3d::prelude::ContactPair| {
        let of = |m: &rapier3d::prelude::ContactManifold| {
            m.points.iter().filter(|p| p.dist <= 0.0).count()
        };
        pair.manifolds().iter().map(of).sum::<usize>()
    };
    sets.narrow_phase.contact_pairs().map(points).sum::<usize>() as u32
}
