//! Where a step's results go when nothing is stored: for watching, judging, measuring
//! and replaying.

use ostler_collector::CollectError;
use ostler_collector::env::Environments;
use ostler_sim::StepOut;
use ostler_sim::env::{EnvSpec, Groups};
use ostler_sim::memory::{MemoryError, zeroed};

/// One row for each environment and agent. Nothing is bootstrapped here, so there is no
/// room for the observations before a reset.
#[derive(Debug)]
pub struct Rows {
    /// The policy's observations `[N][O]`.
    pub obs: Vec<f32>,
    critic: Option<Vec<f32>>,
    /// Rewards `[N]`.
    pub reward: Vec<f32>,
    /// Terminated, truncated, valid `[N]` each.
    flags: [Vec<f32>; 3],
    slot: Vec<i32>,
}

impl Rows {
    /// Zeros for all rows of `spec`.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(spec: &EnvSpec) -> Result<Self, MemoryError> {
        let n = spec.rows();
        let zeros = |k: usize| zeroed::<f32>("environments that are watched", n.saturating_mul(k));
        Ok(Self {
            obs: zeros(spec.obs.policy)?,
            critic: spec.obs.critic.map(zeros).transpose()?,
            reward: zeros(1)?,
            flags: [zeros(1)?, zeros(1)?, zeros(1)?],
            slot: zeroed("environments that are watched", n)?,
        })
    }

    /// 1 where the transition counts, 0 where the environment broke `[N]`.
    pub fn valid(&self) -> &[f32] {
        &self.flags[2]
    }

    /// Which rows ended an episode in the last step, or broke.
    pub fn ended(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        let [terminated, truncated, valid] = &self.flags;
        ostler_collector::hidden::ended(terminated, truncated, valid)
    }

    /// Starts all episodes; see [`ostler_sim::BatchEnv::reset`].
    ///
    /// # Errors
    /// Another process that has the environments cannot go on.
    pub fn reset<E: Environments + ?Sized>(
        &mut self,
        env: &mut E,
        spread: bool,
    ) -> Result<(), CollectError> {
        let mut obs =
            Groups { policy: self.obs.as_mut_slice(), critic: self.critic.as_deref_mut() };
        env.reset(spread, &mut obs)
    }

    /// One control step.
    ///
    /// # Errors
    /// As for [`reset`](Self::reset).
    pub fn step<E: Environments + ?Sized>(
        &mut self,
        env: &mut E,
        actions: &[f32],
    ) -> Result<(), CollectError> {
        let critic = self.critic.is_some();
        let [terminated, truncated, valid] = &mut self.flags;
        let mut out = StepOut {
            obs: Groups { policy: &mut self.obs, critic: self.critic.as_deref_mut() },
            reward: &mut self.reward,
            terminated,
            truncated,
            valid,
            final_obs: Groups { policy: &mut [], critic: critic.then_some(&mut [] as &mut [f32]) },
            final_slot: &mut self.slot,
        };
        env.step(actions, &mut out)
    }
}
