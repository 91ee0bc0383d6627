//! How good the policy is without chance: mean actions, no noise, environments of
//! its own.

use super::error::RunError;
use ostler_collector::Policy;
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};
use tch::Tensor;

/// Result of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean return.
    pub mean_return: f64,
    /// Standard deviation of the returns (of the sample, divisor n).
    pub std_return: f64,
    /// Mean length [control steps].
    pub mean_length: f64,
    /// Episodes counted.
    pub episodes: usize,
    /// Environment steps taken.
    pub env_steps: u64,
}

/// Environments for evaluation. Every evaluation starts from the same bits, so its
/// result depends on the policy alone.
pub struct Evaluator {
    env: BatchEnv,
    start: Vec<u8>,
    obs: Vec<f32>,
    critic_obs: Vec<f32>,
    action: Vec<f32>,
    action_tensor: Tensor,
    row: Row,
    stats: EpisodeStats,
}

/// Host buffers for the rest of a step's results.
#[derive(Default)]
struct Row {
    reward: Vec<f32>,
    terminated: Vec<f32>,
    truncated: Vec<f32>,
    valid: Vec<f32>,
    final_slot: Vec<i32>,
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").finish_non_exhaustive()
    }
}

impl Evaluator {
    /// Takes the environments; their noise is switched off.
    ///
    /// # Errors
    /// Their state cannot be saved, or memory does not suffice.
    pub fn new(mut env: BatchEnv) -> Result<Self, RunError> {
        env.set_noise(false);
        let mut start = Vec::new();
        env.save(&mut start)
            .map_err(ostler_collector::CollectError::Snapshot)?;
        let spec = env.spec();
        let n = spec.num_envs;
        let width = spec.action.width();
        let zeros = |k: usize| vec![0.0; n * k];
        Ok(Self {
            start,
            obs: zeros(spec.obs.policy),
            critic_obs: zeros(spec.obs.critic.unwrap_or(0)),
            action: zeros(width),
            action_tensor: Tensor::f_zeros(
                [n as i64, width as i64],
                (tch::Kind::Float, tch::Device::Cpu),
            )?,
            row: Row {
                reward: zeros(1),
                terminated: zeros(1),
                truncated: zeros(1),
                valid: zeros(1),
                final_slot: vec![0; n],
            },
            stats: EpisodeStats::default(),
            env,
        })
    }

    /// Runs `episodes` episodes, the same number in every environment (the first to
    /// finish would be the short ones); the rest of the division goes to the first.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn evaluate(
        &mut self,
        policy: &mut dyn Policy,
        episodes: usize,
    ) -> Result<Evaluation, RunError> {
        self.env
            .restore(&self.start)
            .map_err(ostler_collector::CollectError::Snapshot)?;
        let (n, obs_width, max_steps) = {
            let s = self.env.spec();
            (
                s.num_envs,
                s.obs.policy as i64,
                u64::from(s.max_episode_steps),
            )
        };
        let mut left: Vec<usize> = (0..n)
            .map(|e| episodes / n + usize::from(e < episodes % n))
            .collect();
        let rounds = left.iter().max().copied().unwrap_or(0) as u64;
        let (mut returns, mut lengths) = (Vec::with_capacity(episodes), 0.0);
        let mut steps = 0;
        {
            let mut obs = Groups {
                policy: self.obs.as_mut_slice(),
                critic: (!self.critic_obs.is_empty()).then_some(self.critic_obs.as_mut_slice()),
            };
            self.env.reset(false, &mut obs);
        }
        self.env.take_stats(&mut self.stats);
        // Broken environments start anew without counting: twice the time is enough
        // unless the task is hopeless.
        while left.iter().any(|&l| l > 0) && steps < 2 * max_steps * rounds {
            let obs = Tensor::f_from_slice(&self.obs)?.f_view([n as i64, obs_width])?;
            policy.act_mean(&obs, &self.action_tensor)?;
            let count = self.action.len();
            self.action_tensor.f_copy_data(&mut self.action, count)?;
            self.step();
            steps += 1;
            self.env.take_stats(&mut self.stats);
            for episode in &self.stats.finished {
                let Some(quota) = left.get_mut(episode.env as usize) else {
                    continue;
                };
                if *quota > 0 {
                    *quota -= 1;
                    returns.push(f64::from(episode.ret));
                    lengths += f64::from(episode.length);
                }
            }
        }
        let count = returns.len() as f64;
        let mean = returns.iter().sum::<f64>() / count;
        let variance = returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / count;
        Ok(Evaluation {
            mean_return: mean,
            std_return: variance.sqrt(),
            mean_length: lengths / count,
            episodes: returns.len(),
            env_steps: steps * n as u64,
        })
    }

    fn step(&mut self) {
        let critic = !self.critic_obs.is_empty();
        let row = &mut self.row;
        let mut out = StepOut {
            obs: Groups {
                policy: &mut self.obs,
                critic: critic.then_some(&mut self.critic_obs),
            },
            reward: &mut row.reward,
            terminated: &mut row.terminated,
            truncated: &mut row.truncated,
            valid: &mut row.valid,
            // No room: what would be bootstrapped is of no interest here.
            final_obs: Groups {
                policy: &mut [],
                critic: critic.then_some(&mut [] as &mut [f32]),
            },
            final_slot: &mut row.final_slot,
        };
        self.env.begin_rollout();
        self.env.step(&self.action, &mut out);
    }
}
