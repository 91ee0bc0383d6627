//! The results of a batch's steps, with memory of their own.

use super::{EnvSpec, Groups, StepOut};

/// The results of one step of a batch.
pub(crate) struct Results {
    pub policy: Vec<f32>,
    pub critic: Vec<f32>,
    pub final_policy: Vec<f32>,
    pub final_critic: Vec<f32>,
    pub reward: Vec<f32>,
    pub terminated: Vec<f32>,
    pub truncated: Vec<f32>,
    pub valid: Vec<f32>,
    pub slot: Vec<i32>,
}

impl Results {
    pub(crate) fn new(spec: &EnvSpec) -> Self {
        let (n, critic) = (spec.rows(), spec.obs.critic.unwrap_or(0));
        Self {
            policy: vec![0.0; n * spec.obs.policy],
            critic: vec![0.0; n * critic],
            final_policy: vec![0.0; n * spec.obs.policy],
            final_critic: vec![0.0; n * critic],
            reward: vec![0.0; n],
            terminated: vec![0.0; n],
            truncated: vec![0.0; n],
            valid: vec![0.0; n],
            slot: vec![0; n],
        }
    }

    pub(crate) fn out(&mut self) -> StepOut<'_> {
        let own = !self.critic.is_empty();
        StepOut {
            obs: Groups { policy: &mut self.policy, critic: own.then_some(&mut self.critic[..]) },
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            valid: &mut self.valid,
            final_obs: Groups {
                policy: &mut self.final_policy,
                critic: own.then_some(&mut self.final_critic[..]),
            },
            final_slot: &mut self.slot,
        }
    }

    /// Whether the episode of environment `e` goes on.
    pub(crate) fn goes_on(&self, e: usize) -> bool {
        self.valid[e] == 1.0 && self.terminated[e] == 0.0 && self.truncated[e] == 0.0
    }
}
