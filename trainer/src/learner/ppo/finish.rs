//! The loss of a minibatch and, after the backward pass, its end: is it good, how
//! large is the step, the step. Where tensors lie on the host this works on their
//! memory, in one pass each, which saves eighty small operations; on a device it is
//! operations of tensors, and nothing is read back.

use super::host_loss::HostLoss;
use super::stats::Judge;
use super::{Ppo, Schedule};
use crate::learner::LearnError;
use crate::learner::nn::HostAdam;
use tch::{TchError, Tensor};

/// By how much the learning rate moves when the divergence is out of its range.
const FACTOR: f64 = 1.5;

/// Views of what a minibatch works on, on the host; good for one update, in which no
/// tensor is replaced.
#[derive(Debug)]
pub(super) struct Host {
    /// One for each size of minibatches.
    pub(super) losses: Vec<HostLoss>,
    adam: HostAdam,
    judge: Judge,
}

impl Ppo {
    /// Views for the coming update, where there is a host to look at.
    pub(super) fn host(&self) -> Result<Option<Host>, LearnError> {
        if !self.on_host {
            return Ok(None);
        }
        let stats = self.accumulator.losses();
        let losses = self.minibatches.iter();
        let losses = losses.map(|mb| HostLoss::new(mb, self.columns, stats));
        Ok(Some(Host {
            losses: losses.collect::<Result<_, _>>()?,
            adam: self.adam.on_host(&self.policy.params)?,
            judge: self.accumulator.on_host()?,
        }))
    }

    pub(super) fn finish_on_host(&mut self, host: &mut Host) -> Result<(), LearnError> {
        let limit = self.config.max_grad_norm;
        let norm = host.adam.gradient_norm()?;
        let (ok, kl) = host.judge.judge(norm, limit)?;
        if !ok {
            return Ok(());
        }
        if self.config.schedule == Schedule::Adaptive {
            let (low, high) = self.rate_bounds();
            let (c, lr) = (&self.config, host.adam.rate()?);
            // As below, on a device.
            host.adam.set_rate(if kl > 2.0 * c.desired_kl {
                (lr / FACTOR).max(low)
            } else if kl > 0.0 && kl < 0.5 * c.desired_kl {
                (lr * FACTOR).min(high)
            } else {
                lr
            })?;
        }
        host.adam.step((limit / (norm + 1e-6)).min(1.0))
    }

    pub(super) fn finish_on_device(&mut self) -> Result<(), LearnError> {
        let norm = self.policy.params.grad.f_norm()?;
        let limit = self.config.max_grad_norm;
        let (ok, kl) = self.accumulator.judge(&norm, limit)?;
        if self.config.schedule == Schedule::Adaptive {
            self.adapt(&ok, &kl)?;
        }
        let scale = norm
            .f_add_scalar(1e-6)?
            .f_reciprocal()?
            .f_mul_scalar(limit)?
            .f_clamp_max(1.0)?;
        Ok(self.adam.step(&mut self.policy.params, &scale, &ok)?)
    }

    /// The learning rate follows the divergence, on the device.
    fn adapt(&mut self, ok: &Tensor, kl: &Tensor) -> Result<(), TchError> {
        let c = &self.config;
        let far = kl.f_gt(2.0 * c.desired_kl)?.f_logical_and(ok)?;
        let near = kl
            .f_lt(0.5 * c.desired_kl)?
            .f_logical_and(&kl.f_gt(0.0)?)?
            .f_logical_and(ok)?;
        let lr = &self.adam.lr;
        // Bounds hold only in the direction of the change: a rate that was set outside
        // them stays until the divergence moves it.
        let (low, high) = self.rate_bounds();
        let down = lr.f_div_scalar(FACTOR)?.f_clamp_min(low)?;
        let up = lr.f_mul_scalar(FACTOR)?.f_clamp_max(high)?;
        let moved = down.f_where_self(&far, &up.f_where_self(&near, lr)?)?;
        self.adam.lr.f_copy_(&moved)
    }
}
