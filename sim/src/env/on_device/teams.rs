//! How many threads an environment gets on a device: what was asked for, or what is found
//! to be fastest there. The bits are the same with any number, so that a measurement that
//! goes one way today and the other tomorrow changes nothing but the time.

use super::{DeviceEnv, PolicyNoise, StepAddresses};
use crate::config::{Auto, EnvConfig, SimConfig, TaskConfig};
use crate::device::{Device, DeviceError, Memory};
use crate::env::{EnvError, Groups};
use crate::memory::MemoryError;
use crate::model::Model;
use crate::physics::PhysicsError;
use crate::physics::native::generate::team_sizes;
use crate::physics::native::lower::lower;
use crate::rng::{Purpose, fill_normal};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Environments that are timed at most: more fill any device just as well.
const MOST_ENVS: usize = 16_384;
/// Control steps before the first that is timed: robots fall and touch the ground.
const WARM_UP: usize = 40;
/// Control steps of a round, and rounds, of which the shortest counts.
const STEPS: u32 = 10;
const ROUNDS: usize = 5;

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

/// A number of threads, and how long a control step of all environments took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Threads of an environment.
    pub threads: usize,
    /// Of one control step.
    pub step: Duration,
}

/// Threads of an environment for this configuration.
pub(super) fn threads(trial: &Trial) -> Result<usize, EnvError> {
    match trial.sim.threads_per_env {
        Auto::N(threads) => Ok(threads),
        Auto::Auto(_) if !trial.device.times_teams() => Ok(1),
        Auto::Auto(_) => {
            let timed = measure(trial)?;
            let best = timed.iter().min_by_key(|t| t.step);
            let threads = best.map_or(1, |t| t.threads);
            if timed.len() > 1 {
                let list: Vec<String> = timed
                    .iter()
                    .map(|t| format!("{} {:.3} ms", t.threads, 1e3 * t.step.as_secs_f64()))
                    .collect();
                tracing::info!(
                    target: "ostler::kernels",
                    "sim.threads_per_env = {threads}: a control step takes with {}",
                    list.join(", with ")
                );
            }
            Ok(threads)
        }
    }
}

/// Times a control step with every number of threads that may pay for this robot: none
/// where there is one number to choose from. What the device has no room for is left out.
///
/// # Errors
/// As for [`DeviceEnv::new`].
pub fn measure(trial: &Trial) -> Result<Vec<Timed>, EnvError> {
    let plan = lower(trial.model, &super::lower_options(trial.sim)).map_err(PhysicsError::from)?;
    let sizes = team_sizes(&plan);
    let mut timed = Vec::new();
    if sizes.len() < 2 {
        return Ok(timed);
    }
    for threads in sizes {
        match time(trial, threads) {
            Ok(step) => timed.push(Timed { threads, step }),
            // Not here, then.
            Err(EnvError::Device(DeviceError::Teams { .. })) => {}
            Err(e) if e.out_of_memory().is_some() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(timed)
}

fn time(trial: &Trial, threads: usize) -> Result<Duration, EnvError> {
    let sim = SimConfig {
        threads_per_env: Auto::N(threads),
        ..trial.sim.clone()
    };
    let env = EnvConfig {
        num_envs: trial.env.num_envs.min(MOST_ENVS),
        ..trial.env.clone()
    };
    let noise = PolicyNoise {
        seed: 0,
        width: 0,
        normal: true,
    };
    let device = Arc::clone(trial.device);
    let model = Arc::clone(trial.model);
    let mut built = DeviceEnv::new(
        model,
        &sim,
        &env,
        trial.task,
        0,
        0,
        device,
        trial.memory,
        noise,
        trial.changing,
    )?;
    Ok(built.time(trial.memory)?)
}

impl DeviceEnv {
    /// The shortest of a few rounds of control steps with random actions, per step.
    fn time(&mut self, memory: &dyn Memory) -> Result<Duration, DeviceError> {
        let (n, s) = (self.spec().num_envs, self.sizes);
        let block = |numbers: usize| -> Result<_, MemoryError> {
            memory.zeroed("a trial of threads per environment", 4 * n * numbers.max(1))
        };
        let [actions, obs, critic] = [s.raw, s.obs[0], s.obs[1]].map(block);
        let (actions, obs, critic) = (actions?, obs?, critic?);
        let rows = [(); 5].map(|()| block(s.agents));
        let [reward, terminated, truncated, valid, slot] = rows;
        let (reward, terminated, truncated) = (reward?, terminated?, truncated?);
        let (valid, slot) = (valid?, slot?);
        let mut random = crate::memory::zeroed::<f32>("a trial's actions", n * s.raw)?;
        let streams = 0..u32::try_from(n).unwrap_or(u32::MAX);
        fill_normal(0, streams, Purpose::ActionNoise, 0, s.raw, &mut random);
        // SAFETY: the block is as long as the numbers.
        unsafe {
            self.device
                .upload(bytemuck::cast_slice(&random), actions.address())?;
        }
        let groups = Groups {
            policy: obs.address(),
            critic: (s.obs[1] > 0).then(|| critic.address()),
        };
        let out = StepAddresses {
            obs: groups,
            reward: reward.address(),
            terminated: terminated.address(),
            truncated: truncated.address(),
            valid: valid.address(),
            final_obs: groups,
            final_slots: 0,
            final_slot: slot.address(),
            noise: None,
        };
        self.reset(true, groups)?;
        for _ in 0..WARM_UP {
            self.step(actions.address(), &out)?;
        }
        self.device.fence()?;
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..STEPS {
                self.step(actions.address(), &out)?;
            }
            self.device.fence()?;
            best = best.min(start.elapsed() / STEPS);
        }
        Ok(best)
    }
}
