//! The mirror loss (`[symmetry]`): what the actor decides in a reflected observation becomes the
//! reflection of what it decides in the observation itself.
//!
//! Source: Yu, Turk and Liu, "Learning symmetric and low-energy locomotion", 2018, with the target
//! held fixed, as in rsl_rl.

use super::OffPolicy;
use super::actor::{ActorSpace, ContinuousPolicy};
use super::inputs::Inputs;
use super::method::{squash_slope, weighted};
use super::section::Section;
use crate::learner::error::LearnError;
use crate::learner::symmetry::{Reflect, SymmetryConfig};
use crate::learner::turn::Turn;
use ostler_sim::env::mirror::{Reflection, Signed};
use tch::{Kind, TchError, Tensor};

/// The loss, and what it computes with.
#[derive(Debug)]
pub(super) struct Mirror {
    weight: f64,
    obs: Turn,
    action: Turn,
    space: ActorSpace,
    /// The gradient of the other losses.
    others: Tensor,
    /// The loss's place among the actor's own numbers.
    place: usize,
}

impl Mirror {
    /// Adds the loss's gradient to that of the actor's other losses, for batch `x`, of which the
    /// actor gave `mean [B,A]` before squashing. The squared distance of mean actions, a mean over
    /// samples and actions, becomes a number of the section's.
    pub(super) fn add(
        &self,
        policy: &ContinuousPolicy,
        (x, mean): (&Inputs, &Tensor),
        section: &mut Section,
    ) -> Result<(), TchError> {
        let (net, grad) = (&policy.net, &policy.params.grad);
        self.others.shallow_clone().f_copy_(grad)?;
        let seen = self.obs.apply(net.now(x))?;
        net.forward_on(&seen, &self.space)?;
        let target = self.action.apply(&mean.f_tanh()?.f_mul(&policy.bound)?)?;
        let tanh = self.space.mean.f_tanh()?;
        let apart = tanh.f_mul(&policy.bound)?.f_sub(&target)?;
        let square = apart.f_mul(&apart)?.f_mean_dim(&[1i64][..], true, Kind::Float)?;
        section.own(self.place, &weighted(&square, &x.weight)?)?;
        let slope = squash_slope(&tanh, &policy.bound)?.f_mul(&x.weight)?;
        let slope = slope.f_mul_scalar(2.0 * self.weight / policy.width() as f64)?;
        self.space.d_mean.shallow_clone().f_copy_(&apart.f_mul(&slope)?)?;
        let _ = self.space.d_log_std.shallow_clone().f_zero_()?;
        net.backward_on(&seen, &self.space)?;
        let _ = grad.shallow_clone().f_add_(&self.others)?;
        Ok(())
    }
}

impl OffPolicy {
    /// Learns from reflections, too. `critic`: columns that the critic sees, where it has its own.
    /// For before [`open`](crate::learner::Remembers::open).
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn with_symmetry(
        mut self,
        of: &Reflection,
        config: &SymmetryConfig,
        critic: Option<usize>,
    ) -> Result<Self, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let device = self.device;
        let turn = |of: &Signed| Turn::new(of, device);
        let policy = &mut self.nets.policy;
        policy.norm.reflect(&of.policy, of.seen(critic).as_ref(), device)?;
        if config.augmentation {
            self.add_transform(Box::new(Reflect::new(of, critic, device)?));
        }
        if config.mirror_loss > 0.0 {
            let policy = &self.nets.policy;
            let place = self.actor.owns();
            self.actor = Section::new(place + 1, self.common.max_grad_norm, device)?;
            self.mirror = Some(Mirror {
                weight: config.mirror_loss,
                obs: turn(&of.policy)?,
                action: turn(&of.action)?,
                space: policy.net.learning_space(self.common.batch_size as i64, device)?,
                others: policy.params.grad.f_zeros_like()?,
                place,
            });
        }
        Ok(self)
    }

    /// The mirror loss, the mean of an update, where there is one.
    pub(super) fn mirrored(&self, own: &[f64; 3]) -> Option<f64> {
        self.mirror.as_ref().and_then(|mirror| own.get(mirror.place).copied())
    }
}
