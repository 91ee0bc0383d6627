//! From a robot and a task to a program, and from there to environments.

use super::blocks::Blocks;
use super::{DeviceEnv, ENTRIES, PolicyNoise, Recipe, lower_options};
use crate::config::{Auto, Backend, ConfigError, EnvConfig, SimConfig, Specialize, TaskConfig};
use crate::env::{BatchEnv, EnvError};
use crate::task::emit::{Emitted, Numbers, emit};
use crate::task::{Task, limits};
use bytemuck::Zeroable;
use ostler_engine::device::transfer::Reader;
use ostler_engine::device::{Address, Device, DeviceError, Memory, Program};
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::native::generate::generate_env;
use ostler_engine::physics::native::lower::lower;
use ostler_engine::physics::native::solver;
use ostler_engine::physics::native::tables::RobotTables;
use ostler_engine::physics::{Limits, PhysicsError, Shortfalls, StepArgs, crowded, ground};
use ostler_engine::state::{Sizes, Tables};
use ostler_model::Model;
use std::sync::Arc;

/// The program of environments of this robot and task. `changing`: the task's numbers
/// stand in a table beside the code, for a curriculum that changes them.
///
/// # Errors
/// The task is wrong, or the native engine cannot simulate the robot.
pub fn program(
    model: &Model,
    sim: &SimConfig,
    env: &EnvConfig,
    task: &TaskConfig,
    changing: bool,
) -> Result<Program, EnvError> {
    sim.validate()?;
    env.validate()?;
    let plan = tables(model, sim)?;
    let step_dt = plan.timestep * env.decimation as f64;
    let compiled = Task::compile(model, task, step_dt)?;
    compiled.fits(model)?;
    compiled.natives.allowed()?;
    let max_steps = env.max_episode_steps(step_dt)?;
    let sizes = sizes(model, &plan, &compiled, env.decimation);
    let emitted = emitted(&compiled, &sizes, step_dt, max_steps, changing);
    Ok(text(&plan, &emitted)?)
}

/// A robot's tables, with room for the contacts of one environment.
fn tables(model: &Model, sim: &SimConfig) -> Result<RobotTables, PhysicsError> {
    let mut plan = lower(model, &lower_options(sim)).map_err(PhysicsError::from)?;
    crowded::fit(model, &mut plan)?;
    Ok(plan)
}

fn emitted(task: &Task, sizes: &Sizes, step_dt: f64, max_steps: u32, changing: bool) -> Emitted {
    let numbers = match changing {
        true => Numbers::table_of(),
        false => Numbers::baked(),
    };
    emit(task, sizes, step_dt, max_steps, numbers)
}

fn text(plan: &RobotTables, emitted: &Emitted) -> Result<Program, PhysicsError> {
    let mut text = generate_env(plan, &emitted.text).map_err(|e| {
        ostler_engine::physics::native::unsupported(format!(
            "this robot in a program of its own: {e}"
        ))
    })?;
    text.push_str(&format!(
        "static_assert(sizeof(EnvArgs) == {}, \"as Rust has it\");\n",
        size_of::<EnvArgs>()
    ));
    Ok(Program {
        text,
        places: emitted.places.clone(),
        entries: ENTRIES.map(String::from).to_vec(),
    })
}

fn sizes(model: &Model, plan: &RobotTables, task: &Task, decimation: usize) -> Sizes {
    Sizes { na: plan.na, nsense: plan.nsense, ..task.sizes(model, decimation) }
}

/// The task's tables, then its expressions' numbers.
fn numbers(tables: &Tables, emitted: &Emitted) -> Vec<u8> {
    let mut all = tables.bytes();
    all.extend_from_slice(bytemuck::cast_slice(&emitted.numbers));
    all
}

impl DeviceEnv {
    /// Environments `first_env..first_env + N` of a batch on `device`, with buffers from
    /// `memory`, which must be of that device. `changing` as for [`program`]. Compiles
    /// the program, or takes it from the device's cache.
    ///
    /// # Errors
    /// The configuration is wrong; memory does not hold them; the device refuses.
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own")]
    pub fn new(
        model: Arc<Model>,
        sim: &SimConfig,
        env: &EnvConfig,
        task: &TaskConfig,
        seed: u64,
        first_env: u32,
        device: Arc<dyn Device>,
        memory: &dyn Memory,
        noise: PolicyNoise,
        changing: bool,
    ) -> Result<Self, EnvError> {
        if sim.backend != Backend::Native {
            return Err(ConfigError::new("sim.device", "only the native engine runs on a device")
                .help("sim.backend = \"native\", or sim.device = \"cpu\"")
                .into());
        }
        // The twin steps nothing: the generic kernel and one thread will do.
        let sim = SimConfig {
            specialize: Specialize::Off,
            kernel: "auto".into(),
            threads: Auto::N(1),
            ..sim.clone()
        };
        let n = env.num_envs;
        let twin = BatchEnv::shard(model, &sim, env, task, seed, first_env)?;
        let model = Arc::clone(twin.model());
        let plan = tables(&model, &sim)?;
        let sizes = sizes(&model, &plan, &twin.task, env.decimation);
        let spec = &twin.spec;
        let emitted = emitted(&twin.task, &sizes, spec.step_dt, spec.max_episode_steps, changing);
        let kernels = device.load(&text(&plan, &emitted)?)?;
        let numbers = numbers(&twin.tables, &emitted);
        // The ground's heights, then its roof.
        let [heights, roof] =
            model.terrain.as_ref().map_or([&[][..]; 2], |t| [&t.heights[..], t.roof()]);
        let blocks = Blocks::new(memory, &sizes, n, numbers.len(), heights.len() + roof.len())?;
        let mut args = EnvArgs {
            physics: StepArgs {
                stride: n as i32,
                substeps: i32::try_from(env.decimation).unwrap_or(i32::MAX),
                solver: solver(&model.options),
                ..StepArgs::zeroed()
            },
            n: n as i32,
            first_env,
            seed,
            noisy: 1,
            events: 1,
            noise_width: i32::try_from(noise.width).unwrap_or(i32::MAX),
            noise_normal: u32::from(noise.normal),
            noise_seed: noise.seed,
            ..EnvArgs::zeroed()
        };
        blocks.enter(&mut args, &sizes, n);
        args.tables = twin.tables.laid(blocks.numbers.address());
        args.number = blocks.numbers.address() + (numbers.len() - 4 * emitted.numbers.len()) as u64;
        let limits = Limits::of(&limits(&model, &sim, task)?, &model)?;
        let limits = [limits.speed, limits.position].concat();
        if blocks.limits.bytes() < 4 * limits.len() {
            return Err(DeviceError::Defect("limits of another robot".into()).into());
        }
        // SAFETY: the block is at least as long, and lives.
        unsafe { device.upload(bytemuck::cast_slice(&limits), blocks.limits.address()) }?;
        if !heights.is_empty() {
            args.physics.ground = ground(model.terrain.as_deref());
            let address = blocks.ground.address();
            let behind = address + size_of_val(heights) as Address;
            (args.physics.ground.height, args.physics.ground.roof) = (address, behind);
            // SAFETY: the block is as long as both, and lives.
            unsafe {
                device.upload(bytemuck::cast_slice(heights), address)?;
                device.upload(bytemuck::cast_slice(roof), behind)?;
            }
        }
        let totals = Reader::new(device.staging("statistics", blocks.totals.bytes())?);
        let mut built = Self {
            recipe: Recipe { model, sim, env: env.clone(), seed },
            device,
            kernels,
            task_text: emitted.text,
            twin,
            examiner: None,
            sizes,
            blocks,
            args,
            noise,
            totals: Some(totals),
            shortfalls: Shortfalls::default(),
            listed: 0,
            uncounted: false,
            captured: None,
            changing,
            numbers: Vec::new(),
        };
        built.put_numbers(numbers)?;
        built.send_state()?;
        Ok(built)
    }

    /// The policy's random numbers.
    pub fn policy_noise(&self) -> PolicyNoise {
        self.noise
    }

    /// Uploads the task's numbers.
    fn put_numbers(&mut self, numbers: Vec<u8>) -> Result<(), DeviceError> {
        let block = &self.blocks.numbers;
        if block.bytes() < numbers.len() {
            return Err(DeviceError::Defect("another table of numbers".into()));
        }
        // SAFETY: the block is at least as long, and lives.
        unsafe { self.device.upload(&numbers, block.address()) }?;
        self.numbers = numbers;
        Ok(())
    }

    /// Goes on with other numbers in the task, as [`BatchEnv::set_task`]; where they are
    /// in the code, it is compiled anew.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be. Nothing has changed then.
    pub fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        let before = self.twin.task().clone();
        self.twin.set_task(task)?;
        let spec = &self.twin.spec;
        let emitted = emitted(
            &self.twin.task,
            &self.sizes,
            spec.step_dt,
            spec.max_episode_steps,
            self.changing,
        );
        let changed = self.take_over(&emitted);
        if changed.is_err() {
            self.twin.set_task(&before)?;
        }
        changed
    }

    fn take_over(&mut self, emitted: &Emitted) -> Result<(), EnvError> {
        // Where the numbers are in a table the text stays, and the robot is not recorded
        // again: a curriculum may change them in every iteration.
        if emitted.text != self.task_text {
            let options = lower_options(&self.recipe.sim);
            let plan = lower(&self.recipe.model, &options).map_err(PhysicsError::from)?;
            // The program before is unloaded once the steps that were started are done.
            self.kernels = self.device.load(&text(&plan, emitted)?)?;
            self.task_text.clone_from(&emitted.text);
        }
        let numbers = numbers(&self.twin.tables, emitted);
        if numbers != self.numbers {
            self.put_numbers(numbers)?;
        }
        Ok(())
    }
}
