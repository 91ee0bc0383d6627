//! One world over one control step.

use super::build::Layout;
use super::kinematics::{Frame, Kinematics};
use super::sets::{Sets, Workspace};
use ostler_engine::physics::{Limits, fault};
use ostler_model::Model;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A world, and room for its readings.
pub(super) struct World {
    pub sets: Sets,
    pub work: Workspace,
    pub scratch: Scratch,
}

/// The last good reading of a world.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    pub qpos: Vec<f32>,
    pub qvel: Vec<f32>,
    pub ctrl: Vec<f32>,
    pub force: Vec<f32>,
    pub contact: Vec<f32>,
    pub frames: Vec<Frame>,
    pub displacement: Vec<f32>,
}

impl Scratch {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            qpos: vec![0.0; model.nq],
            qvel: vec![0.0; model.nv],
            ctrl: vec![0.0; model.nu()],
            force: vec![0.0; model.nu()],
            contact: vec![0.0; model.geoms.len()],
            frames: vec![Frame::default(); model.bodies.len()],
            displacement: Vec::with_capacity(model.nv),
        }
    }
}

/// State that all worlds share during a step or reset.
pub(super) struct Shared<'a> {
    pub layout: &'a Layout,
    pub kinematics: &'a Kinematics,
    pub pristine: &'a Sets,
    pub limits: &'a Limits,
}

impl World {
    pub(super) fn new(model: &Model, pristine: &Sets) -> Self {
        Self { sets: pristine.clone(), work: Workspace::default(), scratch: Scratch::new(model) }
    }

    /// Steps with the controls in `scratch.ctrl` and reads the result into
    /// `scratch`. Returns fault bits; with any but `CONTROL` the reading is not to
    /// be used and the world waits for a reset.
    pub(super) fn advance(&mut self, shared: &Shared<'_>, substeps: usize) -> u32 {
        let mut bits = 0;
        for u in &mut self.scratch.ctrl {
            if !u.is_finite() {
                // rapier would make unbounded forces of it.
                *u = 0.0;
                bits |= fault::CONTROL;
            }
        }
        // The next reset replaces the whole world after a panic.
        match catch_unwind(AssertUnwindSafe(|| self.substeps(shared, substeps))) {
            Ok(more) => bits | more,
            Err(_) => bits | fault::ENGINE,
        }
    }

    fn substeps(&mut self, shared: &Shared<'_>, substeps: usize) -> u32 {
        let mut bits = 0;
        let layout = shared.layout;
        let s = &mut self.scratch;
        s.contact.fill(0.0);
        layout.read(&self.sets, &mut s.qpos, &mut s.qvel);
        for _ in 0..substeps {
            let finite =
                layout.drives.apply(&mut self.sets, &s.ctrl, &s.qpos, &s.qvel, &mut s.force);
            if !finite {
                bits |= fault::CONTROL;
            }
            self.sets.step(layout, &mut self.work);
            if !self.work.pipeline.quarantine().is_empty() {
                return bits | fault::ENGINE;
            }
            layout.read(&self.sets, &mut s.qpos, &mut s.qvel);
            if !s.qpos.iter().chain(&s.qvel).all(|x| x.is_finite()) {
                return bits | fault::NON_FINITE;
            }
            add_contacts(&self.sets, &mut s.contact);
        }
        if substeps > 0 {
            let per_newton = 1.0 / (layout.params.dt * substeps as f32);
            for c in &mut s.contact {
                *c *= per_newton;
            }
        }
        shared.kinematics.frames(&s.qpos, &s.qvel, &mut s.frames);
        bits | shared.bounds(s)
    }

    /// Puts the world at `scratch.qpos`, `scratch.qvel`, free of history. Positions
    /// that are not finite leave it in the initial pose with a fault.
    pub(super) fn reset(&mut self, shared: &Shared<'_>, initial: &[f32], broken: bool) -> u32 {
        let s = &mut self.scratch;
        let mut bits = 0;
        if !s.qpos.iter().chain(&s.qvel).all(|x| x.is_finite()) {
            s.qpos.copy_from_slice(initial);
            s.qvel.fill(0.0);
            bits |= fault::NON_FINITE;
        }
        s.contact.fill(0.0);
        s.force.fill(0.0);
        if broken {
            // A panic may have left work half done in the buffers too.
            self.work = Workspace::default();
        }
        let (sets, layout) = (&mut self.sets, shared.layout);
        let done = catch_unwind(AssertUnwindSafe(|| {
            sets.clone_from(shared.pristine);
            layout.write(sets, &s.qpos, &s.qvel, &mut s.displacement);
        }));
        if done.is_err() {
            bits |= fault::ENGINE;
        }
        layout.normalize(&mut s.qpos);
        shared.kinematics.frames(&s.qpos, &s.qvel, &mut s.frames);
        bits | shared.bounds(s)
    }
}

/// Adds each pair's normal impulses to both geoms.
fn add_contacts(sets: &Sets, contact: &mut [f32]) {
    for pair in sets.narrow_phase.contact_pairs() {
        let impulse = pair.total_impulse_magnitude();
        if impulse > 0.0 {
            for handle in [pair.collider1, pair.collider2] {
                if let Some(collider) = sets.colliders.get(handle) {
                    contact[collider.user_data as usize] += impulse;
                }
            }
        }
    }
}

impl Shared<'_> {
    /// Fault bits of a reading that is finite.
    fn bounds(&self, s: &Scratch) -> u32 {
        let mut bits = 0;
        let beyond = |v: &[f32; 3], limit: f32| {
            let squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
            squared > limit * limit || squared.is_nan()
        };
        let limits = self.limits;
        let bodies = limits.body_speed.iter().zip(&limits.body_position);
        for (f, (speed, position)) in s.frames.iter().zip(bodies) {
            if beyond(&f.lin, *speed) || beyond(&f.ang, *speed) {
                bits |= fault::SPEED;
            }
            if beyond(&f.pos, *position) {
                bits |= fault::POSITION;
            }
        }
        let [fast, far] = limits.own_beyond(s.qvel.iter().copied(), s.qpos.iter().copied());
        if fast {
            bits |= fault::SPEED;
        }
        if far {
            bits |= fault::POSITION;
        }
        bits
    }
}
