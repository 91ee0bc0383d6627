//! A rollout's reflections, before the first minibatch.

use super::Ppo;
use super::batch::Samples;
use super::mirrored::{Mirrored, Reflected};
use crate::learner::error::LearnError;
use crate::learner::symmetry::SymmetryConfig;
use crate::learner::tensors::zeros;
use crate::learner::turn::Turn;
use ostler_collector::Rollout;
use ostler_sim::env::mirror::{Reflection, Signed};
use tch::{Kind, TchError, Tensor};

impl Ppo {
    /// Learns from the reflections of samples, too. `critic`: columns that the critic sees, where
    /// it has its own.
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
        let device = self.policy.device;
        let turn = |of: &Signed| Turn::new(of, device);
        let critic = of.seen(critic);
        self.policy.norm.reflect(&of.policy, critic.as_ref(), device)?;
        if config.mirror_loss > 0.0 {
            self.columns.target = self.columns.dist;
        }
        let total = self.steps * self.envs;
        self.samples = Samples::new(self.columns, 2 * total, device)?;
        let width = self.policy.net.hidden_width();
        let hidden = match width {
            0 => None,
            _ => Some(zeros("hidden states", &[self.envs, width], Kind::Float, device)?),
        };
        self.mirrored = Some(Mirrored {
            policy: turn(&of.policy)?,
            critic: critic.as_ref().map(turn).transpose()?,
            action: turn(&of.action)?,
            augmentation: config.augmentation,
            loss: config.mirror_loss,
            signed: of.action.clone(),
            hidden,
        });
        self.declare()?;
        match crate::learner::nn::device::LearnKernels::of(device)? {
            Some(kernels) => self.learn_with(&kernels)?,
            None => self.path = self.in_blocks(1, None)?,
        }
        Ok(self)
    }

    /// Whether minibatches have samples and their reflections: 2, or 1.
    pub(super) fn sides(&self) -> usize {
        1 + usize::from(self.mirrored.is_some())
    }

    /// How much a distance from a teacher, or from the policy's own reflection, counts.
    pub(super) fn target_coef(&self) -> f64 {
        match &self.mirrored {
            Some(mirrored) if mirrored.loss > 0.0 => f64::from(mirrored.coef()),
            _ => self.config.imitation.coef_at(self.left),
        }
    }

    /// What of the reflections, whose inputs stand behind the samples, is computed before the first
    /// minibatch.
    pub(super) fn reflect(
        &self,
        mirrored: &Mirrored,
        rollout: &Rollout,
    ) -> Result<Reflected, TchError> {
        let (total, n) = (self.steps * self.envs, self.envs);
        let x = self.samples.x_actor.f_narrow(0, total, total)?;
        let critic =
            |seen: &Tensor| mirrored.critic.as_ref().unwrap_or(&mirrored.policy).apply(seen);
        let sees = self.values.critic_sees().f_narrow(0, 0, total)?;
        let Some(hidden) = &mirrored.hidden else {
            let (dist, std) = self.values.decide(&self.policy, &x, total)?;
            let critic = if self.same_inputs { None } else { Some(critic(&sees)?) };
            return Ok(Reflected { critic, hidden: None, dist, std });
        };
        // Step by step: the hidden states that the reflected observations leave.
        let width = hidden.size2()?.1;
        let before = Tensor::f_empty([total, width], (Kind::Float, x.device()))?;
        let after = before.f_empty_like()?;
        let ended = rollout.ended()?.f_view([self.steps, n, 1])?.f_to_device(x.device())?;
        let mut now = hidden.f_narrow(0, self.part.first as i64, n)?.f_add_scalar(0.0)?;
        // Where the rollout began with a new episode, so does its reflection.
        if let Some(own) = &rollout.hidden {
            let old = own.f_get(0)?.f_any_dim(1, true)?.f_to_device(x.device())?;
            now = now.f_masked_fill(&old.f_logical_not()?, 0.0)?;
        }
        let space = self.policy.net.space(n, false, x.device());
        let space = space.map_err(crate::learner::policy::own_memory)?;
        for t in 0..self.steps {
            before.f_narrow(0, t * n, n)?.f_copy_(&now)?;
            let observed = x.f_narrow(0, t * n, n)?;
            let seen = self.policy.net.see(&observed, Some(&now), &space)?;
            let next = self.policy.net.hidden_of(seen)?;
            after.f_narrow(0, t * n, n)?.f_copy_(&next)?;
            now = next.f_masked_fill(&ended.f_get(t)?.f_gt(0.0)?, 0.0)?;
        }
        let all = self.group.among(&now, 0, self.part.place())?;
        hidden.shallow_clone().f_copy_(&all)?;
        let seen = Tensor::f_cat(&[&x, &after], 1)?;
        let (dist, std) = self.values.decide(&self.policy, &seen, total)?;
        let critic = match self.same_inputs {
            true => None,
            false => {
                let observed = sees.f_narrow(1, 0, sees.size2()?.1 - width)?;
                Some(Tensor::f_cat(&[&critic(&observed)?, &after], 1)?)
            }
        };
        Ok(Reflected { critic, hidden: Some(before), dist, std })
    }
}
