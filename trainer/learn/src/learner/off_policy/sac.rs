//! Losses of soft actor-critic and their gradients, written by hand.
//!
//! Source: Haarnoja et al., "Soft actor-critic algorithms and applications", 2018:
//! equations 5 (critics), 7 and 9 (actor, by reparametrisation), 18 (temperature), and
//! appendix C (squashed actions). Twin critics: Fujimoto et al. 2018.

use super::actor::ActorSpace;
use super::config::SacConfig;
use super::critics::CriticSpace;
use super::inputs::Inputs;
use super::method::{Method, Nets, squash_slope, sum, weighted};
use super::section::Section;
use crate::learner::nn::device::LearnKernels;
use crate::learner::nn::{Adam, Layout, Params};
use crate::learner::tensors::zeros;
use crate::learner::{State, error::LearnError};
use tch::{Device, Kind, TchError, Tensor};

/// Half of the logarithm of a circle's turn.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
const LN_2: f64 = std::f64::consts::LN_2;

/// Soft actor-critic.
#[derive(Debug)]
pub(crate) struct Sac {
    auto_alpha: bool,
    rate: f64,
    /// Entropy aimed at, of all actions together (nat).
    target_entropy: f64,
    /// The temperature's logarithm `[1]`.
    log_alpha: Params,
    adam: Adam,
    section: Section,
    actor: ActorSpace,
    next: ActorSpace,
    critic: CriticSpace,
    slow: CriticSpace,
    d_action: Tensor,
    scratch: Tensor,
    td_error: Tensor,
}

/// Actions that were drawn, in units of the bound.
#[derive(Debug)]
struct Drawn {
    /// `tanh` of the draws `[B,A]`.
    tanh: Tensor,
    std: Tensor,
    /// Logarithm of their density `[B,1]`.
    log_prob: Tensor,
}

impl Sac {
    /// Allocates for batches of `config.batch_size` transitions.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(config: &SacConfig, nets: &Nets, device: Device) -> Result<Self, LearnError> {
        let rows = config.batch_size as i64;
        let mut layout = Layout::default();
        layout.add("alpha.log", &[1]);
        let log_alpha = Params::new(layout, device)?;
        let _ = log_alpha.theta.shallow_clone().f_fill_(config.init_alpha.ln())?;
        let width = nets.policy.width();
        let matrix = || zeros("action gradients", &[rows, width], Kind::Float, device);
        Ok(Self {
            auto_alpha: config.auto_alpha,
            rate: config.alpha_learning_rate,
            target_entropy: config.target_entropy * width as f64,
            log_alpha,
            adam: Adam::new(1, config.alpha_learning_rate, device)?.named("alpha.adam"),
            section: Section::new(0, 0.0, device)?,
            actor: nets.policy.net.space(rows, true, device)?,
            next: nets.policy.net.space(rows, false, device)?,
            critic: nets.critics.space(rows, true, device)?,
            slow: nets.critics.space(rows, false, device)?,
            d_action: matrix()?,
            scratch: matrix()?,
            td_error: Tensor::new(),
        })
    }

    fn alpha(&self) -> Result<Tensor, TchError> {
        self.log_alpha.theta.f_exp()
    }
}

/// Draws `tanh(mean + std noise)`.
fn draw(space: &ActorSpace, noise: &Tensor) -> Result<Drawn, TchError> {
    let std = space.log_std.f_exp()?;
    let u = space.mean.f_addcmul(noise, &std)?;
    // ln(1 - tanh(u)^2), which is exact where tanh is 1 to all digits.
    let softplus = u.f_mul_scalar(-2.0)?.f_softplus()?;
    let shrink = u.f_add(&softplus)?.f_neg()?.f_add_scalar(LN_2)?.f_mul_scalar(2.0)?;
    let gauss = noise.f_mul(noise)?.f_mul_scalar(-0.5)?.f_sub(&space.log_std)?;
    let log_prob = gauss.f_sub_scalar(HALF_LN_TAU)?.f_sub(&shrink)?;
    Ok(Drawn {
        tanh: u.f_tanh()?,
        std,
        log_prob: log_prob.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)?,
    })
}

impl Method for Sac {
    fn critic_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        nets.policy.net.forward(&x.next_obs, &self.next)?;
        let next = draw(&self.next, &x.next_noise)?;
        let action = next.tanh.f_mul_scalar(nets.policy.bound)?;
        x.next.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_slow(&x.next.all, &self.slow)?;
        let [a, b] = &self.slow.out;
        let soft = a.f_minimum(b)?.f_sub(&next.log_prob.f_mul(&self.alpha()?)?)?;
        let target = x.reward.f_addcmul(&x.bootstrap, &soft)?;

        nets.critics.forward(&x.taken.all, &self.critic)?;
        let mut loss = x.total.f_zeros_like()?;
        let mut size = target.f_zeros_like()?;
        for (q, d) in self.critic.out.iter().zip(&self.critic.d_out) {
            let error = q.f_sub(&target)?;
            let _ = error.f_mul_out(d, &x.weight)?;
            let _ = loss.f_add_(&sum(&error.f_mul(d)?)?.f_mul_scalar(0.5)?)?;
            let _ = size.f_add_(&error.f_abs()?)?;
        }
        self.td_error = size.f_mul_scalar(0.5)?.f_view([-1])?;
        section.losses(&x.total, &loss)?;
        section.own(0, &weighted(&target, &x.weight)?)?;
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
        let Drawn { tanh, std, log_prob } = &draw(&self.actor, &x.noise)?;
        let action = tanh.f_mul_scalar(bound)?;
        x.now.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward(&x.now.all, &self.critic)?;
        let [a, b] = &self.critic.out;
        let [d_a, d_b] = &self.critic.d_out;
        // The smaller of the two counts, and it alone has a gradient.
        let first = a.f_le_tensor(b)?.f_to_kind(Kind::Float)?;
        let _ = first.f_mul(&x.weight)?.f_neg_out(d_a)?;
        let _ = x.weight.f_add(d_a)?.f_neg_out(d_b)?;
        nets.critics.backward_action(&self.critic, &self.d_action, &self.scratch)?;

        let alpha = self.alpha()?;
        let worth = x.weight.f_mul(&alpha)?;
        // d(log_prob)/du is 2 tanh(u).
        let d_u = self.d_action.f_mul(&squash_slope(tanh, bound)?)?;
        let d_u = d_u.f_add(&tanh.f_mul(&worth)?.f_mul_scalar(2.0)?)?;
        self.actor.d_mean.f_copy_(&d_u)?;
        let d_log_std = d_u.f_mul(std)?.f_mul(&x.noise)?.f_sub(&worth)?;
        self.actor.d_log_std.f_copy_(&d_log_std)?;

        let entropy = weighted(&log_prob.f_neg()?, &x.weight)?;
        let value = weighted(&a.f_minimum(b)?, &x.weight)?;
        let loss = entropy.f_mul(&alpha)?.f_add(&value)?.f_neg()?;
        section.losses(&x.total, &loss.f_view([0i64; 0])?)?;
        section.own(0, &entropy)?;
        section.own(1, &std.f_mean(Kind::Float)?)?;
        // The loss -log_alpha (log_prob + target), by log_alpha.
        let gradient = entropy.f_sub_scalar(self.target_entropy)?;
        self.log_alpha.grad.f_copy_(&gradient.f_view([1])?)?;
        nets.policy.net.backward(&x.obs, &self.actor)
    }

    fn after_actor(&mut self, x: &Inputs) -> Result<(), LearnError> {
        if !self.auto_alpha {
            return Ok(());
        }
        let loss = self.log_alpha.grad.f_view([0i64; 0])?;
        self.section.losses(&x.total, &loss)?;
        self.section.step(&mut self.adam, &mut self.log_alpha)
    }

    fn td_error(&self) -> &Tensor {
        &self.td_error
    }

    fn begin(&mut self) -> Result<(), TchError> {
        self.section.begin()
    }

    fn log_alpha(&self) -> Option<&Tensor> {
        Some(&self.log_alpha.theta)
    }

    fn declare(&self, state: &mut State) -> Result<(), TchError> {
        self.log_alpha.declare(state)?;
        self.adam.declare(state);
        Ok(())
    }

    fn with_kernels(&mut self, kernels: &LearnKernels) -> Result<(), LearnError> {
        self.adam.with_kernels(kernels)
    }

    fn restart(&mut self, lr_scale: f64) -> Result<(), TchError> {
        self.adam.restart()?;
        self.adam.set_rate(0, self.rate * lr_scale)?;
        Ok(())
    }
}
