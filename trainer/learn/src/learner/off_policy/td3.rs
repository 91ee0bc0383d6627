//! Losses of TD3 with critics that learn the distribution of returns, and their
//! gradients, written by hand.
//!
//! Sources: Seo et al., "FastTD3", 2025: no slow copy of the actor, mixed exploration;
//! Fujimoto et al. 2018: smoothed targets, delayed actor.

use super::actor::ActorSpace;
use super::config::Td3Config;
use super::critics::CriticSpaces;
use super::inputs::Inputs;
use super::method::{Method, Nets, squash_slope, weighted};
use super::section::Section;
use super::values::Values;
use crate::learner::error::LearnError;
use crate::learner::tensors::zeros;
use tch::{Device, Kind, TchError, Tensor};

/// Twin delayed deterministic policy gradient with distributional critics.
#[derive(Debug)]
pub(crate) struct Td3 {
    policy_noise: f64,
    noise_clip: f64,
    values: Values,
    actor: ActorSpace,
    next: ActorSpace,
    critics: CriticSpaces,
    d_action: Tensor,
    scratch: Tensor,
    td_error: Tensor,
}

impl Td3 {
    /// Allocates for batches of `config.batch_size` transitions.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(config: &Td3Config, nets: &Nets, device: Device) -> Result<Self, LearnError> {
        let rows = config.batch_size as i64;
        let width = nets.policy.width();
        let matrix = || zeros("action gradients", &[rows, width], Kind::Float, device);
        Ok(Self {
            policy_noise: config.policy_noise,
            noise_clip: config.noise_clip,
            values: config.values(device)?,
            actor: nets.policy.net.learning_space(rows, device)?,
            next: nets.policy.net.space(rows, device)?,
            critics: nets.critics.spaces(rows, device)?,
            d_action: matrix()?,
            scratch: matrix()?,
            td_error: Tensor::new(),
        })
    }
}

impl Method for Td3 {
    fn critic_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        nets.policy.net.forward(&x.next_obs, &self.next)?;
        let noise = x
            .next_noise
            .f_mul_scalar(self.policy_noise)?
            .f_clamp(-self.noise_clip, self.noise_clip)?;
        let action = self.next.mean.f_tanh()?.f_add(&noise)?;
        let action = action.f_clamp(-1.0, 1.0)?.f_mul(&nets.policy.bound)?;
        x.next.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_next(x, &self.critics)?;
        let targets = self.values.targets(&self.critics.next.out, &x.reward, &x.bootstrap)?;
        nets.critics.forward_taken(x, &self.critics)?;
        self.td_error = self.values.losses(&self.critics.taken, &targets, x, section)?;
        nets.critics.backward(x, &self.critics)
    }

    fn actor_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        let bound = &nets.policy.bound;
        nets.policy.net.forward_now(x, &self.actor)?;
        let tanh = self.actor.mean.f_tanh()?;
        let action = tanh.f_mul(bound)?;
        x.now.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_now(x, &self.critics)?;
        let worth = self.values.of_actions(self.critics.now(), &x.weight)?;
        nets.critics.backward_action(&self.critics, &self.d_action, &self.scratch)?;
        let slope = squash_slope(&tanh, bound)?;
        let _ = self.d_action.f_mul_out(&self.actor.d_mean, &slope)?;
        section.losses(&x.total, &weighted(&worth, &x.weight)?.f_neg()?)?;
        nets.policy.net.backward(x, &self.actor)
    }

    fn mean(&self) -> &Tensor {
        &self.actor.mean
    }

    fn td_error(&self) -> &Tensor {
        &self.td_error
    }
}
