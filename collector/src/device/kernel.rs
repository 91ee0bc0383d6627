//! Environments that live on the device themselves: a control step is one launch, which
//! takes the policy's actions where it left them and puts the results where the policy
//! and the learner look for it.

use super::Traffic;
use super::envs::{NoiseSpec, TensorEnvironments};
use super::memory::DeviceRows;
use crate::memory::zeros;
use crate::policy::Noise;
use crate::rollout::ended;
use crate::{CollectError, Policy, Rollout};
use ostler_sim::config::TaskConfig;
use ostler_sim::device::Address;
use ostler_sim::env::{DeviceEnv, EnvError, EnvSpec, PolicyNoise, StepAddresses};
use ostler_sim::{EpisodeStats, Groups};
use std::cell::RefCell;
use tch::{Device, Kind, Tensor};

impl From<NoiseSpec> for PolicyNoise {
    fn from(noise: NoiseSpec) -> Self {
        Self { seed: noise.seed, width: noise.width, normal: noise.kind == Noise::Normal }
    }
}

/// Environments on a device whose rollout lies there too.
#[derive(Debug)]
pub struct KernelEnvironments {
    /// To read its state it brings its statistics up to date.
    env: RefCell<DeviceEnv>,
    spec: EnvSpec,
    rollout: Rollout,
    rows: Rows,
    /// Random numbers of the coming step `[N, width]`.
    noise: Tensor,
    noise_row: Option<DeviceRows<f32>>,
    /// Control steps of the run before this rollout.
    began: u64,
}

/// Addresses of the rollout's rows.
#[derive(Debug)]
struct Rows {
    obs: Groups<DeviceRows<f32>>,
    action: DeviceRows<f32>,
    reward: DeviceRows<f32>,
    terminated: DeviceRows<f32>,
    truncated: DeviceRows<f32>,
    valid: DeviceRows<f32>,
    final_obs: Groups<DeviceRows<f32>>,
    final_slot: DeviceRows<i32>,
}

fn groups(of: &Groups<Tensor>, device: Device) -> Result<Groups<DeviceRows<f32>>, CollectError> {
    let critic = of.critic.as_ref();
    Ok(Groups {
        policy: DeviceRows::new(&of.policy, device)?,
        critic: critic.map(|c| DeviceRows::new(c, device)).transpose()?,
    })
}

fn row(of: &Groups<DeviceRows<f32>>, i: usize) -> Result<Groups<Address>, CollectError> {
    Ok(Groups {
        policy: of.policy.row(i)?,
        critic: of.critic.as_ref().map(|c| c.row(i)).transpose()?,
    })
}

impl KernelEnvironments {
    /// Allocates a rollout of `steps` steps on `device`, libtorch's name of the device
    /// that `env` is on. The random numbers of `env` must be of the kind that `policy` needs.
    ///
    /// # Errors
    /// No memory; random numbers of another kind.
    pub fn new(
        env: DeviceEnv,
        steps: usize,
        policy: &dyn Policy,
        device: Device,
    ) -> Result<Self, CollectError> {
        let spec = env.spec().clone();
        let numbers = env.policy_noise();
        let wanted = PolicyNoise::from(NoiseSpec::of(policy, numbers.seed));
        if numbers != wanted {
            return Err(CollectError::NotRows(format!(
                "random numbers for actions: {numbers:?}, wanted {wanted:?}"
            )));
        }
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let r = Rollout::new(&spec, steps, policy.widths(), device)?;
        let size = [1, spec.rows() as i64, numbers.width as i64];
        let noise = zeros("action noise", &size, Kind::Float, device)?;
        Ok(Self {
            rows: Rows {
                obs: groups(&r.obs, device)?,
                action: DeviceRows::new(&r.action, device)?,
                reward: DeviceRows::new(&r.reward, device)?,
                terminated: DeviceRows::new(&r.terminated, device)?,
                truncated: DeviceRows::new(&r.truncated, device)?,
                valid: DeviceRows::new(&r.valid, device)?,
                final_obs: groups(&r.final_obs, device)?,
                final_slot: DeviceRows::new(&r.final_slot, device)?,
            },
            noise_row: match numbers.width {
                0 => None,
                _ => Some(DeviceRows::new(&noise, device)?),
            },
            noise: noise.f_get(0)?,
            rollout: r,
            env: RefCell::new(env),
            spec,
            began: 0,
        })
    }

    /// The environments, to change their settings between rollouts.
    pub fn env_mut(&mut self) -> &mut DeviceEnv {
        self.env.get_mut()
    }

    /// Where random numbers go, and for which step.
    fn numbers(&self, step: u64) -> Result<Option<(Address, u64)>, CollectError> {
        match &self.noise_row {
            Some(rows) => Ok(Some((rows.row(0)?, step))),
            None => Ok(None),
        }
    }
}

impl TensorEnvironments for KernelEnvironments {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    fn noise(&self, _: usize) -> &Tensor {
        &self.noise
    }

    fn reset(&mut self, spread: bool) -> Result<(), CollectError> {
        let first = row(&self.rows.obs, 0)?;
        Ok(self.env.get_mut().reset(spread, first)?)
    }

    fn begin_rollout(&mut self, step: u64) -> Result<(), CollectError> {
        self.began = step;
        let numbers = self.numbers(step)?;
        Ok(self.env.get_mut().begin_rollout(numbers)?)
    }

    fn step(&mut self, t: usize) -> Result<(), CollectError> {
        let rows = &self.rows;
        let last = t + 1 == rows.action.len();
        let out = StepAddresses {
            obs: row(&rows.obs, t + 1)?,
            reward: rows.reward.row(t)?,
            terminated: rows.terminated.row(t)?,
            truncated: rows.truncated.row(t)?,
            valid: rows.valid.row(t)?,
            final_obs: row(&rows.final_obs, 0)?,
            final_slots: rows.final_obs.policy.len(),
            final_slot: rows.final_slot.row(t)?,
            noise: match last {
                true => None,
                false => self.numbers(self.began + t as u64 + 1)?,
            },
        };
        Ok(self.env.get_mut().step(rows.action.row(t)?, &out)?)
    }

    fn ended(&mut self, t: usize) -> Result<Tensor, CollectError> {
        let (r, row) = (&self.rollout, t as i64);
        let [terminated, truncated, valid] =
            [&r.terminated, &r.truncated, &r.valid].map(|f| f.f_get(row));
        Ok(ended(&terminated?, &truncated?, &valid?)?)
    }

    fn end_rollout(&mut self, into: &mut EpisodeStats) -> Result<(), CollectError> {
        Ok(self.env.get_mut().take_stats(into)?)
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        Ok(self.env.borrow_mut().capture(out)?)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), CollectError> {
        Ok(self.env.get_mut().restore(bytes)?)
    }

    fn restore_range(&mut self, bytes: &[u8], spread: bool) -> Result<usize, CollectError> {
        let first = row(&self.rows.obs, 0)?;
        Ok(self.env.get_mut().restore_range(bytes, spread, first)?)
    }

    fn capture_in_place(&mut self) -> Result<(), CollectError> {
        Ok(self.env.get_mut().capture_in_place()?)
    }

    fn restore_in_place(&mut self) -> Result<(), CollectError> {
        Ok(self.env.get_mut().restore_in_place()?)
    }

    fn captured_in_place(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        Ok(self.env.borrow_mut().captured_in_place(out)?)
    }

    fn traffic(&self) -> Traffic {
        self.env.borrow().traffic()
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env.get_mut().set_task(task)
    }

    fn kernel(&self) -> Option<String> {
        Some(self.env.borrow().kernel().to_string())
    }
}
