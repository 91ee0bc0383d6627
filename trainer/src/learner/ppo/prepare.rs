//! What comes before the first minibatch, and the statistics that come after the last.

use super::batch::{Columns, Samples};
use super::{AdvantageNorm, Ppo, gae, loss};
use crate::learner::nn::zeros;
use crate::learner::{ActorCritic, LearnError};
use ostler_collector::Rollout;
use tch::{Device, Kind, TchError, Tensor};

impl Ppo {
    /// Inputs, values, advantages and old log-probabilities of all samples.
    pub(super) fn prepare(&mut self, rollout: &Rollout) -> Result<(), TchError> {
        let total = self.steps * self.envs;
        self.values.estimate(&self.policy, rollout)?;
        let inputs = self.values.inputs();
        self.samples.x_actor = inputs.0.f_narrow(0, 0, total)?;
        self.samples.x_critic = match inputs.1 {
            Some(x) => Some(x.f_narrow(0, 0, total)?),
            None => None,
        };

        let device = self.policy.device;
        let grid = |t: &Tensor| t.f_to_device(device);
        let column = |t: &Tensor| grid(t)?.f_view([total, -1]);
        let valid = column(&rollout.valid)?;
        gae::advantages(
            &gae::Trace {
                reward: &grid(&rollout.reward)?,
                terminated: &grid(&rollout.terminated)?,
                truncated: &grid(&rollout.truncated)?,
                valid: &grid(&rollout.valid)?,
                value: &self.values.value,
                final_value: &self.values.final_value,
                final_slot: &grid(&rollout.final_slot)?,
            },
            self.config.gamma,
            self.config.gae_lambda,
            &self.values.advantage,
        )?;
        let advantage = self.values.advantage.f_view([total, 1])?;
        let value = self
            .values
            .value
            .f_narrow(0, 0, self.steps)?
            .f_reshape([total, 1])?;
        let returns = advantage.f_add(&value)?;
        let weighed = match self.config.normalize_advantage {
            AdvantageNorm::Batch => loss::standardize(&advantage, &valid)?,
            _ => advantage.shallow_clone(),
        };

        let (action, dist) = (column(&rollout.action)?, column(&rollout.dist)?);
        let std = if self.columns.std > 0 {
            Some(column(&rollout.std)?)
        } else {
            None
        };
        let log_prob = loss::old_log_prob(&action, &dist, std.as_ref())?;
        self.accumulator
            .begin(&valid, &returns, &advantage, std.as_ref())?;
        let (returns, value) = self.targets(returns, value, &valid)?;
        let mut columns = vec![&action, &dist];
        columns.extend(std.as_ref());
        columns.extend([&log_prob, &weighed, &returns, &value, &valid]);
        let _ = Tensor::f_cat_out(&self.samples.packed, &columns, 1)?;
        Ok(())
    }

    /// Returns and old values `[M,1]` in the units that the critic learns in. Where
    /// these move, so does its output layer.
    fn targets(
        &mut self,
        returns: Tensor,
        value: Tensor,
        valid: &Tensor,
    ) -> Result<(Tensor, Tensor), TchError> {
        let ActorCritic { net, norm, .. } = &mut self.policy;
        let Some(normalizer) = &mut norm.returns else {
            return Ok((returns, value));
        };
        normalizer.merge(&returns, valid, net.value_head())?;
        Ok((
            normalizer.normalize(&returns)?,
            normalizer.normalize(&value)?,
        ))
    }
}

impl Samples {
    pub(super) fn new(columns: Columns, total: i64, device: Device) -> Result<Self, LearnError> {
        Ok(Self {
            x_actor: Tensor::new(),
            x_critic: None,
            packed: zeros("samples", &[total, columns.total()], Kind::Float, device)?,
        })
    }
}
