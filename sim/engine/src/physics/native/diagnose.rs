//! Which number broke a world.
//!
//! The kernel leaves a world whose numbers are no longer finite as it was before the
//! control step, so the step is taken again here, one time step after the other, until
//! the bad number shows.

use super::engine::NativePhysics;
use super::ffi::{Robot, Work};
use crate::device::Address;
use crate::kernels::{EvalArgs, Ground, Solver};
use crate::physics::evidence::{self, Evidence, Part};
use crate::physics::fault;

/// One world's state between two time steps.
pub(super) struct State {
    pub qpos: Vec<f32>,
    pub qvel: Vec<f32>,
    pub act: Vec<f32>,
    pub varied: Vec<f32>,
}

impl NativePhysics {
    /// See [`crate::physics::Physics::diagnose`].
    pub(super) fn evidence(&self, env: usize, ctrl: &[f32], substeps: usize) -> Option<Evidence> {
        let n = self.state.num_envs;
        let bits = *self.state.fault.get(env)?;
        let shown = evidence::of_state(&self.state, env, ctrl, Some(&self.limits));
        if shown.is_some() || bits & fault::NON_FINITE == 0 {
            return shown;
        }
        let column = |buffer: &[f32]| buffer.iter().skip(env).step_by(n).copied().collect();
        let mut now = State {
            qpos: column(&self.state.qpos),
            qvel: column(&self.state.qvel),
            act: column(&self.state.act),
            varied: column(&self.state.varied),
        };
        let mut ctrl: Vec<f32> = column(ctrl);
        for u in ctrl.iter_mut().filter(|u| evidence::is_bad(**u)) {
            *u = 0.0;
        }
        for _ in 0..substeps {
            let (next, qacc) = self.evaluate(&now, &ctrl);
            if let Some((i, value)) = evidence::bad(next.act.iter().copied()) {
                let part = Part::Activation(i);
                return Some(Evidence { part, value });
            }
            let accelerated = qacc.iter().copied();
            if accelerated.clone().all(evidence::is_bad) {
                // One number has infected the rest: the fastest joint is the likeliest.
                let (i, _) = evidence::largest(now.qvel.iter().copied())?;
                let part = Part::Qvel(i);
                let value = qacc[i];
                return Some(Evidence { part, value });
            }
            let found = evidence::bad_state(std::iter::empty(), accelerated).or_else(|| {
                evidence::bad_state(next.qpos.iter().copied(), next.qvel.iter().copied())
            });
            if found.is_some() {
                return found;
            }
            now = next;
        }
        None
    }

    /// One time step: the next state, and the accelerations in between.
    fn evaluate(&self, now: &State, ctrl: &[f32]) -> (State, Vec<f32>) {
        let how = (self.solver, self.ground());
        self.with_work(|robot, work| robot.evaluate_one(work, how, now, ctrl, None))
    }
}

impl Robot<f32> {
    /// One time step: the next state, and the accelerations in between. `met`: 1 for the pairs
    /// that have contacts within their margins, all `[npair]` of the robot.
    pub(super) fn evaluate_one(
        &self,
        work: &mut Work,
        (solver, ground): (Solver, Ground),
        now: &State,
        ctrl: &[f32],
        met: Option<&mut [u32]>,
    ) -> (State, Vec<f32>) {
        let plan = self.plan();
        assert!(met.as_ref().is_none_or(|met| met.len() == plan.npair), "met is [npair]");
        let mut next = State {
            qpos: vec![0.0; now.qpos.len()],
            qvel: vec![0.0; now.qvel.len()],
            act: vec![0.0; now.act.len()],
            varied: now.varied.clone(),
        };
        let mut qacc = vec![0.0; now.qvel.len()];
        let mut sense: Vec<f32> = vec![0.0; plan.nsense];
        let (mut ncon, mut iterations, mut flags) = ([0], [0], [0]);
        let args = EvalArgs {
            stride: 1,
            solver,
            reserved: 0,
            ground,
            qpos: now.qpos.as_ptr() as Address,
            qvel: now.qvel.as_ptr() as Address,
            act: now.act.as_ptr() as Address,
            ctrl: ctrl.as_ptr() as Address,
            varied: now.varied.as_ptr() as Address,
            qacc: qacc.as_mut_ptr() as Address,
            sense: sense.as_mut_ptr() as Address,
            qpos_next: next.qpos.as_mut_ptr() as Address,
            qvel_next: next.qvel.as_mut_ptr() as Address,
            act_next: next.act.as_mut_ptr() as Address,
            ncon: ncon.as_mut_ptr() as Address,
            iterations: iterations.as_mut_ptr() as Address,
            flags: flags.as_mut_ptr() as Address,
            met: met.map_or(0, |met| met.as_mut_ptr() as Address),
        };
        // SAFETY: `work` is this robot's; the buffers are [k][1] with the robot's k, `met` is as
        // long as checked, borrowed here alone until the call returns.
        unsafe { self.evaluate(work, &args, 1) };
        (next, qacc)
    }
}
