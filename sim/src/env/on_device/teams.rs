//! How many threads an environment gets on a device: what was asked for, or what is found
//! to be fastest there. The bits are the same with any number, so that a measurement that
//! goes one way today and the other tomorrow changes nothing but the time.

use super::{DeviceEnv, PolicyNoise, StepAddresses, program};
use crate::config::{Auto, EnvConfig, SimConfig, TaskConfig};
use crate::device::{Block, Device, DeviceError, Memory, Program, Timed, Trials};
use crate::env::{EnvError, Groups};
use crate::memory::MemoryError;
use crate::model::Model;
use crate::physics::PhysicsError;
use crate::physics::native::generate::team_sizes;
use crate::physics::native::lower::lower;
use crate::physics::native::tables::Plan;
use crate::physics::native::{ITERATIONS, TOLERANCE};
use crate::rng::{Purpose, fill_normal};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Environments that are timed at most: more fill any device just as well.
const MOST_ENVS: usize = 16_384;
/// Control steps before the first that is timed: robots fall and touch the ground, clocks
/// rise.
const WARM_UP: u32 = 40;
/// Control steps of a round, and rounds, of which the shortest counts. The numbers of
/// threads take turns.
const STEPS: u32 = 10;
const ROUNDS: usize = 6;

/// What environments are built of that are timed, as for [`DeviceEnv::new`].
#[expect(missing_debug_implementations, reason = "a list of arguments")]
pub struct Trial<'a> {
    /// The robot.
    pub model: &'a Arc<Model>,
    /// The physics; its number of threads is what is tried.
    pub sim: &'a SimConfig,
    /// The batch.
    pub env: &'a EnvConfig,
    /// The task.
    pub task: &'a TaskConfig,
    /// Where.
    pub device: &'a Arc<dyn Device>,
    /// Of that device.
    pub memory: &'a dyn Memory,
    /// Whether the task's numbers stand in a table.
    pub changing: bool,
}

/// The program for this configuration, with as many threads of an environment as were asked
/// for, as were timed to be fastest on this device at an earlier start, or are now. `write`
/// writes the program for a number of threads.
pub(super) fn choose(
    trial: &Trial,
    plan: &Plan,
    numbers: &[f32],
    write: &dyn Fn(usize) -> Result<Program, PhysicsError>,
) -> Result<Program, EnvError> {
    if let Auto::N(threads) = trial.sim.threads_per_env {
        return Ok(write(threads)?);
    }
    let sizes = team_sizes(plan);
    let (Some(trials), 2..) = (trial.device.trials(), sizes.len()) else {
        return Ok(write(1)?);
    };
    let programs: Vec<_> = sizes.iter().map(|&n| (n, write(n))).collect();
    let key = key(trial, trials, numbers, &programs);
    let (timed, when) = match trials.find(&key) {
        Some(timed) => {
            let folder = trials.folder().unwrap_or(Path::new("")).display();
            let when = format!(" (timed at an earlier start, kept in {folder})");
            (timed, when)
        }
        None => {
            let found = timed_now(trial, sizes)?;
            if !found.lacked_memory {
                trials.keep(&key, &found.timed);
            }
            (found.timed, String::new())
        }
    };
    let best = timed.iter().min_by_key(|t| t.step);
    let threads = best.map_or(1, |t| t.threads);
    if timed.len() > 1 {
        let list: Vec<String> = timed
            .iter()
            .map(|t| format!("{} {:.3} ms", t.threads, 1e3 * t.step.as_secs_f64()))
            .collect();
        tracing::info!(
            target: "ostler::kernels",
            "sim.threads_per_env = {threads}: a control step takes with {}{when}",
            list.join(", with ")
        );
    }
    let written = programs.into_iter().find(|(n, _)| *n == threads);
    Ok(written.map_or_else(|| write(threads), |(_, program)| program)?)
}

/// The name of this trial: of all programs, of how many environments step how, and of how
/// that is timed.
fn key(
    trial: &Trial,
    trials: &Trials,
    numbers: &[f32],
    programs: &[(usize, Result<Program, PhysicsError>)],
) -> String {
    let settings = format!(
        "{:?} {:?} {ITERATIONS} {TOLERANCE} {WARM_UP} {STEPS} {ROUNDS} {numbers:?}",
        trial.sim,
        timed_envs(trial.env),
    );
    let mut parts = vec![settings];
    for (threads, program) in programs {
        parts.push(threads.to_string());
        parts.push(match program {
            Ok(program) => program.text.clone(),
            Err(e) => e.to_string(),
        });
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    trials.key(&parts)
}

/// As many as are timed.
fn timed_envs(env: &EnvConfig) -> EnvConfig {
    EnvConfig {
        num_envs: env.num_envs.min(MOST_ENVS),
        ..env.clone()
    }
}

/// Threads that an environment may have on a device: what was asked for, or every number
/// that may pay for this robot, most first.
///
/// # Errors
/// The native engine cannot simulate the robot.
pub fn thread_counts(model: &Model, sim: &SimConfig) -> Result<Vec<usize>, EnvError> {
    if let Auto::N(threads) = sim.threads_per_env {
        return Ok(vec![threads]);
    }
    let plan = lower(model, &super::lower_options(sim)).map_err(PhysicsError::from)?;
    Ok(team_sizes(&plan))
}

/// Times a control step with every number of threads that may pay for this robot: none
/// where there is one number to choose from. What the device has no room for is left out.
///
/// # Errors
/// As for [`DeviceEnv::new`].
pub fn measure(trial: &Trial) -> Result<Vec<Timed>, EnvError> {
    let sizes = thread_counts(trial.model, trial.sim)?;
    if sizes.len() < 2 {
        return Ok(Vec::new());
    }
    Ok(timed_now(trial, sizes)?.timed)
}

/// What was timed.
struct Found {
    timed: Vec<Timed>,
    /// Some could not be for want of memory, of which there may be more another time.
    lacked_memory: bool,
}

fn timed_now(trial: &Trial, sizes: Vec<usize>) -> Result<Found, EnvError> {
    compile(trial, &sizes);
    let mut benches = Vec::new();
    let mut lacked_memory = false;
    for threads in sizes {
        match Bench::new(trial, threads) {
            Ok(bench) => benches.push((threads, bench, Duration::MAX)),
            Err(e) if threads == 1 && e.out_of_memory().is_none() => return Err(e),
            // One thread will do.
            Err(e) => {
                lacked_memory |= e.out_of_memory().is_some();
                tracing::info!(
                    target: "ostler::kernels",
                    "{threads} threads for an environment are not tried: {e}"
                );
            }
        }
    }
    // The first round is the slowest's chance to warm up.
    for _ in 0..=ROUNDS {
        for (_, bench, best) in &mut benches {
            *best = bench.round(STEPS)?.min(*best);
        }
    }
    let timed = benches.iter().map(|(threads, _, step)| Timed {
        threads: *threads,
        step: *step,
    });
    Ok(Found {
        timed: timed.collect(),
        lacked_memory,
    })
}

/// Compiles the programs at the same time, for the device's cache; what is wrong with one
/// is said when it is built.
fn compile(trial: &Trial, sizes: &[usize]) {
    let load = |device: &dyn Device, program: &Program| device.load(program).map(|_| ());
    let _ = each_program(trial, sizes, load);
}

/// Bytes that the device sets aside for the local memory of environments' threads,
/// beside all that allocators hand out: the most of any number of threads that an
/// environment may get there. Compiles these programs, or takes them from the device's
/// cache.
///
/// # Errors
/// The task is wrong, the native engine cannot simulate the robot, or a program does not
/// compile.
pub fn local_memory(trial: &Trial) -> Result<u64, EnvError> {
    let sizes = match trial.device.trials() {
        Some(_) => thread_counts(trial.model, trial.sim)?,
        None => vec![super::build::threads_per_env(trial.sim)],
    };
    let ask = |device: &dyn Device, program: &Program| device.local_memory(program);
    let all: Result<Vec<u64>, _> = each_program(trial, &sizes, ask).into_iter().collect();
    Ok(all?.into_iter().max().unwrap_or(0))
}

/// Asks the device about the program of each number of threads, all at the same time.
fn each_program<T: Send>(
    trial: &Trial,
    sizes: &[usize],
    ask: impl Fn(&dyn Device, &Program) -> Result<T, DeviceError> + Sync,
) -> Vec<Result<T, EnvError>> {
    let &Trial {
        model,
        sim,
        env,
        task,
        device,
        changing,
        ..
    } = trial;
    let ask = &ask;
    let one = move |threads| -> Result<T, EnvError> {
        let sim = with_threads(sim, threads);
        let program = program(model, &sim, env, task, changing)?;
        Ok(ask(device.as_ref(), &program)?)
    };
    std::thread::scope(|scope| {
        let asked = sizes
            .iter()
            .map(|&threads| scope.spawn(move || one(threads)));
        let asked: Vec<_> = asked.collect();
        let answer = |thread: std::thread::ScopedJoinHandle<'_, Result<T, EnvError>>| {
            let panicked = || DeviceError::Defect("a program could not be written".into());
            thread.join().unwrap_or_else(|_| Err(panicked().into()))
        };
        asked.into_iter().map(answer).collect()
    })
}

fn with_threads(sim: &SimConfig, threads: usize) -> SimConfig {
    SimConfig {
        threads_per_env: Auto::N(threads),
        ..sim.clone()
    }
}

/// Environments that step on the device with random actions, and room for what they write.
struct Bench {
    env: DeviceEnv,
    actions: Block,
    out: StepAddresses,
    _rows: Vec<Block>,
}

impl Bench {
    fn new(trial: &Trial, threads: usize) -> Result<Self, EnvError> {
        let sim = with_threads(trial.sim, threads);
        let env = timed_envs(trial.env);
        let noise = PolicyNoise {
            seed: 0,
            width: 0,
            normal: true,
        };
        let env = DeviceEnv::new(
            Arc::clone(trial.model),
            &sim,
            &env,
            trial.task,
            0,
            0,
            Arc::clone(trial.device),
            trial.memory,
            noise,
            trial.changing,
        )?;
        let (n, s) = (env.spec().num_envs, env.sizes);
        let block = |numbers: usize| -> Result<Block, MemoryError> {
            let what = "a trial of threads per environment";
            trial.memory.zeroed(what, 4 * n * numbers.max(1))
        };
        let actions = block(s.raw)?;
        let mut random = crate::memory::zeroed::<f32>("a trial's actions", n * s.raw)?;
        let streams = 0..u32::try_from(n).unwrap_or(u32::MAX);
        fill_normal(0, streams, Purpose::ActionNoise, 0, s.raw, &mut random);
        // SAFETY: the block is as long as the numbers.
        unsafe {
            let bytes = bytemuck::cast_slice(&random);
            trial.device.upload(bytes, actions.address())?;
        }
        let widths = [
            s.obs[0], s.obs[1], s.agents, s.agents, s.agents, s.agents, s.agents,
        ];
        let rows: Vec<Block> = widths.into_iter().map(block).collect::<Result<_, _>>()?;
        let at: Vec<_> = rows.iter().map(Block::address).collect();
        let obs = Groups {
            policy: at[0],
            critic: (s.obs[1] > 0).then_some(at[1]),
        };
        let out = StepAddresses {
            obs,
            reward: at[2],
            terminated: at[3],
            truncated: at[4],
            valid: at[5],
            final_obs: obs,
            final_slots: 0,
            final_slot: at[6],
            noise: None,
        };
        let mut bench = Self {
            env,
            actions,
            out,
            _rows: rows,
        };
        let started = bench.start();
        // Nothing may be freed that something still works on.
        bench.env.device.fence()?;
        started?;
        Ok(bench)
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        self.env.reset(true, self.out.obs)?;
        self.steps(WARM_UP)
    }

    fn steps(&mut self, count: u32) -> Result<(), DeviceError> {
        for _ in 0..count {
            self.env.step(self.actions.address(), &self.out)?;
        }
        Ok(())
    }

    /// Time of a control step.
    fn round(&mut self, steps: u32) -> Result<Duration, DeviceError> {
        let start = Instant::now();
        let stepped = self.steps(steps);
        self.env.device.fence()?;
        stepped?;
        Ok(start.elapsed() / steps)
    }
}
