//! Samples of an older policy than the one that learns.
//!
//! The proximal policy is that at the update's start, not the one that acted (Hilton, Cobbe and
//! Schulman, "Batch size-invariance for policy optimization", 2022): the ratio and the
//! divergence of the loss begin at 1 and 0. Weights, clipped to 1, correct for the older
//! policy's other actions (Espeholt et al., "IMPALA", 2018).

use super::{Ppo, Staleness, loss};
use tch::{Kind, TchError, Tensor};

/// Actions, and the distribution that they were drawn from: action `[M,A]`, mean or logits `[M,D]`,
/// standard deviation `[M,A]`.
pub(super) struct Acted {
    pub action: Tensor,
    pub dist: Tensor,
    pub std: Option<Tensor>,
}

/// The policy that the loss measures a new one against.
pub(super) struct Reference {
    /// Mean or logits `[M,D]`.
    pub dist: Tensor,
    /// Deviation `[M,A]`; none for a categorical policy.
    pub std: Option<Tensor>,
    /// Log-probability of the actions `[M,1]`.
    pub log_prob: Tensor,
    /// Weight of each sample `[M,1]`, at most 1, where another policy acted.
    pub weight: Option<Tensor>,
}

impl Ppo {
    /// The policy as it is now, where samples may be of an older one; else the one that
    /// acted, which is the same. After the values were estimated.
    pub(super) fn reference(&self, acted: &Acted) -> Result<Reference, TchError> {
        let Acted { action, dist, std } = acted;
        let log_prob = loss::old_log_prob(action, dist, std.as_ref())?;
        match self.config.staleness_correction {
            Staleness::Vtrace | Staleness::Clip => {}
            Staleness::Auto | Staleness::None => {
                return Ok(Reference {
                    dist: dist.shallow_clone(),
                    std: std.as_ref().map(Tensor::shallow_clone),
                    log_prob,
                    weight: None,
                });
            }
        }
        let sees = self.values.actor_sees();
        let (dist, std) = self.values.decide(&self.policy, sees, action.size()[0])?;
        let now = loss::old_log_prob(action, &dist, std.as_ref())?;
        let weight = now.f_sub(&log_prob)?.f_exp()?.f_clamp_max(1.0)?;
        Ok(Reference { dist, std, log_prob: now, weight: Some(weight) })
    }
}

impl super::values::Values {
    /// Decisions of the present policy in the first `rows` of what its layers see, `x [..,O]`: mean
    /// or logits `[M,D]`, and the standard deviation `[M,A]` where it has one.
    pub(super) fn decide(
        &self,
        policy: &crate::learner::ActorCritic,
        x: &Tensor,
        rows: i64,
    ) -> Result<(Tensor, Option<Tensor>), TchError> {
        let width = policy.net.dist_width();
        let empty = || Tensor::f_empty([rows, width], (Kind::Float, x.device()));
        let dist = empty()?;
        let std = match policy.net.is_categorical() {
            true => None,
            false => Some(empty()?),
        };
        self.in_chunks(rows, |at, len, space| {
            policy.net.forward_actor(&x.f_narrow(0, at, len)?, space)?;
            dist.f_narrow(0, at, len)?.f_copy_(&space.dist)?;
            if let Some(std) = &std {
                std.f_narrow(0, at, len)?.f_copy_(&space.log_std.f_exp()?)?;
            }
            Ok(())
        })?;
        Ok((dist, std))
    }
}
