//! The work before the first minibatch, and the statistics that come after the last.

use super::batch::{Columns, Remembered, Samples};
use super::mirrored::Reflected;
use super::priority::Priorities;
use super::stale::Acted;
use super::{AdvantageNorm, Ppo, Staleness, gae, loss};
use crate::learner::normalizer::FARTHEST;
use crate::learner::tensors::zeros;
use crate::learner::{ActorCritic, error::LearnError};
use ostler_collector::Rollout;
use ostler_collector::transfer::host_number;
use tch::{Device, Kind, TchError, Tensor};

/// The policy's steps are not shortened to less.
const WEAKEST: f64 = 1e-3;

impl Ppo {
    /// Inputs, values, advantages and old log-probabilities of all samples.
    pub(super) fn prepare(&mut self, rollout: &Rollout) -> Result<(), TchError> {
        let total = self.steps * self.envs;
        self.values.estimate(&self.policy, rollout)?;
        let mut reward = match &mut self.rnd {
            Some(rnd) => rnd.reward(self.values.actor_inputs(), rollout)?,
            None => rollout.reward.shallow_clone(),
        };
        if let Some(amp) = &mut self.amp {
            reward = reward.f_add(&amp.reward(rollout)?)?;
        }
        self.range.merge(&reward, &rollout.valid, &self.group)?;
        for value in [&self.values.value, &self.values.final_value] {
            self.range.hold(value, self.config.gamma)?;
        }
        let x_actor = self.values.actor_inputs().f_narrow(0, 0, total)?;
        self.samples.x_critic = match self.same_inputs {
            true => None,
            false => Some(self.values.critic_sees().f_narrow(0, 0, total)?),
        };
        self.samples.x_actor = match &self.mirrored {
            None => x_actor,
            Some(mirrored) => Tensor::f_cat(&[&x_actor, &mirrored.policy.apply(&x_actor)?], 0)?,
        };
        let reflected = self.mirrored.as_ref().map(|m| self.reflect(m, rollout)).transpose()?;

        let column = |t: &Tensor| t.f_view([total, -1]);
        self.samples.memory = match (&rollout.hidden, self.values.keep()) {
            (Some(hidden), Some(keep)) => Some(Remembered {
                hidden: column(&hidden.f_narrow(0, 0, self.steps)?)?,
                keep: keep.shallow_clone(),
            }),
            _ => None,
        };
        let valid = column(&rollout.valid)?;
        let acted = Acted {
            action: column(&rollout.action)?,
            dist: column(&rollout.dist)?,
            std: if self.columns.std > 0 { Some(column(&rollout.std)?) } else { None },
        };
        let reference = self.reference(&acted)?;
        let trace = gae::Trace {
            reward: &reward,
            terminated: &rollout.terminated,
            truncated: &rollout.truncated,
            valid: &rollout.valid,
            value: &self.values.value,
            final_value: &self.values.final_value,
            final_slot: &rollout.final_slot,
        };
        let (gamma, lambda) = (self.config.gamma, self.config.gae_lambda);
        let advantage = &self.values.advantage;
        let lacking = match (&reference.weight, self.config.staleness_correction) {
            (Some(weight), Staleness::Vtrace) => {
                let weight = weight.f_view_as(advantage)?;
                let lacking = advantage.f_zeros_like()?;
                gae::vtrace(&trace, &weight, gamma, lambda, &lacking, advantage)?;
                lacking.f_view([total, 1])?
            }
            _ => {
                gae::advantages(&trace, gamma, lambda, advantage)?;
                advantage.f_view([total, 1])?
            }
        };
        let advantage = advantage.f_view([total, 1])?;
        let value = self.values.value.f_narrow(0, 0, self.steps)?.f_reshape([total, 1])?;
        let returns = lacking.f_add(&value)?;
        let group = &self.group;
        self.accumulator.begin(group, &valid, &returns, &lacking, acted.std.as_ref())?;
        let (targets, value, deviation) = self.targets(&returns, value, &valid)?;
        let normalized = match self.config.normalize_advantage {
            AdvantageNorm::Batch => {
                let (centred, own) = loss::centred(&advantage, &valid, &self.group)?;
                let floor = deviation.f_mul_scalar(self.config.advantage_floor)?;
                let least = own.f_maximum(&floor)?.f_add_scalar(1e-8)?;
                let signal = own.f_div(&least)?.f_nan_to_num(1.0, None, None)?;
                self.signal.f_copy_(&signal.f_clamp_min(WEAKEST)?)?;
                centred.f_div(&own.f_add_scalar(1e-8)?)?
            }
            _ => advantage.shallow_clone(),
        };
        let taught = self.taught(rollout)?;
        let normalized = match self.config.imitation.is_alone() {
            true => {
                let _ = self.signal.f_fill_(1.0)?;
                normalized.f_zeros_like()?
            }
            false => normalized,
        };
        let weight = self.prioritise(&normalized, &valid, reference.weight)?;
        // Of minibatches the loss weighs advantages once it has normalised them.
        let ones = || valid.f_ones_like();
        let (weighed, weight) = match (weight, self.config.normalize_advantage) {
            (Some(weight), AdvantageNorm::MiniBatch) => (normalized, weight),
            (Some(weight), _) => (normalized.f_mul(&weight)?, ones()?),
            (None, _) => (normalized, ones()?),
        };
        // The mirror loss's targets follow in each minibatch; till then these fill their columns.
        let taught = match taught {
            None if self.columns.target > 0 => Some(reference.dist.shallow_clone()),
            taught => taught,
        };
        let write = |side: i64,
                     acted: [&Tensor; 2],
                     std: &Option<Tensor>,
                     taught: &Option<Tensor>,
                     [weighed, weight]: [&Tensor; 2]| {
            let mut columns = acted.to_vec();
            columns.extend(std.as_ref());
            columns.extend(taught.as_ref());
            columns.extend([&reference.log_prob, weighed, &targets, &value, &valid, weight]);
            let to = self.samples.packed.f_narrow(0, side * total, total)?;
            Tensor::f_cat_out(&to, &columns, 1).map(|_| ())
        };
        let own = [&acted.action, &reference.dist];
        let (Some(mirrored), Some(Reflected { critic, hidden, dist, std })) =
            (&self.mirrored, reflected)
        else {
            return write(0, own, &reference.std, &taught, [&weighed, &weight]);
        };
        let minibatch = self.config.normalize_advantage == AdvantageNorm::MiniBatch;
        let weights = |factor: f64| match minibatch {
            true => Ok([weighed.shallow_clone(), weight.f_mul_scalar(factor)?]),
            false => Ok::<_, TchError>([weighed.f_mul_scalar(factor)?, weight.shallow_clone()]),
        };
        let action = mirrored.act(&acted.action)?;
        let taught_there = taught.as_ref().map(|t| mirrored.act(t)).transpose()?;
        let [here, there] = mirrored.weights().map(weights);
        write(0, own, &reference.std, &taught, here?.each_ref())?;
        write(1, [&action, &dist], &std, &taught_there, there?.each_ref())?;
        if let (Some(own), Some(there)) = (&self.samples.x_critic, critic) {
            // What only the actor is to learn from the critic sees as it was.
            let there = if mirrored.weights()[1] > 0.0 { &there } else { own };
            self.samples.x_critic = Some(Tensor::f_cat(&[own, there], 0)?);
        }
        if let (Some(own), Some(there)) = (&self.samples.memory, hidden) {
            self.samples.memory = Some(Remembered {
                hidden: Tensor::f_cat(&[&own.hidden, &there], 0)?,
                keep: Tensor::f_cat(&[&own.keep, &own.keep], 0)?,
            });
        }
        Ok(())
    }

    /// How often samples are to be drawn, by their advantages `[M,1]`, and the weight of each
    /// with `weight [M,1]`, which it has already.
    fn prioritise(
        &mut self,
        advantage: &Tensor,
        valid: &Tensor,
        weight: Option<Tensor>,
    ) -> Result<Option<Tensor>, TchError> {
        let exponents = [self.config.priority_alpha, self.config.priority_beta];
        self.priorities = match exponents[0] > 0.0 {
            true => Some(Priorities::new(advantage, valid, self.part, &self.group, exponents)?),
            false => None,
        };
        match (&self.priorities, weight) {
            (Some(own), Some(weight)) => own.weight.f_mul(&weight).map(Some),
            (Some(own), None) => Ok(Some(own.weight.shallow_clone())),
            (None, weight) => Ok(weight),
        }
    }

    /// Returns and old values `[M,1]` in the units that the critic learns in, and the
    /// returns' standard deviation, in units of rewards and without dimensions. Where units
    /// move, so does the critic's output layer. Sets how far a value may move.
    fn targets(
        &mut self,
        returns: &Tensor,
        value: Tensor,
        valid: &Tensor,
    ) -> Result<(Tensor, Tensor, Tensor), TchError> {
        let clip = self.config.clip_param;
        let ActorCritic { net, norm, .. } = &mut self.policy;
        let Some(normalizer) = &mut norm.returns else {
            let (_, deviation) = loss::centred(returns, valid, &self.group)?;
            self.value_clip.f_copy_(&deviation.f_mul_scalar(clip)?)?;
            if self.on_host() {
                self.host_value_clip = host_number(&self.value_clip)? as f32;
            }
            return Ok((returns.shallow_clone(), value, deviation));
        };
        normalizer.merge(returns, valid, net.value_head())?;
        let _ = self.value_clip.f_fill_(clip)?;
        self.host_value_clip = clip as f32;
        Ok((
            normalizer.normalize(returns)?.f_clamp(-f64::from(FARTHEST), f64::from(FARTHEST))?,
            normalizer.normalize(&value)?,
            normalizer.standard_deviation()?.f_to_kind(Kind::Float)?,
        ))
    }
}

impl Samples {
    pub(super) fn new(columns: Columns, total: i64, device: Device) -> Result<Self, LearnError> {
        Ok(Self {
            x_actor: Tensor::new(),
            x_critic: None,
            memory: None,
            packed: zeros("samples", &[total, columns.total()], Kind::Float, device)?,
        })
    }
}
