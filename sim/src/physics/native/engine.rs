//! N worlds stepped by a kernel, behind [`Physics`].

use super::choose::{Choice, choose, tell};
use super::ffi::{Robot, Solver, StepArgs, Work};
use super::lower::{LowerOptions, lower};
use super::specialize::Background;
use super::tables::Plan;
use super::{snapshot, unsupported};
use crate::config::SimConfig;
use crate::memory::{MemoryError, zeroed};
use crate::model::Model;
use crate::physics::kinematics::{Frame, Kinematics};
use crate::physics::pool::{Pool, worker};
use crate::physics::{
    Evidence, Limits, Part, Physics, PhysicsError, Shortfalls, SnapshotError, State, fault,
};
use std::sync::{Arc, Mutex, TryLockError};

/// Most Newton iterations of a time step; the few that need more are counted
/// ([`NativePhysics::unsolved`]).
pub(crate) const ITERATIONS: i32 = 12;
/// Improvements of the scaled cost below this are rounding errors in single
/// precision.
pub(crate) const TOLERANCE: f64 = 1e-8;
/// How constraints are solved.
pub(super) const SOLVER: Solver = Solver {
    iterations: ITERATIONS,
    tolerance: TOLERANCE,
};

/// N worlds of one robot.
#[derive(Debug)]
pub struct NativePhysics {
    robot: Robot<f32>,
    kernel: String,
    /// Stopped with the worlds if it is not done by then.
    _background: Option<Background>,
    kinematics: Kinematics,
    pub(super) state: State,
    /// One per thread of the pool; a part of a loop takes any that is free.
    work: Vec<Mutex<Work>>,
    pool: Arc<Pool>,
    frames: Vec<Frame>,
    qpos: Vec<f32>,
    qvel: Vec<f32>,
    /// What the kernel holds the worlds against.
    pub(super) limits: Limits,
    notes: Vec<String>,
    /// What a snapshot must have been taken from.
    pub(super) fingerprint: [u8; 32],
}

/// The tables of `model`.
///
/// # Errors
/// [`PhysicsError::Unsupported`] for what the native engine cannot do, by name.
pub(super) fn plan(model: &Model, config: &SimConfig) -> Result<Plan, PhysicsError> {
    let options = LowerOptions {
        timestep: (config.dt > 0.0).then_some(config.dt),
        ..LowerOptions::default()
    };
    Ok(lower(model, &options)?)
}

/// N worlds of `model` in its initial pose.
///
/// # Errors
/// [`PhysicsError::Unsupported`] for what the native engine cannot do, by name;
/// [`PhysicsError::Memory`] when N worlds do not fit.
pub fn new(
    model: &Arc<Model>,
    config: &SimConfig,
    num_envs: usize,
    pool: &Arc<Pool>,
) -> Result<NativePhysics, PhysicsError> {
    let plan = plan(model, config)?;
    let fingerprint = snapshot::fingerprint(&plan);
    let Choice {
        functions,
        name: kernel,
        note,
        background,
    } = choose(&plan, config, &mut tell())?;
    let robot = Robot::<f32>::new(functions, plan)
        .ok_or_else(|| unsupported("a kernel of another version".into()))?;
    if i32::try_from(num_envs).is_err() {
        return Err(unsupported(format!("{num_envs} environments in one batch")));
    }
    let work = (0..pool.threads())
        .map(|_| {
            robot.work().map(Mutex::new).map_err(|bytes| MemoryError {
                what: "the physics kernel".into(),
                bytes,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let buf = |what: &str, k: usize| zeroed::<f32>(what, k.saturating_mul(num_envs));
    let mut physics = NativePhysics {
        kernel,
        _background: background,
        kinematics: Kinematics::new(model),
        state: State::new(model, num_envs)?,
        work,
        pool: Arc::clone(pool),
        frames: vec![Frame::default(); model.bodies.len()],
        qpos: vec![0.0; model.nq],
        qvel: vec![0.0; model.nv],
        limits: Limits::of(config, model)?,
        notes: note.into_iter().collect(),
        fingerprint,
        robot,
    };
    let mut initial = buf("qpos", model.nq)?;
    for (row, x) in initial.chunks_mut(num_envs.max(1)).zip(&model.qpos0) {
        row.fill(*x as f32);
    }
    let rest = buf("qvel", model.nv)?;
    let mut all = zeroed::<u8>("flags", num_envs)?;
    all.fill(1);
    physics.reset(&all, &initial, &rest);
    Ok(physics)
}

impl NativePhysics {
    /// Calls `f` with a working memory that no other thread uses.
    pub(super) fn with_work(&self, f: impl FnOnce(&Robot<f32>, &mut Work)) {
        with_free(&self.work, |work| f(&self.robot, work));
    }

    /// The kernel in use, as logs and the resolved configuration name it.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Control steps so far in which a contact found no room, per environment.
    pub fn overflow(&self) -> &[u32] {
        &self.state.overflow
    }

    /// Time steps so far whose solve stopped at the cap on iterations, per
    /// environment.
    pub fn unsolved(&self) -> &[u32] {
        &self.state.unsolved
    }

    /// Bytes held per environment, and bytes of working memory per thread.
    pub fn bytes(&self) -> (usize, usize) {
        let bytes: usize = self.state.columns().map(|(_, b)| b.len()).sum();
        (bytes / self.state.num_envs.max(1), self.robot.work_bytes())
    }
}

impl Physics for NativePhysics {
    fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        let plan = self.robot.plan();
        let n = self.state.num_envs;
        assert_eq!(ctrl.len(), plan.nu * n, "ctrl is [nu][N]");
        let args = StepArgs {
            stride: n as i32,
            substeps: i32::try_from(substeps).unwrap_or(i32::MAX),
            solver: SOLVER,
            top_speed: self.limits.speed.as_ptr(),
            top_place: self.limits.position.as_ptr(),
            ctrl: ctrl.as_ptr(),
            world: self.state.pointers(),
        };
        let lanes = self.robot.lanes();
        let blocks = n.div_ceil(lanes);
        // Several parts per thread, so that a slow one does not hold up the rest.
        let size = blocks.div_ceil(self.pool.threads() * 8).max(1) * lanes;
        let (robot, work) = (&self.robot, &self.work);
        let stepped = self.pool.try_run(n.div_ceil(size), &|part| {
            let first = part * size;
            with_free(work, |work| {
                // SAFETY: `work` is this robot's and locked. The buffers are the
                // state's, [k][N] with the robot's k, borrowed mutably by this
                // function; the pool hands out every part once, and parts are disjoint
                // ranges of columns.
                unsafe { robot.step(work, &args, first, size.min(n - first)) }
            });
        });
        if let Err(e) = stepped {
            // Nobody knows how far the worlds came: all of them are to be reset.
            tracing::error!("{e}");
            self.state
                .fault
                .iter_mut()
                .for_each(|f| *f |= fault::ENGINE);
        }
    }

    fn diagnose(&self, env: usize, ctrl: &[f32], substeps: usize) -> Option<Evidence> {
        self.evidence(env, ctrl, substeps)
    }

    fn can_be_poked(&self) -> bool {
        true
    }

    fn poke(&mut self, env: usize, part: Part, value: f32) {
        let n = self.state.num_envs;
        let entry = match part {
            Part::Qpos(i) => self.state.qpos.get_mut(i * n + env),
            Part::Qvel(i) => self.state.qvel.get_mut(i * n + env),
            _ => None,
        };
        if let Some(x) = entry {
            *x = value;
        }
    }

    fn reset(&mut self, mask: &[u8], qpos: &[f32], qvel: &[f32]) {
        let n = self.state.num_envs;
        let (nq, nv) = (self.qpos.len(), self.qvel.len());
        assert_eq!(mask.len(), n, "mask is [N]");
        assert_eq!(qpos.len(), nq * n, "qpos is [nq][N]");
        assert_eq!(qvel.len(), nv * n, "qvel is [nv][N]");
        let state = &mut self.state;
        for e in (0..n).filter(|e| mask[*e] != 0) {
            for (i, q) in self.qpos.iter_mut().enumerate() {
                *q = qpos[i * n + e];
                state.qpos[i * n + e] = *q;
            }
            for (i, v) in self.qvel.iter_mut().enumerate() {
                *v = qvel[i * n + e];
                state.qvel[i * n + e] = *v;
            }
            state.begin(e);
            self.kinematics
                .frames(&self.qpos, &self.qvel, &mut self.frames);
            for (b, frame) in self.frames.iter().enumerate() {
                for k in 0..4 {
                    state.body_quat[(4 * b + k) * n + e] = frame.quat[k];
                }
                for k in 0..3 {
                    state.body_pos[(3 * b + k) * n + e] = frame.pos[k];
                    state.body_lin_vel[(3 * b + k) * n + e] = frame.lin[k];
                    state.body_ang_vel[(3 * b + k) * n + e] = frame.ang[k];
                }
            }
        }
    }

    fn timestep(&self) -> f64 {
        self.robot.plan().timestep
    }

    fn kernel(&self) -> Option<&str> {
        Some(&self.kernel)
    }

    fn measures(&self) -> bool {
        true
    }

    fn shortfalls(&self) -> Shortfalls {
        let sum = |counts: &[u32]| counts.iter().map(|n| u64::from(*n)).sum();
        Shortfalls {
            contact_overflow: sum(&self.state.overflow),
            unsolved: sum(&self.state.unsolved),
        }
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

    fn state_mut(&mut self) -> Option<&mut State> {
        Some(&mut self.state)
    }
}

/// Calls `f` with a working memory that no other thread uses. There is one per
/// thread, so one is free: usually the thread's own, which is in its cache.
fn with_free(work: &[Mutex<Work>], f: impl FnOnce(&mut Work)) {
    let (before, from) = work.split_at(worker() % work.len().max(1));
    loop {
        for slot in from.iter().chain(before) {
            match slot.try_lock() {
                Ok(mut work) => return f(&mut work),
                // A kernel leaves nothing behind that the next call reads.
                Err(TryLockError::Poisoned(e)) => return f(&mut e.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        std::hint::spin_loop();
    }
}
