//! Copies of the policy, for threads that collect.

use super::actor::ContinuousPolicy;
use crate::learner::CriticConfig;
use crate::learner::policy::own_memory;
use crate::learner::published::{acting_spec, publish, take};
use ostler_collector::{Replica, Replicate};
use ostler_sim::device::Counts;
use tch::{Device, TchError, Tensor};

impl ContinuousPolicy {
    /// Tensors that acting depends on, in the order in which they are published.
    fn acting(&self) -> Vec<Tensor> {
        let mut all = vec![self.params.theta.shallow_clone()];
        if let Some(normalizer) = &self.norm.actor {
            all.extend(normalizer.applied().map(Tensor::shallow_clone));
        }
        all
    }
}

impl Replicate for ContinuousPolicy {
    fn replica(&self, first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        // None of the critic's statistics are needed.
        let critic = CriticConfig {
            obs_normalization: self.config.obs_normalization,
            ..CriticConfig::default()
        };
        let spec = acting_spec(&self.spec, envs);
        let (explore, bounds) = (self.explore, &self.bounds);
        let copy = Self::new(&self.config, &critic, &spec, explore, bounds, 0, Device::Cpu);
        let mut copy = copy.map_err(own_memory)?;
        copy.begin_at(first * spec.agents_per_env()).map_err(own_memory)?;
        Ok(Box::new(copy))
    }

    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError> {
        publish(&self.acting(), out, crossed)
    }
}

impl Replica for ContinuousPolicy {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        take(self.acting(), weights)
    }
}
