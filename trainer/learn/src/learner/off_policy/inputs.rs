//! A batch of transitions as the networks see it.

use super::noise::Noise;
use crate::learner::error::LearnError;
use crate::learner::nn::device::LearnKernels;
use crate::learner::normalizer::Normalizer;
use crate::learner::policy::{CriticNorm, Norms};
use crate::learner::tensors::zeros;
use ostler_collector::replay::Batch;
use ostler_sim::env::EnvSpec;
use tch::{Device, Kind, TchError, Tensor};

/// Buffers for `B` transitions, `O` observations, `C` of the critic, `A` actions.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Inputs of the actor and, behind them, its next ones `[2B,O]`.
    pub all_obs: Tensor,
    /// Inputs of the actor `[B,O]`.
    pub obs: Tensor,
    /// Its next inputs `[B,O]`.
    pub next_obs: Tensor,
    /// `taken` and, behind it, `next` `[2B,C+A]`.
    pub all_pairs: Tensor,
    /// Observation and the action taken `[B,C+A]`.
    pub taken: Pair,
    /// The next observation and an action for it.
    pub next: Pair,
    /// The observation and an action of the policy of now.
    pub now: Pair,
    /// Rewards `[B,1]`.
    pub reward: Tensor,
    /// Factor of the next observation's value `[B,1]`: the discount, 0 where the
    /// task ended.
    pub bootstrap: Tensor,
    /// Weights of the samples `[B,1]`, which add up to 1; not numbers where none is valid.
    pub weight: Tensor,
    /// Sum of the weights, without dimensions.
    pub total: Tensor,
    /// Normal numbers for the next actions `[B,A]`.
    pub next_noise: Tensor,
    /// Normal numbers for the actions of now `[B,A]`.
    pub noise: Tensor,
    draws: Noise,
}

/// Inputs of a critic in one tensor, and views of its parts.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Both `[B,C+A]`.
    pub all: Tensor,
    /// Observation `[B,C]`.
    pub obs: Tensor,
    /// Action `[B,A]`.
    pub action: Tensor,
}

impl Pair {
    fn of(all: Tensor, obs: i64, action: i64) -> Result<Self, TchError> {
        Ok(Self { obs: all.f_narrow(1, 0, obs)?, action: all.f_narrow(1, obs, action)?, all })
    }
}

impl Inputs {
    /// Allocates. `seed` keys the noise.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(
        rows: usize,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let (rows, width) = (rows as i64, spec.action.width() as i64);
        let obs = spec.obs.policy as i64;
        let critic = spec.critic.map_or(obs, |c| c as i64);
        let pairs =
            |rows: i64| zeros("critic inputs", &[rows, critic + width], Kind::Float, device);
        let all_obs = zeros("normalised observations", &[2 * rows, obs], Kind::Float, device)?;
        let all_pairs = pairs(2 * rows)?;
        let draws = Noise::new((rows, 2 * width), seed, device)?;
        let numbers = draws.numbers();
        Ok(Self {
            obs: all_obs.f_narrow(0, 0, rows)?,
            next_obs: all_obs.f_narrow(0, rows, rows)?,
            taken: Pair::of(all_pairs.f_narrow(0, 0, rows)?, critic, width)?,
            next: Pair::of(all_pairs.f_narrow(0, rows, rows)?, critic, width)?,
            now: Pair::of(pairs(rows)?, critic, width)?,
            all_obs,
            all_pairs,
            reward: Tensor::new(),
            bootstrap: Tensor::new(),
            weight: Tensor::new(),
            total: Tensor::new(),
            next_noise: numbers.f_narrow(1, 0, width)?,
            noise: numbers.f_narrow(1, width, width)?,
            draws,
        })
    }

    /// On a device: draws noise with its kernels.
    pub(crate) fn with_kernels(&mut self, kernels: &LearnKernels) {
        self.draws.with_kernels(kernels);
    }

    /// Takes a batch in; `step` gradient steps were taken since the run began, and key the
    /// noise.
    ///
    /// # Errors
    /// It is not of this task, or libtorch refuses.
    pub(crate) fn fill(
        &mut self,
        batch: &Batch,
        norm: &Norms,
        step: u64,
    ) -> Result<(), LearnError> {
        // A field of one number has no second dimension of its own.
        let rows = self.obs.size2()?.0;
        let of =
            |name: &str| -> Result<Tensor, LearnError> { Ok(batch.get(name)?.f_view([rows, -1])?) };
        let actor = norm.actor.as_ref();
        let critic = match &norm.critic {
            CriticNorm::Raw => None,
            CriticNorm::AsActor => actor,
            CriticNorm::Own(own) => Some(own),
        };
        apply(actor, &of("obs")?, &self.obs)?;
        apply(actor, &of("next_obs")?, &self.next_obs)?;
        let own = batch.get("critic_obs").is_ok();
        let (seen, seen_next) = match own {
            true => ("critic_obs", "next_critic_obs"),
            false => ("obs", "next_obs"),
        };
        apply(critic, &of(seen)?, &self.taken.obs)?;
        apply(critic, &of(seen_next)?, &self.next.obs)?;
        self.now.obs.f_copy_(&self.taken.obs)?;
        self.taken.action.f_copy_(&of("action")?)?;
        self.reward = of("reward")?;
        let goes_on = of("terminated")?.f_neg()?.f_add_scalar(1.0)?;
        self.bootstrap = goes_on.f_mul(&of("discount")?)?;
        let weight = of("valid")?.f_mul(&batch.weights()?.f_view([-1, 1])?)?;
        self.weight = weight.f_div(&weight.f_sum(Kind::Float)?)?;
        self.total = self.weight.f_sum(Kind::Float)?;
        self.draws.draw(step)
    }
}

fn apply(normalizer: Option<&Normalizer>, x: &Tensor, out: &Tensor) -> Result<(), TchError> {
    match normalizer {
        Some(normalizer) => normalizer.apply(x, out),
        None => out.shallow_clone().f_copy_(x),
    }
}
