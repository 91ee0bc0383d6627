//! Which number broke a world; numbers that are to break one.

use super::Rapier;
use ostler_engine::physics::evidence::{self, Evidence, Part};
use ostler_engine::physics::fault;
use ostler_engine::physics::limits::farthest;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Rapier {
    /// See [`ostler_engine::physics::Physics::diagnose`]. A world's last reading, good or bad, is still in
    /// its scratch memory.
    pub(super) fn evidence(&self, env: usize, ctrl: &[f32]) -> Option<Evidence> {
        let s = &self.worlds.get(env)?.scratch;
        let bits = *self.state.fault.get(env)?;
        let found = evidence::bad_state(s.qpos.iter().copied(), s.qvel.iter().copied());
        if found.is_some() {
            return found;
        }
        let norm = |v: &[f32; 3]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        let l = &self.limits;
        if bits & fault::SPEED != 0 {
            // A joint with a limit of its own says more than the body that it moves.
            let own = farthest(s.qvel.iter().copied(), &l.own_speed);
            if let Some((i, value)) = own.filter(|(i, x)| x.abs() > l.own_speed[*i]) {
                let part = Part::Qvel(i);
                return Some(Evidence { part, value });
            }
            let speeds = s.frames.iter().map(|f| norm(&f.lin).max(norm(&f.ang)));
            let (i, value) = farthest(speeds, &l.body_speed)?;
            let part = Part::BodySpeed(i);
            return Some(Evidence { part, value });
        }
        if bits & fault::POSITION != 0 {
            let own = farthest(s.qpos.iter().copied(), &l.own_position);
            if let Some((i, value)) = own.filter(|(i, x)| x.abs() > l.own_position[*i]) {
                let part = Part::Qpos(i);
                return Some(Evidence { part, value });
            }
            let places = s.frames.iter().map(|f| norm(&f.pos));
            let (i, value) = farthest(places, &l.body_position)?;
            let part = Part::BodyPosition(i);
            return Some(Evidence { part, value });
        }
        evidence::of_state(&self.state, env, ctrl, None)
    }

    /// Puts one world where it is with one other number; its contacts start anew.
    pub(super) fn set(&mut self, env: usize, part: Part, value: f32) {
        let Some(world) = self.worlds.get_mut(env) else {
            return;
        };
        let s = &mut world.scratch;
        self.layout.read(&world.sets, &mut s.qpos, &mut s.qvel);
        let entry = match part {
            Part::Qpos(i) => s.qpos.get_mut(i),
            Part::Qvel(i) => s.qvel.get_mut(i),
            _ => None,
        };
        let Some(entry) = entry else {
            return;
        };
        *entry = value;
        let (sets, layout, pristine) = (&mut world.sets, &self.layout, &self.pristine);
        let done = catch_unwind(AssertUnwindSafe(|| {
            sets.clone_from(pristine);
            layout.write(sets, &s.qpos, &s.qvel, &mut s.displacement);
        }));
        if done.is_err() {
            self.state.fault[env] |= fault::ENGINE;
        }
    }
}
