//! N worlds stepped by a kernel, behind [`Physics`].

use super::choose::{Choice, choose, tell};
use super::ffi::{Robot, Work};
use super::lower::{LowerOptions, lower};
use super::solver::{solver, solver_note};
use super::specialize::Background;
use super::tables::RobotTables;
use super::{snapshot, unsupported};
use crate::config::SimConfig;
use crate::device::Address;
use crate::kernels::{EnvArgs, Ground, Solver};
use crate::phases::{BLOCK, place};
use crate::physics::ground;
use crate::physics::per_thread::PerThread;
use crate::physics::pool::Pool;
use crate::physics::{
    Evidence, Limits, Overlap, Part, Physics, PhysicsError, Shortfalls, SnapshotError, State,
    StepArgs, Stepper, fault,
};
use crate::state::{Sizes, Tables};
use bytemuck::Zeroable;
use ostler_base::memory::{MemoryError, zeroed};
use ostler_model::Model;
use ostler_model::terrain::Terrain;
use std::sync::Arc;

/// N worlds of one robot.
#[derive(Debug)]
pub struct NativePhysics {
    robot: Robot<f32>,
    kernel: String,
    /// Stopped with the worlds if it is not done by then.
    _background: Option<Background>,
    sizes: Sizes,
    /// The robot's kinematics.
    tables: Tables,
    pub(super) state: State,
    /// How constraints are solved.
    pub(super) solver: Solver,
    /// Delays of the next step, or none.
    delays: Vec<f32>,
    /// Activations of the next reset.
    activations: Vec<f32>,
    work: PerThread<Work>,
    pool: Arc<Pool>,
    /// The ground of all worlds.
    terrain: Option<Arc<Terrain>>,
    /// Limits that the kernel holds the worlds against.
    pub(super) limits: Limits,
    notes: Vec<String>,
    /// Identity of the worlds of a snapshot.
    pub(super) fingerprint: [u8; 32],
}

/// The tables of `model`.
///
/// # Errors
/// [`PhysicsError::Unsupported`] for features that the native engine lacks, by name.
pub(super) fn plan(model: &Model, config: &SimConfig) -> Result<RobotTables, PhysicsError> {
    let options = LowerOptions {
        timestep: (config.dt > 0.0).then_some(config.dt),
        ..LowerOptions::default()
    };
    Ok(lower(model, &options)?)
}

/// N worlds of `model` in its initial pose.
///
/// # Errors
/// [`PhysicsError::Unsupported`] for features that the native engine lacks, by name;
/// [`PhysicsError::Memory`] when N worlds do not fit.
pub fn new(
    model: &Arc<Model>,
    config: &SimConfig,
    num_envs: usize,
    pool: &Arc<Pool>,
) -> Result<NativePhysics, PhysicsError> {
    let plan = plan(model, config)?;
    let fingerprint = snapshot::fingerprint(&plan);
    let stiff = super::stiff::note(model, plan.timestep, model.options.integrator);
    let Choice { functions, name: kernel, note, background } = choose(&plan, config, &mut tell())?;
    let robot = Robot::<f32>::new(functions, plan)
        .ok_or_else(|| unsupported("a kernel of another version".into()))?;
    if i32::try_from(num_envs).is_err() {
        return Err(unsupported(format!("{num_envs} environments in one batch")));
    }
    let work = (0..pool.threads())
        .map(|_| {
            robot.work().map_err(|bytes| MemoryError { what: "the physics kernel".into(), bytes })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let buf = |what: &str, k: usize| zeroed::<f32>(what, k.saturating_mul(num_envs));
    let mut physics = NativePhysics {
        kernel,
        _background: background,
        sizes: Sizes::of(model),
        tables: Tables::of(model),
        state: State::new(model, num_envs)?,
        solver: solver(&model.options),
        delays: Vec::new(),
        activations: buf("act", model.na)?,
        work: PerThread::new(work),
        terrain: model.terrain.clone(),
        pool: Arc::clone(pool),
        limits: Limits::of(config, model)?,
        notes: note.into_iter().chain(stiff).chain(solver_note(model)).collect(),
        fingerprint,
        robot,
    };
    let mut initial = buf("qpos", model.nq)?;
    for (row, x) in initial.chunks_mut(num_envs.max(1)).zip(&model.qpos0) {
        row.fill(*x as f32);
    }
    for (row, x) in (physics.state.varied).chunks_mut(num_envs.max(1)).zip(model.varied_numbers()) {
        row.fill(x as f32);
    }
    physics.state.stale.fill(1);
    let rest = buf("qvel", model.nv)?;
    let mut all = zeroed::<u32>("flags", num_envs)?;
    all.fill(1);
    physics.reset(&all, &initial, &rest);
    Ok(physics)
}

impl NativePhysics {
    /// Calls `f` with a working memory that no other thread uses.
    pub(super) fn with_work<T>(&self, f: impl FnOnce(&Robot<f32>, &mut Work) -> T) -> T {
        self.work.with(|work| f(&self.robot, work))
    }

    /// The robot's tables.
    pub(super) fn plan(&self) -> &RobotTables {
        self.robot.plan()
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

    /// What all worlds stand on.
    pub(super) fn ground(&self) -> Ground {
        ground(self.terrain.as_deref())
    }

    /// Arguments of a step, but for controls and substeps.
    fn args(&mut self) -> StepArgs {
        StepArgs {
            stride: self.state.num_envs as i32,
            solver: self.solver,
            top_speed: self.limits.speed.as_ptr() as Address,
            top_place: self.limits.position.as_ptr() as Address,
            ground: self.ground(),
            world: self.state.addresses_mut(),
            ..StepArgs::zeroed()
        }
    }

    /// Bytes held per environment, and bytes of working memory per thread.
    pub fn bytes(&self) -> (usize, usize) {
        let bytes: usize = self.state.columns().map(|(_, b)| b.len()).sum();
        (bytes / self.state.num_envs.max(1), self.robot.work_bytes())
    }
}

impl Stepper for NativePhysics {
    unsafe fn step_block(&self, args: &StepArgs, first: usize, len: usize) {
        self.work.with(|work| {
            // SAFETY: `work` is this robot's and nobody else's. By the caller's promise the
            // buffers are the state's, [k][N] with the robot's k, and these columns are
            // this call's.
            unsafe { self.robot.step(work, args, first, len) }
        });
    }
}

impl Physics for NativePhysics {
    fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        let n = self.state.num_envs;
        assert_eq!(ctrl.len(), self.robot.plan().nu * n, "ctrl is [nu][N]");
        let args = StepArgs {
            substeps: i32::try_from(substeps).unwrap_or(i32::MAX),
            ctrl: ctrl.as_ptr() as Address,
            delays: match self.delays.len() == substeps * self.robot.plan().nredrawn * n {
                true => self.delays.as_ptr() as Address,
                false => 0,
            },
            ..self.args()
        };
        let lanes = self.robot.lanes();
        let blocks = n.div_ceil(lanes);
        // Several parts per thread, so that a slow one does not hold up the rest.
        let size = blocks.div_ceil(self.pool.threads() * 8).max(1) * lanes;
        let worlds = &*self;
        let stepped = self.pool.try_run(n.div_ceil(size), &|part| {
            let first = part * size;
            // SAFETY: the pool hands out every part once, and parts are disjoint ranges of
            // columns.
            unsafe { worlds.step_block(&args, first, size.min(n - first)) }
        });
        if let Err(e) = stepped {
            // Nobody knows how far the worlds came: all of them are to be reset.
            tracing::error!("{e}");
            self.state.fault.iter_mut().for_each(|f| *f |= fault::ENGINE);
        }
    }

    fn delay(&mut self, steps: &[f32]) {
        self.delays.clear();
        self.delays.extend_from_slice(steps);
    }

    fn stepper(&self) -> Option<&dyn Stepper> {
        Some(self)
    }

    fn step_args(&mut self) -> Option<StepArgs> {
        Some(self.args())
    }

    fn diagnose(&self, env: usize, ctrl: &[f32], substeps: usize) -> Option<Evidence> {
        self.evidence(env, ctrl, substeps)
    }

    fn inside(&self, poses: &[Vec<f32>], least: f64) -> Vec<Vec<Overlap>> {
        self.inside_each_other(poses, least).unwrap_or_default()
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

    fn activate(&mut self, act: &[f32]) {
        assert_eq!(act.len(), self.activations.len(), "act is [na][N]");
        self.activations.copy_from_slice(act);
    }

    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]) {
        let (n, sizes) = (self.state.num_envs, &self.sizes);
        assert_eq!(mask.len(), n, "mask is [N]");
        assert_eq!(qpos.len(), sizes.nq * n, "qpos is [nq][N]");
        assert_eq!(qvel.len(), sizes.nv * n, "qvel is [nv][N]");
        let mut args = EnvArgs {
            n: n as i32,
            size: sizes.words(),
            tables: self.tables.addresses(),
            physics: self.args(),
            ..EnvArgs::zeroed()
        };
        args.buffers.mask = mask.as_ptr() as Address;
        args.buffers.new_qpos = qpos.as_ptr() as Address;
        args.buffers.new_qvel = qvel.as_ptr() as Address;
        args.buffers.new_act = self.activations.as_ptr() as Address;
        for first in (0..n).step_by(BLOCK) {
            // SAFETY: the buffers are those of the sizes above, for n worlds, and this
            // thread's alone; of the tables, the robot's are filled.
            unsafe { place(&args, first, BLOCK.min(n - first)) };
        }
        self.activations.fill(0.0);
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

    fn varies(&self) -> bool {
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
