//! Physics and task joined: actions in, observations and rewards out.

mod buffers;
mod causes;
mod change;
mod demonstrate;
mod examine;
mod explained;
mod inject;
mod lanes;
pub mod mirror;
pub mod on_device;
mod rehearse;
pub(crate) mod results;
mod snapshot;
mod spec;
mod stats;
mod step;
mod watch;

use crate::config::file::Simulation;
use crate::config::{Backend, ConfigError, EnvConfig, SimConfig, TaskConfig};
pub use crate::demonstrations::Demonstrations;
pub use crate::spaces::{ActionSpace, EventSpec, Groups, ObsGroup, ObsRow};
use crate::task::event::EventCost;
use crate::task::native::Library;
use crate::task::pose::Pose;
use crate::task::{Task, limits};
use buffers::{Live, Work};
use causes::Causes;
use inject::Faults;
pub use inject::{Injection, Value, What, When, Which};
pub use on_device::{DeviceEnv, PolicyNoise, StepAddresses};
use ostler_base::memory::MemoryError;
use ostler_engine::physics::native::InstructionSet;
use ostler_engine::physics::pool::Pool;
use ostler_engine::physics::{Physics, PhysicsError, SnapshotError};
use ostler_engine::state::{Sizes, Tables};
use ostler_model::Model;
pub use spec::{AgentSpec, EnvSpec, StepOut};
pub use stats::{Break, EpisodeStats, Finished, LISTED};
use std::sync::Arc;

/// Why an environment could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Physics(#[from] PhysicsError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Device(ostler_engine::device::DeviceError),
}

impl EnvError {
    /// The allocation that failed, if one did: fewer environments may do.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Physics(e) => e.out_of_memory(),
            Self::Device(e) => e.out_of_memory(),
            Self::Config(_) => None,
        }
    }
}

/// Before anything of the kernels is called.
///
/// # Errors
/// This program was built for other processors.
fn has_kernels() -> Result<(), PhysicsError> {
    InstructionSet::widest()?;
    Ok(())
}

/// The robot with what the task's events make different between environments, if the engine
/// can have it so, and the task.
fn prepare(
    model: &Arc<Model>,
    task: &TaskConfig,
    varies: bool,
    step_dt: impl FnOnce(&Model) -> f64,
) -> Result<(Arc<Model>, Task), ConfigError> {
    if !task.event.is_empty() && !varies {
        let what = "this engine has one robot for all environments, and the task has events";
        let help = "sim.backend = \"native\", or leave [[task.event]] out (--events off, where a \
                    run is played or evaluated)";
        return Err(ConfigError::new("sim.backend", what).help(help));
    }
    crate::task::prepare(model, task, step_dt)
}

/// Refuses sensors that an engine cannot measure.
fn measurable(task: &Task, measures: bool) -> Result<(), ConfigError> {
    if measures || !task.reads_measured() {
        return Ok(());
    }
    let what = "this engine measures no accelerations and no forces between bodies, which the \
                task reads: joint_acc(...); contacts between two sets, with subtree, their places \
                and directions, substeps(...); or an accelerometer, force, torque, touch, \
                framelinacc or frameangacc sensor";
    let help = "sim.backend = \"native\" does; contact(NAME) and contact_force(NAME) alone work \
                here, too; or leave the term out";
    Err(ConfigError::new("sim.backend", what).help(help))
}

/// N environments.
pub struct BatchEnv {
    spec: EnvSpec,
    model: Arc<Model>,
    physics: Box<dyn Physics>,
    pool: Arc<Pool>,
    task: Task,
    /// The task's native functions; none where their code may not be compiled.
    natives: Option<Library>,
    sizes: Sizes,
    /// The task as kernels take it.
    tables: Tables,
    decimation: usize,
    /// Keys every draw.
    seed: u64,
    /// Global id of environment 0.
    first_env: u32,
    /// Observation noise is on.
    noise: bool,
    /// Events happen.
    events: bool,
    /// Why environments break.
    causes: Causes,
    /// Faults on purpose.
    faults: Faults,
    /// The task with its present numbers.
    config: TaskConfig,
    /// Identity that a snapshot must agree with.
    identity: snapshot::Identity,
    /// Content of a snapshot.
    live: Live,
    /// Working memory of one step.
    work: Work,
}

impl std::fmt::Debug for BatchEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchEnv")
            .field("robot", &self.model.name)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl BatchEnv {
    /// The environments of a configuration, for the robot that it names.
    ///
    /// # Errors
    /// The task has a mistake, the physics cannot have the robot, or there is no memory; with
    /// [`EnvError::explained`] shown in the file.
    pub fn of(config: &Simulation, model: Arc<Model>) -> Result<Self, EnvError> {
        let Simulation { seed, sim, env, task, .. } = config;
        Self::new(model, sim, env, task, *seed)
    }

    /// Builds the worlds and compiles the task. `seed` keys every draw.
    pub fn new(
        model: Arc<Model>,
        sim: &SimConfig,
        env: &EnvConfig,
        task: &TaskConfig,
        seed: u64,
    ) -> Result<Self, EnvError> {
        Self::shard(model, sim, env, task, seed, 0)
    }

    /// The same for environments `first_env..first_env + N` of a larger batch: each
    /// behaves as it would there.
    pub fn shard(
        model: Arc<Model>,
        sim: &SimConfig,
        env: &EnvConfig,
        task: &TaskConfig,
        seed: u64,
        first_env: u32,
    ) -> Result<Self, EnvError> {
        sim.validate()?;
        env.validate()?;
        has_kernels()?;
        let pool = Arc::new(Pool::new(sim.thread_count())?);
        // The task is checked first: its mistakes are the likelier ones, and worlds cost memory.
        let measures = sim.backend == Backend::Native;
        let step_dt = |model: &Model| sim.timestep(model) * env.decimation as f64;
        let (model, compiled) = prepare(&model, task, measures, step_dt)?;
        measurable(&compiled, measures)?;
        compiled.natives.allowed()?;
        let named = limits(&model, sim, task)?;
        let physics: Box<dyn Physics> = match sim.backend {
            Backend::Native => {
                let worlds =
                    ostler_engine::physics::native::new(&model, &named, env.num_envs, &pool)?;
                Box::new(worlds)
            }
            #[cfg(feature = "rapier")]
            Backend::Rapier => ostler_rapier::new(&model, &named, env.num_envs, &pool)?,
            #[cfg(not(feature = "rapier"))]
            Backend::Rapier => return Err(PhysicsError::Absent { engine: "rapier" }.into()),
        };
        let made = (model, compiled);
        let mut built = Self::over(made, physics, pool, env, task, seed, first_env)?;
        built.identity.add_physics(sim)?;
        Ok(built)
    }

    /// The task over an engine that stands already, with N = `env.num_envs` worlds of the model
    /// that [`crate::task::prepare`] returns: it senses the contacts that the task reads.
    ///
    /// # Errors
    /// As [`BatchEnv::new`]; [`PhysicsError::OtherWorlds`].
    pub fn with_physics(
        model: Arc<Model>,
        physics: Box<dyn Physics>,
        pool: Arc<Pool>,
        env: &EnvConfig,
        task: &TaskConfig,
        seed: u64,
        first_env: u32,
    ) -> Result<Self, EnvError> {
        env.validate()?;
        has_kernels()?;
        let step_dt = physics.timestep() * env.decimation as f64;
        let made = prepare(&model, task, physics.varies(), |_| step_dt)?;
        Self::over(made, physics, pool, env, task, seed, first_env)
    }

    /// The same for a robot and a task that fit each other.
    fn over(
        (model, task): (Arc<Model>, Task),
        mut physics: Box<dyn Physics>,
        pool: Arc<Pool>,
        env: &EnvConfig,
        cfg: &TaskConfig,
        seed: u64,
        first_env: u32,
    ) -> Result<Self, EnvError> {
        let step_dt = physics.timestep() * env.decimation as f64;
        let max_episode_steps = env.max_episode_steps(step_dt)?;
        let identity = snapshot::Identity::new(env, cfg, step_dt)?;
        let config = cfg.clone();
        measurable(&task, physics.measures())?;
        // Kernels write all of the robot's columns.
        if let Some(column) = physics.state().differs(&model, env.num_envs) {
            return Err(PhysicsError::OtherWorlds { column }.into());
        }
        if task.reads_starts() && physics.step_args().is_none() && physics.columns_mut().is_none() {
            let what = "this engine shows no start before it is made, which [[task.reset]] or \
                        [task.start] reads";
            return Err(ConfigError::new("sim.backend", what)
                .help("sim.backend = \"native\" does")
                .into());
        }
        let natives = Library::load(&task.natives)?;
        let causes = Causes::new(&model, &task);
        let spec = EnvSpec {
            num_envs: env.num_envs,
            obs: task.observations.width,
            critic: task.observations.critic_width(),
            groups: task.observations.groups.clone(),
            obs_table: task.observations.agents[0].table.clone(),
            action: task.actions.space,
            reach: task.reach(&model),
            step_dt,
            max_episode_steps,
            min_truncation_steps: match task.score.truncates() || task.reference.truncates() {
                true => 1,
                false => max_episode_steps,
            },
            reward_names: task.score.reward_names(),
            metrics: task.metrics.rows(),
            termination_names: task.score.termination_names(),
            cause_names: causes.names.clone(),
            events: task.events.specs(),
            levels: model.terrain.as_ref().map_or(0, |t| t.levels),
            agents: AgentSpec::all(&task),
            policy_names: task.team.policy_names.clone(),
            reflection: None,
            demonstrations: None,
            reference: task.reference.summary(),
            doubts: task.doubts(&model),
        };
        let sizes = task.sizes(&model, env.decimation);
        let tables = task.tables(&model, step_dt, max_episode_steps);
        let live = Live::new(&spec, &sizes)?;
        let work = Work::new(&spec, &task, &sizes, pool.threads())?;
        let decimation = env.decimation;
        Ok(Self {
            spec,
            model,
            physics,
            pool,
            task,
            natives,
            sizes,
            tables,
            decimation,
            seed,
            first_env,
            noise: true,
            events: true,
            causes,
            faults: Faults::default(),
            config,
            identity,
            live,
            work,
        })
    }

    /// Sizes and names.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// The global id of the first environment.
    pub fn first(&self) -> u32 {
        self.first_env
    }

    /// The robot.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The task, compiled.
    pub fn compiled(&self) -> &Task {
        &self.task
    }

    /// The pose that position targets and relative positions are about.
    pub fn pose(&self) -> &Pose {
        &self.task.pose
    }

    /// Actuators that no action drives and that hold this pose, with their controls.
    pub fn held(&self) -> &[(usize, f32)] {
        &self.task.actions.held
    }

    /// The physics, for drawing and diagnosis.
    pub fn physics(&self) -> &dyn Physics {
        &*self.physics
    }

    /// Loops over environments so far that were spread over threads.
    pub fn loops(&self) -> usize {
        self.pool.loops()
    }

    /// Starts every episode anew and writes the first observations `[R][O]`.
    ///
    /// `spread`: give episodes random ages, so that resets spread out in time; such
    /// an episode, cut short by its age, is left out of the statistics.
    pub fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) {
        self.live.clock += 1;
        self.work.columns.mask.fill(1);
        self.begin_rollout();
        self.begin(spread, false, obs);
    }

    /// Forgets which slots of `final_obs` are taken; call at a rollout's start.
    pub fn begin_rollout(&mut self) {
        let episodes = &mut self.live.episodes;
        episodes.final_used.fill(0);
        let half = episodes.failure.len() / 2;
        episodes.failure.copy_within(..half, half);
        self.live.began = self.live.clock;
    }

    /// Steps and resets of the batch so far: keys the draws.
    pub fn clock(&self) -> u64 {
        self.live.clock
    }

    /// Lets so many steps pass without anything happening: the draws of the next step are
    /// those that the rest of the batch then makes.
    pub fn skip(&mut self, steps: u64) {
        self.live.clock += steps;
    }

    /// Statistics since the last call; `into` is overwritten, its buffers reused.
    pub fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.live.stats.take_into(into);
        let all = self.physics.shortfalls();
        into.shortfalls = all.since(self.live.taken);
        self.live.taken = all;
    }

    /// Keeps the last observations of every episode that ends from now on, for
    /// [`last_obs`](Self::last_obs).
    ///
    /// # Errors
    /// There is no memory.
    pub fn keep_last_obs(&mut self) -> Result<(), MemoryError> {
        let widths = self.task.observations.world();
        self.work.ended.keep_seen(widths)
    }

    /// The last observations `[R][O]` of the episodes that ended in the last step, however they
    /// did: of a broken environment its last numbers. Rows of other environments mean nothing;
    /// empty before [`keep_last_obs`](Self::keep_last_obs).
    pub fn last_obs(&self) -> Groups<&[f32]> {
        let seen = self.work.ended.seen();
        Groups { policy: &seen.policy, critic: self.spec.obs.critic.map(|_| &seen.critic[..]) }
    }

    /// Return of an agent (0 of a task without several) in the episode that ended in environment
    /// `env` in the last step; of another environment it means nothing.
    pub fn last_return(&self, env: usize, agent: usize) -> f32 {
        self.work.ended.ret(agent, env)
    }

    /// Control steps of the episode that ended in environment `env` in the last step; of another
    /// environment they mean nothing.
    pub fn last_length(&self, env: usize) -> u32 {
        self.work.ended.length(env)
    }

    /// Switches observation noise off (evaluation) or on.
    pub fn set_noise(&mut self, on: bool) {
        self.noise = on;
    }

    /// Switches events off (the robot of its file, no pushes) or on; before the first
    /// [`reset`](Self::reset).
    pub fn set_events(&mut self, on: bool) {
        self.events = on;
    }

    /// The events, a line each, and warnings about their numbers.
    pub fn events(&self) -> (Vec<String>, Vec<String>) {
        let warnings = self.spec.events.iter().flat_map(|e| &e.warnings);
        (self.task.events.lines(), warnings.cloned().collect())
    }

    /// What every event draws and costs, in the order of [`events`](Self::events), and what they
    /// cost together.
    pub fn event_costs(&self) -> (Vec<EventCost>, Option<String>) {
        let events = &self.task.events;
        (events.costs(&self.model), events.total(&self.model))
    }

    /// Expressions that are kept from step to step, as they are written, and how many
    /// numbers each has; the states of the task left out.
    pub fn remembered(&self) -> impl Iterator<Item = (String, usize)> {
        let cells = self.task.history.cells().iter();
        let earlier = cells.filter(|c| !c.kind().is_state());
        earlier.map(|c| (c.text(), c.rows().len()))
    }

    /// Appends everything that is needed to go on with the same bits to `out`. Nothing is
    /// allocated where `out` has room: cheap enough for the start of every iteration.
    ///
    /// # Errors
    /// There is no memory.
    pub fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        snapshot::capture(self, out)
    }

    /// Goes back to a captured state of the same robot, task, size and seed: the same
    /// bits follow.
    ///
    /// # Errors
    /// It does not fit, with the reason; nothing has changed then.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        snapshot::restore(self, bytes)
    }

    /// Takes over environments of the same robot, task and seed that were captured in
    /// another number, or in a batch that this one is a [part](Self::shard) of. Those
    /// whose global ids are among the stored ones go on with the bits that they would
    /// have had there; those beyond start new episodes (`spread` as for
    /// [`reset`](Self::reset)), whose first observations go into their rows of `obs`
    /// `[R][O]`; other rows stay as they are. Returns how many were taken over, which are
    /// the first.
    ///
    /// # Errors
    /// They do not fit; nothing has changed then.
    pub fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        snapshot::restore_range(self, bytes, spread, obs)
    }

    /// Appends what [`capture`](Self::capture) of a whole batch would write, from what it
    /// wrote of its parts in the order of their environments; but for sums of statistics,
    /// whose last digits depend on the order.
    ///
    /// # Errors
    /// They are not the parts of one batch at one time; there is no memory.
    pub fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        snapshot::join(parts, out)
    }
}
