//! Copies of the actor, for threads that collect.

use super::{ActorCritic, CriticConfig};
use crate::learner::LearnError;
use ostler_collector::memory::memory_as_tch;
use ostler_collector::transfer::read_into;
use ostler_collector::{Replica, Replicate};
use ostler_sim::Groups;
use ostler_sim::env::EnvSpec;
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
    fn replica(&self, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        // A critic that is next to nothing.
        let critic = CriticConfig {
            shared: true,
            ..CriticConfig::default()
        };
        let spec = EnvSpec {
            num_envs: envs,
            obs: Groups {
                policy: self.spec.obs.policy,
                critic: None,
            },
            ..self.spec.clone()
        };
        let copy = Self::new(&self.config, &critic, &spec, 0, Device::Cpu);
        Ok(Box::new(copy.map_err(|e| match e {
            LearnError::Torch(e) => e,
            LearnError::Memory(e) => memory_as_tch(e),
            e => TchError::Torch(e.to_string()),
        })?))
    }

    fn weights(&self, out: &mut Vec<f32>) -> Result<(), TchError> {
        let acting = self.acting()?;
        let total: usize = acting.iter().map(Tensor::numel).sum();
        out.clear();
        out.try_reserve_exact(total).map_err(|_| {
            memory_as_tch(ostler_sim::memory::MemoryError {
                what: "published weights".into(),
                bytes: 4 * total,
            })
        })?;
        out.resize(total, 0.0);
        let mut rest = &mut out[..];
        for tensor in acting {
            let (part, after) = rest.split_at_mut(tensor.numel());
            read_into(&tensor, part)?;
            rest = after;
        }
        Ok(())
    }
}

impl Replica for ActorCritic {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        let acting = self.acting()?;
        let total: usize = acting.iter().map(Tensor::numel).sum();
        if total != weights.len() {
            return Err(TchError::Shape(format!(
                "{} published weights, a copy of the policy has {total}",
                weights.len()
            )));
        }
        let mut rest = weights;
        for mut tensor in acting {
            let (part, after) = rest.split_at(tensor.numel());
            tensor.f_copy_(&Tensor::f_from_slice(part)?.f_view_as(&tensor)?)?;
            rest = after;
        }
        Ok(())
    }
}
