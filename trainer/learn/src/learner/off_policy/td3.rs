//! Losses of TD3 with critics that learn the distribution of returns, and their
//! gradients, written by hand.
//!
//! Sources: Seo et al., "FastTD3", 2025: no slow copy of the actor, mixed exploration;
//! Fujimoto et al. 2018: twin critics, smoothed targets, delayed actor; Bellemare et al.
//! 2017, algorithm 1: the projection of a shifted distribution onto the atoms.

use super::actor::ActorSpace;
use super::config::Td3Config;
use super::critics::CriticSpace;
use super::inputs::Inputs;
use super::method::{Method, Nets, squash_slope, weighted};
use super::section::Section;
use crate::learner::error::LearnError;
use crate::learner::tensors::zeros;
use tch::{Device, Kind, TchError, Tensor};

/// Twin delayed deterministic policy gradient with distributional critics.
#[derive(Debug)]
pub(crate) struct Td3 {
    policy_noise: f64,
    noise_clip: f64,
    use_cdq: bool,
    atoms: Atoms,
    actor: ActorSpace,
    next: ActorSpace,
    critic: CriticSpace,
    slow: CriticSpace,
    d_action: Tensor,
    scratch: Tensor,
    td_error: Tensor,
}

/// The returns that critics tell apart.
#[derive(Debug)]
pub(super) struct Atoms {
    low: f64,
    high: f64,
    /// Between neighbours.
    gap: f64,
    count: i64,
    /// All of them `[1,K]`.
    pub(super) values: Tensor,
}

impl Atoms {
    pub(super) fn new(config: &Td3Config, device: Device) -> Result<Self, TchError> {
        let count = config.num_atoms as i64;
        let (low, high) = (config.v_min, config.v_max);
        Ok(Self {
            low,
            high,
            gap: (high - low) / (count - 1) as f64,
            count,
            values: Tensor::f_linspace(low, high, count, (Kind::Float, device))?
                .f_view([1, count])?,
        })
    }

    /// The distribution of `reward + bootstrap Z` on the atoms, where `Z` has
    /// probabilities `p [B,K]` on them: each shifted atom's share goes to its two
    /// neighbours, the nearer one gets more. `reward` and `bootstrap` are `[B,1]`.
    pub(super) fn project(
        &self,
        p: &Tensor,
        reward: &Tensor,
        bootstrap: &Tensor,
    ) -> Result<Tensor, TchError> {
        let shifted = bootstrap.f_mul(&self.values)?.f_add(reward)?;
        let place =
            shifted.f_clamp(self.low, self.high)?.f_sub_scalar(self.low)?.f_div_scalar(self.gap)?;
        // A reward that is not a number has no place; its loss is not finite either.
        let below = place.f_nan_to_num(0.0, 0.0, 0.0)?.f_floor()?;
        let below = below.f_clamp(0.0, (self.count - 1) as f64)?;
        let share = place.f_sub(&below)?;
        let index = below.f_to_kind(Kind::Int64)?;
        let up = p.f_mul(&share)?;
        let mut out = p.f_zeros_like()?;
        let _ = out.f_scatter_add_(1, &index, &p.f_sub(&up)?)?;
        let above = index.f_add_scalar(1)?.f_clamp_max(self.count - 1)?;
        let _ = out.f_scatter_add_(1, &above, &up)?;
        Ok(out)
    }

    /// Expected return `[B,1]` of probabilities `p [B,K]`.
    pub(super) fn mean(&self, p: &Tensor) -> Result<Tensor, TchError> {
        p.f_mul(&self.values)?.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)
    }
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
            use_cdq: config.use_cdq,
            atoms: Atoms::new(config, device)?,
            actor: nets.policy.net.space(rows, true, device)?,
            next: nets.policy.net.space(rows, false, device)?,
            critic: nets.critics.space(rows, true, device)?,
            slow: nets.critics.space(rows, false, device)?,
            d_action: matrix()?,
            scratch: matrix()?,
            td_error: Tensor::new(),
        })
    }

    /// Targets of both critics `[B,K]`.
    fn targets(&self, x: &Inputs) -> Result<[Tensor; 2], TchError> {
        let [a, b] = &self.slow.out;
        let project = |logits: &Tensor| {
            let p = logits.f_softmax(1, Kind::Float)?;
            self.atoms.project(&p, &x.reward, &x.bootstrap)
        };
        let (a, b) = (project(a)?, project(b)?);
        if !self.use_cdq {
            return Ok([a, b]);
        }
        let first = self.atoms.mean(&a)?.f_lt_tensor(&self.atoms.mean(&b)?)?;
        let less = a.f_where_self(&first, &b)?;
        Ok([less.shallow_clone(), less])
    }
}

impl Method for Td3 {
    fn critic_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        let bound = nets.policy.bound;
        nets.policy.net.forward(&x.next_obs, &self.next)?;
        let noise = x
            .next_noise
            .f_mul_scalar(self.policy_noise)?
            .f_clamp(-self.noise_clip, self.noise_clip)?;
        let action = self.next.mean.f_tanh()?.f_add(&noise)?;
        let action = action.f_clamp(-1.0, 1.0)?.f_mul_scalar(bound)?;
        x.next.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_slow(&x.next.all, &self.slow)?;
        let targets = self.targets(x)?;

        nets.critics.forward(&x.taken.all, &self.critic)?;
        let mut loss = x.total.f_zeros_like()?;
        let mut size = x.reward.f_zeros_like()?;
        for (i, target) in targets.iter().enumerate() {
            let (logits, d) = (&self.critic.out[i], &self.critic.d_out[i]);
            let log_p = logits.f_log_softmax(1, Kind::Float)?;
            let entropy =
                target.f_mul(&log_p)?.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)?;
            let _ = loss.f_sub_(&weighted(&entropy, &x.weight)?)?;
            // Targets add up to 1, so this is the gradient of the cross entropy.
            let p = log_p.f_exp()?;
            let _ = p.f_sub(target)?.f_mul_out(d, &x.weight)?;
            let error = self.atoms.mean(&p)?.f_sub(&self.atoms.mean(target)?)?;
            let _ = size.f_add_(&error.f_abs()?)?;
        }
        self.td_error = size.f_mul_scalar(0.5)?.f_view([-1])?;
        section.losses(&x.total, &loss)?;
        let value = self.atoms.mean(&targets[0])?;
        section.own(0, &weighted(&value, &x.weight)?)?;
        nets.critics.backward(&x.taken.all, &self.critic)
    }

    fn actor_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        let bound = nets.policy.bound;
        nets.policy.net.forward(&x.obs, &self.actor)?;
        let tanh = self.actor.mean.f_tanh()?;
        let action = tanh.f_mul_scalar(bound)?;
        x.now.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward(&x.now.all, &self.critic)?;
        let p = [0, 1].map(|i| self.critic.out[i].f_softmax(1, Kind::Float));
        let [p_a, p_b] = p;
        let p = [p_a?, p_b?];
        let value = [self.atoms.mean(&p[0])?, self.atoms.mean(&p[1])?];
        let share = match self.use_cdq {
            // The smaller of the two counts, and it alone has a gradient.
            true => value[0].f_le_tensor(&value[1])?.f_to_kind(Kind::Float)?,
            false => value[0].f_full_like(0.5)?,
        };
        let shares = [share.shallow_clone(), share.f_neg()?.f_add_scalar(1.0)?];
        let mut counts = x.reward.f_zeros_like()?;
        for i in 0..2 {
            let worth = shares[i].f_mul(&x.weight)?.f_neg()?;
            // d(mean)/d(logit k) is p_k (z_k - mean).
            let slope = self.atoms.values.f_sub(&value[i])?.f_mul(&p[i])?;
            let _ = slope.f_mul_out(&self.critic.d_out[i], &worth)?;
            let _ = counts.f_add_(&shares[i].f_mul(&value[i])?)?;
        }
        nets.critics.backward_action(&self.critic, &self.d_action, &self.scratch)?;
        let slope = squash_slope(&tanh, bound)?;
        let _ = self.d_action.f_mul_out(&self.actor.d_mean, &slope)?;
        section.losses(&x.total, &weighted(&counts, &x.weight)?.f_neg()?)?;
        nets.policy.net.backward(&x.obs, &self.actor)
    }

    fn td_error(&self) -> &Tensor {
        &self.td_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_collector::transfer::host_numbers;

    fn atoms() -> Atoms {
        let config = Td3Config { num_atoms: 5, v_min: -2.0, v_max: 2.0, ..Td3Config::default() };
        Atoms::new(&config, Device::Cpu).unwrap()
    }

    fn project(p: &[f32], reward: f64, bootstrap: f64) -> Vec<f32> {
        let column = |x: f64| Tensor::full([1, 1], x, (Kind::Float, Device::Cpu));
        let p = Tensor::from_slice(p).view([1, 5]);
        let out = atoms().project(&p, &column(reward), &column(bootstrap));
        host_numbers(&out.unwrap()).unwrap()
    }

    #[test]
    fn a_shifted_distribution_lands_on_its_neighbours() {
        let p = [0.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(project(&p, 1.0, 0.9), [0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(project(&p, 0.25, 1.0), [0.0, 0.0, 0.75, 0.25, 0.0]);
        // At the end of an episode only the reward is left, whatever was expected.
        let p = [0.2; 5];
        let ended = project(&p, -0.5, 0.0);
        assert!((ended[1] - 0.5).abs() < 1e-6 && (ended[2] - 0.5).abs() < 1e-6);
        // Values beyond the last atom stay on it.
        assert_eq!(project(&p, 9.0, 1.0)[4], 1.0);
        assert_eq!(project(&p, -9.0, 1.0)[0], 1.0);
    }

    #[test]
    fn nothing_is_lost_and_the_mean_moves_as_it_should() {
        let p = [0.1, 0.2, 0.4, 0.2, 0.1];
        let q = project(&p, 0.3, 0.5);
        assert!((q.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        let mean: f32 = q.iter().zip([-2.0, -1.0, 0.0, 1.0, 2.0]).map(|(p, z)| p * z).sum();
        assert!((mean - 0.3).abs() < 1e-6, "{mean}");
    }
}
