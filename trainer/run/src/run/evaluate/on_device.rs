//! The same evaluation where environments and policy are on a device: a collector collects by
//! mean actions, and the host reads rewards and ends once per rollout.

use super::evaluator::{Evaluates, Evaluation, GoOn, Tally};
use crate::run::error::RunError;
use ostler_collector::device::{DeviceCollector, KernelEnvironments};
use ostler_collector::policy::{Hidden, Noise};
use ostler_collector::transfer::read_into;
use ostler_collector::{Act, CollectError, Collector, Policy, Snapshot};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
use ostler_sim::memory::zeroed;
use std::time::Instant;
use tch::{TchError, Tensor};

/// Control steps between two reads of the device.
pub(crate) const STEPS: usize = 64;

/// Environments for evaluation on a device; one agent each.
#[derive(Debug)]
pub(crate) struct DeviceEvaluator {
    collector: DeviceCollector<KernelEnvironments>,
    start: Snapshot,
    envs: usize,
    max_steps: u64,
    /// Rewards, then what terminated, was truncated, is valid `[T,N]` each.
    columns: [Vec<f32>; 4],
}

/// Acts by the mean.
struct Mean<'a>(&'a mut dyn Policy);

impl Policy for Mean<'_> {
    fn dist_width(&self) -> i64 {
        self.0.dist_width()
    }

    fn hidden_width(&self) -> i64 {
        self.0.hidden_width()
    }

    fn noise(&self) -> (i64, Noise) {
        self.0.noise()
    }

    fn act(&mut self, obs: &Tensor, _: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        self.0.act_mean(obs, out.hidden, out.action)
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        self.0.act_mean(obs, hidden, action)
    }
}

impl DeviceEvaluator {
    /// Takes environments that have just begun, whose observations have their `noise` or not.
    /// `max_steps`: control steps of the longest episode.
    ///
    /// # Errors
    /// Their state cannot be kept, or memory does not suffice.
    pub(crate) fn new(
        mut collector: DeviceCollector<KernelEnvironments>,
        max_steps: u32,
        noise: bool,
    ) -> Result<Self, RunError> {
        collector.env_mut().env_mut().set_noise(noise);
        let mut start = Snapshot::in_place();
        collector.capture(&mut start)?;
        let rollout = collector.rollout();
        let (envs, numbers) = (rollout.envs as usize, rollout.reward.numel());
        let column = || zeroed::<f32>("episodes that are evaluated", numbers);
        let columns = [column(), column(), column(), column()];
        let [reward, terminated, truncated, valid] = columns;
        let all =
            || Ok::<_, ostler_sim::memory::MemoryError>([reward?, terminated?, truncated?, valid?]);
        Ok(Self {
            columns: all().map_err(CollectError::from)?,
            collector,
            start,
            envs,
            max_steps: u64::from(max_steps),
        })
    }
}

impl Evaluates for DeviceEvaluator {
    fn evaluate(
        &mut self,
        policy: &mut dyn Policy,
        episodes: usize,
        go_on: GoOn<'_>,
    ) -> Result<Option<Evaluation>, RunError> {
        let clock = Instant::now();
        self.collector.restore(&self.start)?;
        let mut tally = Tally::new(episodes, self.envs);
        let mut running = vec![(0.0, 0_u32); self.envs];
        let mut steps = 0;
        let most = self.max_steps.saturating_mul(tally.rounds());
        while tally.goes_on() && steps < most.saturating_mul(2) {
            if !go_on(steps, most) {
                return Ok(None);
            }
            self.collector.collect(&mut Mean(policy))?;
            let r = self.collector.rollout();
            let tensors = [&r.reward, &r.terminated, &r.truncated, &r.valid];
            for (tensor, column) in tensors.into_iter().zip(&mut self.columns) {
                read_into(tensor, column)?;
            }
            steps += r.steps as u64;
            let [reward, terminated, truncated, valid] = &self.columns;
            for (i, reward) in reward.iter().enumerate() {
                let env = i % self.envs;
                let (ret, length) = &mut running[env];
                if valid[i] == 0.0 {
                    (*ret, *length) = (0.0, 0);
                    continue;
                }
                *ret += f64::from(*reward);
                *length += 1;
                if terminated[i] != 0.0 || truncated[i] != 0.0 {
                    tally.count(env, *ret, *length, &[]);
                    (*ret, *length) = (0.0, 0);
                }
            }
        }
        Ok(Some(tally.evaluation(steps * self.envs as u64, clock)))
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.collector.set_task(task)
    }
}
