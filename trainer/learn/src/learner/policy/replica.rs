//! Copies of the actor, for threads that collect.

use super::{ActorCritic, CriticConfig, own_memory};
use crate::learner::published::{acting_spec, publish, take};
use ostler_collector::{Replica, Replicate};
use ostler_sim::device::Counts;
use tch::{Device, TchError, Tensor};

impl ActorCritic {
    /// Tensors that acting depends on, in the order in which they are published: the
    /// actor's parameters, which lie in front of the critic's, and its normaliser's.
    fn acting(&self) -> Result<Vec<Tensor>, TchError> {
        let theta = &self.params.theta;
        let mut all = vec![theta.f_narrow(0, 0, self.params.front("actor"))?];
        if let Some(normalizer) = &self.norm.actor {
            all.extend(normalizer.applied().map(Tensor::shallow_clone));
        }
        Ok(all)
    }
}

impl Replicate for ActorCritic {
    fn replica(&self, _first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        // A critic that is next to nothing.
        let critic = CriticConfig { shared: true, ..CriticConfig::default() };
        let spec = acting_spec(&self.spec, envs);
        let copy = Self::new(&self.config, &critic, &spec, 0, Device::Cpu);
        Ok(Box::new(copy.map_err(own_memory)?))
    }

    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError> {
        publish(&self.acting()?, out, crossed)
    }
}

impl Replica for ActorCritic {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        take(self.acting()?, weights)
    }
}
