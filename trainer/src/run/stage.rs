//! Environments for watching and judging a policy: nothing is stored, nothing learnt.

use super::error::RunError;
use crate::learner::ActorCritic;
use ostler_collector::Policy;
use ostler_sim::env::ActionSpace;
use ostler_sim::rng::{Purpose, philox, unit};
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};
use tch::{Device, Kind, Tensor};

/// Who decides on actions.
#[derive(Debug)]
pub enum Agent {
    /// A trained policy without chance: the mean or the most likely choice.
    Policy(Box<ActorCritic>),
    /// Zeros, or the first choice.
    Zero,
    /// Uniform in -1..1, or any choice, keyed by the seed.
    Random(u64),
}

/// Environments with the buffers that one step fills.
pub struct Stage {
    env: BatchEnv,
    obs: Vec<f32>,
    critic_obs: Vec<f32>,
    obs_tensor: Tensor,
    action: Vec<f32>,
    action_tensor: Tensor,
    reward: Vec<f32>,
    flags: [Vec<f32>; 3],
    final_slot: Vec<i32>,
    stats: EpisodeStats,
    steps: u64,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl Stage {
    /// Takes environments, switches their noise off and starts their episodes, all
    /// at age zero.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(mut env: BatchEnv) -> Result<Self, RunError> {
        env.set_noise(false);
        let spec = env.spec();
        let (n, width) = (spec.num_envs, spec.action.width());
        let zeros = |k: usize| vec![0.0; n * k];
        let tensor = |k: usize| Tensor::f_zeros([n as i64, k as i64], (Kind::Float, Device::Cpu));
        let mut stage = Self {
            obs: zeros(spec.obs.policy),
            critic_obs: zeros(spec.obs.critic.unwrap_or(0)),
            obs_tensor: tensor(spec.obs.policy)?,
            action: zeros(width),
            action_tensor: tensor(width)?,
            reward: zeros(1),
            flags: [zeros(1), zeros(1), zeros(1)],
            final_slot: vec![-1; n],
            stats: EpisodeStats::default(),
            steps: 0,
            env,
        };
        let critic = (!stage.critic_obs.is_empty()).then_some(stage.critic_obs.as_mut_slice());
        let policy = stage.obs.as_mut_slice();
        stage.env.reset(false, &mut Groups { policy, critic });
        stage.env.take_stats(&mut stage.stats);
        Ok(stage)
    }

    /// The environments.
    pub fn env(&self) -> &BatchEnv {
        &self.env
    }

    /// Reward of environment `e` in the last step.
    pub fn reward(&self, e: usize) -> f32 {
        self.reward.get(e).copied().unwrap_or(0.0)
    }

    /// Environment `e` broke in the last step and was reset.
    pub fn broke(&self, e: usize) -> bool {
        self.flags[2].get(e) == Some(&0.0)
    }

    /// One control step of all environments; returns the episodes that ended in it.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn step(&mut self, agent: &mut Agent) -> Result<&EpisodeStats, RunError> {
        self.decide(agent)?;
        self.steps += 1;
        let critic = !self.critic_obs.is_empty();
        let [terminated, truncated, valid] = &mut self.flags;
        self.env.begin_rollout();
        self.env.step(
            &self.action,
            &mut StepOut {
                obs: Groups {
                    policy: &mut self.obs,
                    critic: critic.then_some(&mut self.critic_obs),
                },
                reward: &mut self.reward,
                terminated,
                truncated,
                valid,
                // No room: nothing is bootstrapped here.
                final_obs: Groups {
                    policy: &mut [],
                    critic: critic.then_some(&mut [] as &mut [f32]),
                },
                final_slot: &mut self.final_slot,
            },
        );
        self.env.take_stats(&mut self.stats);
        Ok(&self.stats)
    }

    fn decide(&mut self, agent: &mut Agent) -> Result<(), RunError> {
        let space = self.env.spec().action;
        match agent {
            Agent::Policy(policy) => {
                let shape = self.obs_tensor.size();
                let obs = Tensor::f_from_slice(&self.obs)?.f_view(shape.as_slice())?;
                self.obs_tensor.f_copy_(&obs)?;
                policy.act_mean(&self.obs_tensor, &self.action_tensor)?;
                let count = self.action.len();
                self.action_tensor.f_copy_data(&mut self.action, count)?;
            }
            Agent::Zero => self.action.fill(0.0),
            Agent::Random(seed) => {
                let width = space.width().max(1);
                for (e, row) in self.action.chunks_mut(width).enumerate() {
                    for (k, action) in row.iter_mut().enumerate() {
                        let (block, word) = ((k / 4) as u32, k % 4);
                        let draw = philox(*seed, e as u32, Purpose::ActionNoise, self.steps, block);
                        let u = unit(draw[word]);
                        *action = match space {
                            ActionSpace::Continuous(_) => 2.0 * u - 1.0,
                            ActionSpace::Discrete(choices) => (u * choices as f32).floor(),
                        };
                    }
                }
            }
        }
        Ok(())
    }
}

/// How many of `episodes` each of `envs` environments contributes: the same number,
/// and the rest of the division one each from the first on. The first to finish
/// would be the short ones.
pub fn quotas(episodes: usize, envs: usize) -> Vec<usize> {
    let envs = envs.max(1);
    (0..envs)
        .map(|e| episodes / envs + usize::from(e < episodes % envs))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::quotas;

    #[test]
    fn quotas_add_up_and_differ_by_at_most_one() {
        for (episodes, envs) in [(1000, 64), (3, 8), (64, 64), (0, 4), (5, 0)] {
            let all = quotas(episodes, envs);
            assert_eq!(all.iter().sum::<usize>(), episodes);
            assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
        }
    }
}
