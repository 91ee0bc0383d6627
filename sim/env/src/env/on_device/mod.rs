//! Environments whose every step is one launch on a device.
//!
//! The state lies on the device in the order in which a snapshot has it; a twin on the
//! host, [`BatchEnv`] of the same robot and task, keeps what is not per environment
//! (clock, statistics) and reads and writes the snapshots, which are therefore those of
//! environments on the host: a run may go on on either.
//!
//! Reading order: [`DeviceEnv::new`] -> `blocks` (the layout) -> [`DeviceEnv::step`]
//! -> `tally` (a rollout's statistics for the host) -> `breaks` (why environments broke)
//! -> `snapshot`.

mod blocks;
mod breaks;
mod build;
mod in_place;
mod snapshot;
mod tally;

use super::{BatchEnv, EnvSpec, EpisodeStats, Groups};
use crate::config::{EnvConfig, SimConfig, TaskConfig};
use crate::task::Task;
use crate::task::emit::Sizes;
use blocks::Blocks;
pub use build::program;
use in_place::Captured;
use ostler_engine::device::transfer::Reader;
use ostler_engine::device::{Address, Device, DeviceError, Kernels, Traffic};
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::Shortfalls;
use ostler_engine::physics::native::lower::LowerOptions;
use ostler_model::Model;
use std::sync::Arc;

/// The random numbers that a policy wants for every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyNoise {
    /// Keys them.
    pub seed: u64,
    /// Per row.
    pub width: usize,
    /// Standard normal, else uniform in [0, 1).
    pub normal: bool,
}

/// Where one step's results go, on the device; shapes as in [`super::StepOut`].
#[derive(Debug, Clone, Copy)]
pub struct StepAddresses {
    /// Observations after the step, after auto-reset `[R][O]`.
    pub obs: Groups<Address>,
    /// Rewards `[R]`.
    pub reward: Address,
    /// 1 where the task ended `[R]`.
    pub terminated: Address,
    /// 1 where time ran out `[R]`.
    pub truncated: Address,
    /// 0 where the environment broke `[R]`.
    pub valid: Address,
    /// Observations before the reset of episodes that were truncated `[K][R][O]`.
    pub final_obs: Groups<Address>,
    /// `K`.
    pub final_slots: usize,
    /// Which `k` this step's truncation took `[R]`, int32.
    pub final_slot: Address,
    /// Where random numbers for the policy go `[R][width]`, and for which step.
    pub noise: Option<(Address, u64)>,
}

/// Entries of the program, by their place in [`ostler_engine::device::Program::entries`].
#[derive(Debug, Clone, Copy)]
enum Entry {
    Restart,
    Begin,
    Step,
    Tally,
    Total,
}

/// Their names.
const ENTRIES: [&str; 5] = [
    "ostler_env_restart",
    "ostler_env_begin",
    "ostler_env_step",
    "ostler_env_tally",
    "ostler_env_total",
];

/// N environments on a device.
#[derive(Debug)]
pub struct DeviceEnv {
    device: Arc<dyn Device>,
    kernels: Arc<dyn Kernels>,
    /// The task's part of the program.
    task_text: String,
    /// On the host; its buffers hold the last exchanged state.
    twin: BatchEnv,
    /// One environment, to find out why others broke; built when the first breaks.
    examiner: Option<BatchEnv>,
    /// How to build it.
    recipe: Recipe,
    sizes: Sizes,
    blocks: Blocks,
    args: EnvArgs,
    noise: PolicyNoise,
    /// `None` only while it is in flight.
    totals: Option<Reader>,
    /// The physics' shortfalls so far.
    shortfalls: Shortfalls,
    /// Episodes that the device had listed when statistics were summed last.
    listed: u32,
    /// Whether steps were taken since statistics were summed.
    uncounted: bool,
    /// The state of [`capture_in_place`](Self::capture_in_place).
    captured: Option<Captured>,
    /// Whether its expressions' numbers are beside the code.
    changing: bool,
    /// The task's tables, then its expressions' numbers, as they are on the device.
    numbers: Vec<u8>,
}

/// Arguments of environments.
#[derive(Debug, Clone)]
struct Recipe {
    model: Arc<Model>,
    sim: SimConfig,
    env: EnvConfig,
    seed: u64,
}

impl DeviceEnv {
    /// Sizes and names.
    pub fn spec(&self) -> &EnvSpec {
        &self.twin.spec
    }

    /// The robot.
    pub fn model(&self) -> &Arc<Model> {
        &self.twin.model
    }

    /// The task, compiled.
    pub fn compiled(&self) -> &Task {
        &self.twin.task
    }

    /// The task with its present numbers.
    pub fn task(&self) -> &TaskConfig {
        self.twin.task()
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The compiled program's name in its cache.
    pub fn kernel(&self) -> &str {
        self.kernels.hash()
    }

    /// Copies between host and device so far.
    pub fn traffic(&self) -> Traffic {
        self.device.traffic()
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Switches observation noise off (evaluation) or on.
    pub fn set_noise(&mut self, on: bool) {
        self.twin.noise = on;
        self.args.noisy = u32::from(on);
    }

    /// Starts every episode anew and writes the first observations `[R][O]`; `spread` as
    /// for [`BatchEnv::reset`].
    ///
    /// # Errors
    /// The device refuses.
    pub fn reset(&mut self, spread: bool, obs: Groups<Address>) -> Result<(), DeviceError> {
        self.twin.live.clock += 1;
        self.twin.begin_rollout();
        self.args.spread = u32::from(spread);
        self.aim_at(obs);
        self.args.noise = 0;
        self.launch(Entry::Begin, self.spec().num_envs)?;
        let started = self.launch(Entry::Restart, self.spec().num_envs);
        self.uncounted = true;
        self.args.spread = 0;
        started
    }

    /// Begins a rollout: forgets which slots of `final_obs` are taken and draws the
    /// policy's random numbers of its first step, `noise` as in [`StepAddresses`].
    ///
    /// # Errors
    /// The device refuses.
    pub fn begin_rollout(&mut self, noise: Option<(Address, u64)>) -> Result<(), DeviceError> {
        self.twin.live.began = self.twin.live.clock;
        self.aim_noise(noise);
        self.launch(Entry::Begin, self.spec().num_envs)
    }

    /// One control step in one launch: `actions` is `[R][A]`. Nothing is waited for.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    pub fn step(&mut self, actions: Address, out: &StepAddresses) -> Result<(), DeviceError> {
        let live = &mut self.twin.live;
        live.clock += 1;
        self.args.since = live.clock.saturating_sub(live.began + 1) as u32;
        self.aim_at(out.obs);
        self.aim_noise(out.noise);
        let a = &mut self.args;
        a.actions = actions;
        a.reward = out.reward;
        a.terminated = out.terminated;
        a.truncated = out.truncated;
        a.valid = out.valid;
        a.final_obs = out.final_obs.policy;
        a.final_critic = out.final_obs.critic.unwrap_or(0);
        a.slots = i32::try_from(out.final_slots).unwrap_or(i32::MAX);
        a.final_slot = out.final_slot;
        self.uncounted = true;
        self.launch(Entry::Step, self.spec().num_envs)
    }

    /// Statistics since the last call, by two small launches and one copy that is waited
    /// for (two where environments broke); as [`BatchEnv::take_stats`] has them, but for:
    /// sums are added in another order; environments that broke beyond the first 256 (in no
    /// order) count as unexamined.
    ///
    /// # Errors
    /// The device refuses, now or for something that was started before.
    pub fn take_stats(&mut self, into: &mut EpisodeStats) -> Result<(), DeviceError> {
        self.count()?;
        self.twin.live.stats.take_into(into);
        let taken = &mut self.twin.live.taken;
        into.shortfalls = self.shortfalls.since(*taken);
        *taken = self.shortfalls;
        Ok(())
    }

    fn aim_at(&mut self, obs: Groups<Address>) {
        self.args.obs = obs.policy;
        self.args.critic_obs = obs.critic.unwrap_or(0);
    }

    fn aim_noise(&mut self, noise: Option<(Address, u64)>) {
        let (address, step) = noise.unwrap_or_default();
        self.args.noise = address;
        self.args.noise_step = step;
    }

    fn launch(&mut self, entry: Entry, threads: usize) -> Result<(), DeviceError> {
        self.args.clock = self.twin.live.clock;
        // SAFETY: `EnvArgs` is what the entries take. The state's addresses are of blocks
        // that `self` owns, sized for N environments; the step's are the caller's
        // (`Address` is handed out for blocks and tensors that live as long as the run),
        // with the shapes that are written at them.
        unsafe { self.kernels.launch(entry as usize, threads, bytemuck::bytes_of(&self.args)) }
    }
}

/// How the native engine is set up for these settings.
fn lower_options(sim: &SimConfig) -> LowerOptions {
    LowerOptions { timestep: (sim.dt > 0.0).then_some(sim.dt), ..LowerOptions::default() }
}
