//! Environments for watching and judging a policy: nothing is stored, nothing learnt.

use super::rows::Rows;
use crate::export::PolicyFile;
use crate::run::error::RunError;
use ostler_collector::env::Environments;
use ostler_collector::transfer::read_into;
use ostler_collector::{CollectError, HiddenStates};
use ostler_learn::learner::TrainedPolicy;
use ostler_sim::env::ActionSpace;
use ostler_sim::memory::zeroed;
use ostler_sim::rng::{Purpose, philox, unit};
use ostler_sim::{BatchEnv, EpisodeStats};
use tch::{Device, Kind, Tensor};

/// Who decides on actions.
#[derive(Debug)]
pub enum Agent {
    /// A trained policy without chance: the mean or the most likely choice.
    Policy(Player),
    /// A policy that was exported.
    File(PolicyFile),
    /// Zeros, or the first choice.
    Zero,
    /// Uniform in -1..1, or any choice, keyed by the seed.
    Random(u64),
    /// Of several agents in every environment, somebody else decides for one.
    Instead {
        /// Who decides for the one; not itself of this kind.
        by: Box<Agent>,
        /// The one's place among the agents of its environment.
        of: usize,
        /// Who decides for the others.
        rest: Box<Agent>,
    },
}

/// A policy and what it remembers.
#[derive(Debug)]
pub struct Player {
    policy: Box<dyn TrainedPolicy>,
    /// Of a recurrent one, once it has acted.
    hidden: Option<HiddenStates>,
}

impl From<Box<dyn TrainedPolicy>> for Player {
    fn from(policy: Box<dyn TrainedPolicy>) -> Self {
        Self { policy, hidden: None }
    }
}

impl Player {
    fn act(&mut self, obs: &Tensor, action: &Tensor) -> Result<(), RunError> {
        if self.hidden.is_none() {
            self.hidden = HiddenStates::of(&*self.policy, obs.size()[0] as usize)?;
        }
        let hidden = self.hidden.as_ref().map(HiddenStates::step);
        Ok(self.policy.act_mean(obs, hidden, action)?)
    }
}

impl Agent {
    /// After a step, of which `rows` say what it came to.
    fn remember(&mut self, rows: &Rows) -> Result<(), RunError> {
        match self {
            Self::Policy(Player { hidden: Some(hidden), .. }) => Ok(hidden.advance(rows.ended())?),
            Self::File(file) => Ok(file.forget(rows.ended())?),
            Self::Instead { by, rest, .. } => {
                by.remember(rows)?;
                rest.remember(rows)
            }
            Self::Policy(_) | Self::Zero | Self::Random(_) => Ok(()),
        }
    }
}

impl Agent {
    /// All episodes begin anew.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn forget(&mut self) -> Result<(), RunError> {
        match self {
            Self::Policy(player) => player.hidden = None,
            Self::File(file) => file.forget_all(),
            Self::Instead { by, rest, .. } => {
                by.forget()?;
                rest.forget()?;
            }
            Self::Zero | Self::Random(_) => {}
        }
        Ok(())
    }
}

/// Environments with the buffers that one step fills.
pub struct Stage<E: ?Sized = BatchEnv> {
    env: Box<E>,
    rows: Rows,
    obs_tensor: Tensor,
    action: Vec<f32>,
    /// Actions of whoever decided first.
    spare: Vec<f32>,
    action_tensor: Tensor,
    stats: EpisodeStats,
    steps: u64,
}

impl<E: ?Sized> std::fmt::Debug for Stage<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl<E: Environments + ?Sized> Stage<E> {
    /// Takes environments, switches their noise off and starts their episodes, all
    /// at age zero.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(env: Box<E>) -> Result<Self, RunError> {
        Self::noisy(env, false)
    }

    /// The same with the noise of training, or without.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn noisy(mut env: Box<E>, noise: bool) -> Result<Self, RunError> {
        env.set_noise(noise);
        let spec = env.spec();
        let (n, width) = (spec.rows(), spec.action.width());
        let tensor = |k: usize| Tensor::f_zeros([n as i64, k as i64], (Kind::Float, Device::Cpu));
        let mut stage = Self {
            rows: Rows::new(spec).map_err(CollectError::from)?,
            obs_tensor: tensor(spec.obs.policy)?,
            action: zeroed("actions", n.saturating_mul(width)).map_err(CollectError::from)?,
            spare: Vec::new(),
            action_tensor: tensor(width)?,
            stats: EpisodeStats::with_room(spec).map_err(CollectError::from)?,
            steps: 0,
            env,
        };
        stage.rows.reset(&mut *stage.env, false)?;
        stage.env.take_stats(&mut stage.stats);
        Ok(stage)
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Reward of environment `e` in the last step: the mean over its agents.
    pub fn reward(&self, e: usize) -> f32 {
        let m = self.env.spec().agents_per_env();
        let own = self.rows.reward.get(e * m..(e + 1) * m).unwrap_or_default();
        own.iter().sum::<f32>() / m as f32
    }

    /// The environments, to interfere with.
    pub fn env_mut(&mut self) -> &mut E {
        &mut self.env
    }

    /// What the policies see of environment `e` next `[M*O]`.
    pub fn observation(&self, e: usize) -> &[f32] {
        let spec = self.env.spec();
        let width = spec.obs.policy * spec.agents_per_env();
        let own = self.rows.obs.get(e * width..(e + 1) * width);
        own.unwrap_or_default()
    }

    /// Begins all episodes anew.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn restart(&mut self, agent: &mut Agent) -> Result<(), RunError> {
        self.rows.reset(&mut *self.env, false)?;
        self.env.take_stats(&mut self.stats);
        agent.forget()
    }

    /// Rewards of all agents in the last step `[N*M]`.
    pub fn rewards(&self) -> &[f32] {
        &self.rows.reward
    }

    /// Environment `e` broke in the last step and was reset.
    pub fn broke(&self, e: usize) -> bool {
        let m = self.env.spec().agents_per_env();
        self.rows.valid().get(e * m) == Some(&0.0)
    }

    /// The episodes that ended in the last step.
    pub fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    /// One control step of all environments; returns the episodes that ended in it.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn step(&mut self, agent: &mut Agent) -> Result<&EpisodeStats, RunError> {
        self.decide(agent)?;
        self.steps += 1;
        self.env.begin_rollout();
        self.rows.step(&mut *self.env, &self.action)?;
        agent.remember(&self.rows)?;
        self.env.take_stats(&mut self.stats);
        Ok(&self.stats)
    }

    fn decide(&mut self, agent: &mut Agent) -> Result<(), RunError> {
        let space = self.env.spec().action;
        match agent {
            Agent::Policy(policy) => {
                let shape = self.obs_tensor.size();
                let obs = Tensor::f_from_slice(&self.rows.obs)?.f_view(shape.as_slice())?;
                self.obs_tensor.f_copy_(&obs)?;
                policy.act(&self.obs_tensor, &self.action_tensor)?;
                read_into(&self.action_tensor, &mut self.action)?;
            }
            Agent::File(file) => {
                file.act(&self.rows.obs, &self.action_tensor)?;
                read_into(&self.action_tensor, &mut self.action)?;
            }
            Agent::Zero => self.action.fill(0.0),
            Agent::Instead { by, of, rest } => {
                self.decide(rest)?;
                self.spare.clone_from(&self.action);
                self.decide(by)?;
                let m = self.env.spec().agents_per_env();
                let rows = self.action.chunks_mut(space.width().max(1));
                let first = self.spare.chunks(space.width().max(1));
                for (r, (row, first)) in rows.zip(first).enumerate() {
                    if r % m != *of {
                        row.copy_from_slice(first);
                    }
                }
            }
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
    (0..envs).map(|e| episodes / envs + usize::from(e < episodes % envs)).collect()
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
