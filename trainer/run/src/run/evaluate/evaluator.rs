//! How good the policy is without chance: mean actions, environments of its own, noise where
//! it is asked for.

use super::rows::Rows;
use super::stage::quotas;
use crate::run::error::RunError;
use crate::stats::Episodes;
use ostler_collector::env::Environments;
use ostler_collector::transfer::read_into;
use ostler_collector::{CollectError, HiddenStates, Policy};
use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
use ostler_sim::memory::zeroed;
use std::time::Instant;
use tch::Tensor;

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Returns of the episodes that count.
    pub returns: Episodes,
    /// Mean length [control steps].
    pub mean_length: f64,
    /// Mean of every metric over the same episodes; empty where a device counts them.
    pub metrics: Vec<f64>,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Time taken (s).
    pub seconds: f64,
}

impl Default for Evaluation {
    /// Of no episode.
    fn default() -> Self {
        Self {
            returns: Episodes::of(&[]),
            mean_length: f64::NAN,
            metrics: Vec::new(),
            env_steps: 0,
            seconds: 0.0,
        }
    }
}

/// Asked before each step of an evaluation, with the steps that are made and the most that
/// there will be unless environments break; where it says no the evaluation is cut short.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Who evaluates, wherever the environments are.
pub trait Evaluates: std::fmt::Debug {
    /// Runs `episodes` episodes, the same number in every environment (the first to
    /// finish would be the short ones); the rest of the division goes to the first. `None`
    /// where it was cut short: nothing remains of it.
    ///
    /// # Errors
    /// libtorch refuses, or memory does not suffice.
    fn evaluate(
        &mut self,
        policy: &mut dyn Policy,
        episodes: usize,
        go_on: GoOn<'_>,
    ) -> Result<Option<Evaluation>, RunError>;

    /// Brings the numbers of the task to another stage of a curriculum.
    ///
    /// # Errors
    /// The task does not take a value.
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError>;
}

/// Environments on the host for evaluation. Every evaluation starts from the same bits, so its
/// result depends on the policy alone.
pub struct Evaluator {
    env: Box<dyn Environments>,
    start: Vec<u8>,
    rows: Rows,
    action: Vec<f32>,
    action_tensor: Tensor,
    stats: EpisodeStats,
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").finish_non_exhaustive()
    }
}

impl Evaluator {
    /// Takes the environments, whose observations have their `noise` or not.
    ///
    /// # Errors
    /// Their state cannot be saved, or memory does not suffice.
    pub(crate) fn new(mut env: Box<dyn Environments>, noise: bool) -> Result<Self, RunError> {
        env.set_noise(noise);
        let mut start = Vec::new();
        env.capture(&mut start).map_err(ostler_collector::CollectError::Snapshot)?;
        let spec = env.spec();
        let n = spec.rows();
        let width = spec.action.width();
        Ok(Self {
            start,
            rows: Rows::new(spec).map_err(CollectError::from)?,
            action: zeroed("actions", n.saturating_mul(width)).map_err(CollectError::from)?,
            action_tensor: Tensor::f_zeros(
                [n as i64, width as i64],
                (tch::Kind::Float, tch::Device::Cpu),
            )?,
            stats: EpisodeStats::with_room(spec).map_err(CollectError::from)?,
            env,
        })
    }
}

impl Evaluates for Evaluator {
    fn evaluate(
        &mut self,
        policy: &mut dyn Policy,
        episodes: usize,
        go_on: GoOn<'_>,
    ) -> Result<Option<Evaluation>, RunError> {
        let clock = Instant::now();
        self.env.restore(&self.start).map_err(ostler_collector::CollectError::Snapshot)?;
        let (n, rows, obs_width, max_steps) = {
            let s = self.env.spec();
            (s.num_envs, s.rows() as i64, s.obs.policy as i64, u64::from(s.max_episode_steps))
        };
        let mut tally = Tally::new(episodes, n);
        let mut steps = 0;
        let mut hidden = HiddenStates::of(policy, rows as usize)?;
        self.rows.reset(&mut *self.env, false)?;
        self.env.take_stats(&mut self.stats);
        // Broken environments start anew without counting: twice the time is enough
        // unless the task is hopeless.
        let most = max_steps.saturating_mul(tally.rounds());
        while tally.goes_on() && steps < most.saturating_mul(2) {
            if !go_on(steps, most) {
                return Ok(None);
            }
            let obs = Tensor::f_from_slice(&self.rows.obs)?.f_view([rows, obs_width])?;
            let state = hidden.as_ref().map(HiddenStates::step);
            policy.act_mean(&obs, state, &self.action_tensor)?;
            read_into(&self.action_tensor, &mut self.action)?;
            self.env.begin_rollout();
            self.rows.step(&mut *self.env, &self.action)?;
            if let Some(hidden) = &mut hidden {
                hidden.advance(self.rows.ended())?;
            }
            steps += 1;
            self.env.take_stats(&mut self.stats);
            let metrics = self.stats.metric_sums.len();
            for (i, episode) in self.stats.finished.iter().enumerate() {
                let own = self.stats.finished_metrics.get(i * metrics..(i + 1) * metrics);
                let (ret, length) = (f64::from(episode.ret), episode.length);
                tally.count(episode.env as usize, ret, length, own.unwrap_or_default());
            }
        }
        Ok(Some(tally.evaluation(steps * n as u64, clock)))
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env.set_task(task)
    }
}

/// Episodes that count: the same number of every environment.
#[derive(Debug)]
pub(super) struct Tally {
    /// How many of each environment are still to come.
    left: Vec<usize>,
    rounds: u64,
    returns: Vec<f64>,
    /// Of all of them together [control steps].
    length: f64,
    /// Sums of their metrics.
    metrics: Vec<f64>,
}

impl Tally {
    pub(super) fn new(episodes: usize, envs: usize) -> Self {
        let left = quotas(episodes, envs);
        Self {
            rounds: left.iter().max().copied().unwrap_or(0) as u64,
            left,
            returns: Vec::with_capacity(episodes),
            length: 0.0,
            metrics: Vec::new(),
        }
    }

    /// Whether some are still to come.
    pub(super) fn goes_on(&self) -> bool {
        self.left.iter().any(|&left| left > 0)
    }

    /// The most of one environment.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// An episode has ended; it counts if its environment's are not complete.
    pub(super) fn count(&mut self, env: usize, ret: f64, length: u32, metrics: &[f32]) {
        if let Some(left) = self.left.get_mut(env).filter(|left| **left > 0) {
            *left -= 1;
            self.returns.push(ret);
            self.length += f64::from(length);
            self.metrics.resize(metrics.len(), 0.0);
            let sums = self.metrics.iter_mut().zip(metrics);
            sums.for_each(|(sum, metric)| *sum += f64::from(*metric));
        }
    }

    /// Their result, after so many steps of environments.
    pub(super) fn evaluation(mut self, env_steps: u64, clock: Instant) -> Evaluation {
        let episodes = self.returns.len() as f64;
        self.metrics.iter_mut().for_each(|sum| *sum /= episodes);
        Evaluation {
            metrics: self.metrics,
            returns: Episodes::of(&self.returns),
            mean_length: self.length / self.returns.len() as f64,
            env_steps,
            seconds: clock.elapsed().as_secs_f64(),
        }
    }
}
