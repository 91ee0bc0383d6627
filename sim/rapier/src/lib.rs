//! rapier3d multibodies behind [`Physics`].
//!
//! Reading order: `joints` (bodies and joints become links), `build` (links become
//! a pristine rapier world), `step` (one world over a control step), `actuate` and
//! `state` (forces in, coordinates out), `snapshot`. Worlds are stepped in blocks
//! over a [`Pool`]; a world never sees another, so results do not depend on the
//! number of threads, the block or the neighbours.

#![cfg_attr(not(test), warn(unreachable_pub))]

mod actuate;
mod build;
mod diagnose;
mod evaluate;
mod filter;
mod joints;
mod kinematics;
mod lanes;
mod sets;
mod shapes;
mod snapshot;
mod state;
mod step;
mod support;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod test_support;
#[cfg(test)]
mod tests;

use build::Layout;
pub use evaluate::evaluate;
use kinematics::{Frame, Kinematics};
use lanes::Columns;
use ostler_base::memory::{MemoryError, zeroed};
use ostler_engine::config::SimConfig;
use ostler_engine::physics::pool::Pool;
use ostler_engine::physics::{
    Evidence, Limits, Part, Physics, PhysicsError, SnapshotError, State, fault,
};
use ostler_model::Model;
use sets::{Sets, Workspace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use step::{Scratch, Shared, World};

/// Environments per block at most: their floats in one row fill a cache line.
const BLOCK: usize = 16;

/// N rapier worlds of one model.
struct Rapier {
    layout: Layout,
    kinematics: Kinematics,
    pristine: Sets,
    worlds: Vec<World>,
    state: State,
    initial: Vec<f32>,
    pool: Arc<Pool>,
    dt: f64,
    limits: Limits,
    notes: Vec<String>,
    /// Identity of the worlds of a snapshot.
    fingerprint: [u8; 32],
    /// Of a world in a snapshot, before its first contact.
    world_bytes: usize,
    /// Where snapshots are put together.
    parts: Mutex<Vec<snapshot::Part>>,
}

/// N rapier worlds of `model`, in its initial pose.
///
/// # Errors
/// [`PhysicsError::Unsupported`] for parts of the model that rapier cannot
/// simulate, or whose sizes make it fail; [`PhysicsError::Memory`] when N worlds do not
/// fit.
pub fn new(
    model: &Arc<Model>,
    config: &SimConfig,
    num_envs: usize,
    pool: &Arc<Pool>,
) -> Result<Box<dyn Physics>, PhysicsError> {
    // Shapes of absurd sizes make rapier panic; nothing outlives the attempt.
    let built = catch_unwind(AssertUnwindSafe(|| build_worlds(model, config, num_envs, pool)));
    let built = built.map_err(|_| PhysicsError::Unsupported {
        engine: "rapier",
        what: "this model: it fails on its first step, as it does with sizes or positions \
               far from a robot's (1e-3 to 1e3 m)"
            .into(),
    })?;
    Ok(Box::new(built?))
}

fn build_worlds(
    model: &Arc<Model>,
    config: &SimConfig,
    num_envs: usize,
    pool: &Arc<Pool>,
) -> Result<Rapier, PhysicsError> {
    let dt = config.timestep(model);
    if !(dt.is_finite() && dt > 0.0) {
        return Err(PhysicsError::Unsupported {
            engine: "rapier",
            what: format!("a time step of {dt} s"),
        });
    }
    let (layout, mut pristine) = build::build(model, config, dt)?;
    settle(&layout, &mut pristine);
    let kinematics = Kinematics::new(model);
    let mut worlds = Vec::new();
    worlds.try_reserve_exact(num_envs).map_err(|_| MemoryError {
        what: "rapier worlds".to_string(),
        bytes: num_envs.saturating_mul(std::mem::size_of::<World>()),
    })?;
    // The worlds allocate one by one, and a failure there would end the process:
    // asked for at once and given back, it is an error. A quarter of what a world holds
    // is in its bytes, or more: small numbers take one there.
    let (fingerprint, size) = snapshot::fingerprint(&pristine, config, dt)?;
    let each = std::mem::size_of::<World>().saturating_add(4 * size);
    probe(num_envs.saturating_mul(each))?;
    worlds.extend((0..num_envs).map(|_| World::new(model, &pristine)));
    let mut rapier = Rapier {
        layout,
        kinematics,
        pristine,
        worlds,
        state: State::new(model, num_envs)?,
        initial: model.qpos0.iter().map(|x| *x as f32).collect(),
        pool: Arc::clone(pool),
        dt,
        limits: Limits::of(config, model)?,
        notes: support::notes(model),
        fingerprint,
        world_bytes: size,
        parts: Mutex::new(Vec::new()),
    };
    let mut all = zeroed::<u32>("flags", num_envs)?;
    all.fill(1);
    let buf = |what: &str, k: usize| zeroed::<f32>(what, k.saturating_mul(num_envs));
    let mut qpos = buf("qpos", model.nq)?;
    for (row, x) in qpos.chunks_mut(num_envs.max(1)).zip(&rapier.initial) {
        row.fill(*x);
    }
    let qvel = buf("qvel", model.nv)?;
    rapier.reset(&all, &qpos, &qvel);
    Ok(rapier)
}

/// Whether so much memory can be had now.
fn probe(bytes: usize) -> Result<(), MemoryError> {
    let mut all: Vec<u8> = Vec::new();
    let had = all.try_reserve_exact(bytes);
    // Else an optimiser might see that nobody uses it, and not ask.
    std::hint::black_box(&mut all);
    had.map_err(|_| MemoryError { what: "rapier worlds".to_string(), bytes })
}

/// Lets rapier register the new bodies, joints and shapes, so that clones need not:
/// a step of no length.
fn settle(layout: &Layout, pristine: &mut Sets) {
    let mut work = Workspace::default();
    let mut params = layout.params;
    params.dt = 0.0;
    pristine.step_with(layout, &params, &mut work);
}

/// The buffers of [`State`], to be written by environment.
struct Out<'a> {
    qpos: Columns<'a, f32>,
    qvel: Columns<'a, f32>,
    body_pos: Columns<'a, f32>,
    body_quat: Columns<'a, f32>,
    body_lin_vel: Columns<'a, f32>,
    body_ang_vel: Columns<'a, f32>,
    contact_force: Columns<'a, f32>,
    actuator_force: Columns<'a, f32>,
    fault: Columns<'a, u32>,
    worlds: Columns<'a, World>,
}

impl<'a> Out<'a> {
    fn new(state: &'a mut State, worlds: &'a mut [World]) -> Self {
        let n = state.num_envs;
        Self {
            qpos: Columns::new(&mut state.qpos, n),
            qvel: Columns::new(&mut state.qvel, n),
            body_pos: Columns::new(&mut state.body_pos, n),
            body_quat: Columns::new(&mut state.body_quat, n),
            body_lin_vel: Columns::new(&mut state.body_lin_vel, n),
            body_ang_vel: Columns::new(&mut state.body_ang_vel, n),
            contact_force: Columns::new(&mut state.contact_force, n),
            actuator_force: Columns::new(&mut state.actuator_force, n),
            fault: Columns::new(&mut state.fault, n),
            worlds: Columns::new(worlds, n),
        }
    }

    /// Writes a world's reading into column `e`.
    ///
    /// # Safety
    /// No other column `e` may exist.
    unsafe fn write(&self, e: usize, s: &Scratch) {
        // SAFETY: the caller's promise, for each buffer.
        unsafe {
            self.qpos.column(e).write(0, &s.qpos);
            self.qvel.column(e).write(0, &s.qvel);
            self.contact_force.column(e).write(0, &s.contact);
            self.actuator_force.column(e).write(0, &s.force);
            let mut pos = self.body_pos.column(e);
            let mut quat = self.body_quat.column(e);
            let mut lin = self.body_lin_vel.column(e);
            let mut ang = self.body_ang_vel.column(e);
            for (b, f) in s.frames.iter().enumerate() {
                let Frame { pos: p, quat: q, lin: l, ang: a } = f;
                pos.write(3 * b, p);
                quat.write(4 * b, q);
                lin.write(3 * b, l);
                ang.write(3 * b, a);
            }
        }
    }
}

impl Rapier {
    /// Calls `f(e, world, fault, out)` for every environment, in blocks over the
    /// pool.
    fn for_each(&mut self, f: &(dyn Fn(usize, &Shared<'_>, &mut World, &mut u32) -> bool + Sync)) {
        let n = self.worlds.len();
        let threads = self.pool.threads();
        // Several blocks per thread, so that a slow one does not hold up the rest.
        let block = n.div_ceil(threads * 4).clamp(1, BLOCK);
        let shared = Shared {
            layout: &self.layout,
            kinematics: &self.kinematics,
            pristine: &self.pristine,
            limits: &self.limits,
        };
        let out = Out::new(&mut self.state, &mut self.worlds);
        self.pool.run(n.div_ceil(block), &|part| {
            for e in part * block..((part + 1) * block).min(n) {
                // SAFETY: the pool hands out every part once, and parts are disjoint
                // ranges of environments, so no other column `e` exists.
                unsafe {
                    let mut world = out.worlds.column(e);
                    let mut fault = out.fault.column(e);
                    if f(e, &shared, world.at(0), fault.at(0)) {
                        out.write(e, &world.at(0).scratch);
                    }
                }
            }
        });
    }
}

impl Physics for Rapier {
    fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        let n = self.state.num_envs;
        self.for_each(&|e, shared, world, fault| {
            if *fault & !fault::CONTROL != 0 {
                return false;
            }
            for (u, value) in world.scratch.ctrl.iter_mut().enumerate() {
                *value = ctrl.get(u * n + e).copied().unwrap_or(f32::NAN);
            }
            *fault |= world.advance(shared, substeps);
            *fault & !fault::CONTROL == 0
        });
    }

    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]) {
        let n = self.state.num_envs;
        let initial = std::mem::take(&mut self.initial);
        self.for_each(&|e, shared, world, fault| {
            if mask.get(e).is_none_or(|m| *m == 0) {
                return false;
            }
            let fill = |to: &mut [f32], from: &[f32]| {
                for (i, value) in to.iter_mut().enumerate() {
                    *value = from.get(i * n + e).copied().unwrap_or(f32::NAN);
                }
            };
            fill(&mut world.scratch.qpos, qpos);
            fill(&mut world.scratch.qvel, qvel);
            *fault = world.reset(shared, &initial, *fault & fault::ENGINE != 0);
            true
        });
        self.initial = initial;
    }

    fn columns_mut(&mut self) -> Option<&mut State> {
        Some(&mut self.state)
    }

    fn timestep(&self) -> f64 {
        self.dt
    }

    fn diagnose(&self, env: usize, ctrl: &[f32], _: usize) -> Option<Evidence> {
        self.evidence(env, ctrl)
    }

    fn can_be_poked(&self) -> bool {
        true
    }

    fn poke(&mut self, env: usize, part: Part, value: f32) {
        self.set(env, part, value);
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        snapshot::capture(self, out)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        snapshot::restore(self, bytes, None).map(|_| ())
    }

    fn restore_range(&mut self, bytes: &[u8], from: usize) -> Result<usize, SnapshotError> {
        snapshot::restore(self, bytes, Some(from))
    }
}
