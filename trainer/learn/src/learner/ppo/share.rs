//! The part of a process in an update that several make together.
//!
//! The order of samples is one permutation of all processes' rows, and each takes its own of
//! every minibatch. Sums over the samples of all are then what one process would have, but for
//! the last digits: one message a minibatch has the gradient, the means of the losses and how
//! many samples count. What is decided by them is the same in every process.

use super::Ppo;
use super::loss::STATS;
use super::pool::Share;
use super::sequences::{Part, Sequences};
use crate::learner::error::LearnError;
use crate::learner::nn::host::kernels::MOST_IN_ORDER;
use crate::learner::tensors::zeros;
use ostler_collector::peers::Group;
use ostler_sim::config::ConfigError;
use tch::{Device, Kind};

impl Ppo {
    /// Learns from now on with other processes, of `num_envs` environments in all; comes before
    /// any update.
    ///
    /// # Errors
    /// The learner has a part that cannot; memory does not suffice.
    pub fn with_group(mut self, group: &Group, num_envs: usize) -> Result<Self, LearnError> {
        if group.is_alone() {
            return Ok(self);
        }
        let config = &self.config;
        let refused = [
            (config.rnd.is_on(), "ppo.rnd.weight", "0"),
            (config.priority_alpha > 0.0, "ppo.priority_alpha", "0"),
            (self.amp.is_some(), "amp.observations", "leave [amp] out"),
            (self.policy.device != Device::Cpu, "device", "\"cpu\""),
        ];
        if let Some((_, key, help)) = refused.into_iter().find(|r| r.0) {
            let why = "several processes cannot learn with it together";
            return Err(ConfigError::new(key, why).help(format!("{help}, or one process")).into());
        }
        let (first, own) = group.shard(num_envs);
        // Rows of an environment: its agents.
        let each = self.envs as usize / own.max(1);
        let steps = self.sequences.steps;
        let total = self.steps as usize * num_envs * each;
        if total > MOST_IN_ORDER {
            let why = format!("{total} samples in a rollout; at most {MOST_IN_ORDER} can be drawn");
            return Err(ConfigError::new("env.num_envs", why).into());
        }
        self.part = Part {
            all: Sequences::new(steps, num_envs * each, total),
            own: self.sequences,
            first: first * each,
        };
        let numbers = self.policy.params.len() + STATS as i64 + 1;
        let message = zeros("gradients of all processes", &[numbers], Kind::Float, Device::Cpu)?;
        self.share = Share { group: group.clone(), message: Some(message) };
        self.policy.norm.join(group);
        Ok(self)
    }
}
