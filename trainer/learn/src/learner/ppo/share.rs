//! The part of a process in an update that several make together.
//!
//! The order of samples is one permutation of all processes' rows, and each takes its own of
//! every minibatch. Sums over the samples of all are then what one process would have, but for
//! the last digits: one message a minibatch has the gradient, the means of the losses and how
//! many samples count. What is decided by them is the same in every process.

use super::Ppo;
use super::sequences::{Part, Sequences};
use crate::learner::choice::alone_only;
use crate::learner::error::LearnError;
use crate::learner::nn::host::kernels::MOST_IN_ORDER;
use ostler_collector::peers::{Group, Place};
use ostler_collector::transfer::host_number;
use ostler_sim::config::ConfigError;
use tch::{Device, TchError, Tensor};

impl Ppo {
    /// Learns from now on with other processes, of whose rows its own are at `place`; comes
    /// before any update.
    ///
    /// # Errors
    /// The learner has a part that cannot; memory does not suffice.
    pub fn with_group(mut self, group: &Group, place: Place) -> Result<Self, LearnError> {
        if group.is_alone() {
            return Ok(self);
        }
        alone_only(&[(self.policy.device != Device::Cpu, "device", "\"cpu\"")])?;
        let (first, rows) = (place.first as usize, place.all as usize);
        let steps = self.sequences.steps;
        let total = self.steps as usize * rows;
        if total > MOST_IN_ORDER {
            let why = format!("{total} samples in a rollout; at most {MOST_IN_ORDER} can be drawn");
            return Err(ConfigError::new("env.num_envs", why).into());
        }
        self.part = Part { all: Sequences::new(steps, rows, total), own: self.sequences, first };
        self.policy.norm.join(group);
        self.group = group.clone();
        if let Some(rnd) = &mut self.rnd {
            rnd.join(group, place)?;
        }
        if let Some(amp) = &mut self.amp {
            amp.join(group, place, self.config.num_mini_batches)?;
        }
        if let Some(mirrored) = &mut self.mirrored {
            mirrored.join(place.all)?;
        }
        self.declare()?;
        Ok(self)
    }

    /// Gradient and means, which were divided by `divisor` samples, become those of all
    /// processes' samples, of which `counted` are this one's and count.
    pub(super) fn pool(&self, counted: f32, divisor: f32) -> Result<(), TchError> {
        if self.group.is_alone() {
            return Ok(());
        }
        let sums = [&self.policy.params.grad, self.accumulator.losses()];
        let [grad, losses] = sums.map(Tensor::shallow_clone);
        let counted = Tensor::f_from_slice(&[counted])?;
        let [mut grad, mut losses, all] = self.group.totals([grad, losses, counted])?;
        let factor = f64::from(divisor) / host_number(&all)?;
        if factor != 1.0 {
            // Without a valid sample anywhere the means are no numbers, as they would be alone.
            let _ = grad.f_mul_scalar_(factor)?;
            let _ = losses.f_mul_scalar_(factor)?;
        }
        Ok(())
    }
}
