//! Contracts of the rapier engine.

mod broken;
mod determinism;
mod filter;
mod physics;
mod referee;
mod robots;

use ostler_engine::config::SimConfig;
use ostler_engine::physics::pool::Pool;
use ostler_engine::physics::{Physics, State};
use ostler_model::Model;
use std::sync::Arc;

fn worlds(model: Model, n: usize, threads: usize) -> Box<dyn Physics> {
    worlds_with(model, n, threads, &SimConfig::default())
}

fn worlds_with(model: Model, n: usize, threads: usize, config: &SimConfig) -> Box<dyn Physics> {
    let pool = Arc::new(Pool::new(threads).unwrap());
    super::new(&Arc::new(model), config, n, &pool).unwrap()
}

/// Everything task can see of environment `e`, as bits.
fn bits(state: &State, e: usize) -> Vec<u32> {
    let n = state.num_envs;
    state
        .floats()
        .iter()
        .flat_map(|b| b.iter().skip(e).step_by(n).map(|x| x.to_bits()))
        .chain(std::iter::once(state.fault[e]))
        .collect()
}

/// A control in -1..1 that depends on the environment's identity, not its slot.
fn wiggle(id: usize, step: usize, u: usize) -> f32 {
    ((id * 31 + step * 7 + u * 13) as f32 * 0.37).sin()
}

/// Controls `[nu][n]` of step `step` for environments with these identities.
fn controls(ids: &[usize], nu: usize, step: usize) -> Vec<f32> {
    (0..nu).flat_map(|u| ids.iter().map(move |id| wiggle(*id, step, u))).collect()
}

/// Initial positions `[nq][n]`, a little different for every identity.
fn poses(model: &Model, ids: &[usize]) -> Vec<f32> {
    (0..model.nq)
        .flat_map(|q| ids.iter().map(move |id| (q, *id)))
        .map(|(q, id)| model.qpos0[q] as f32 + 0.02 * wiggle(id, 1000, q))
        .collect()
}
