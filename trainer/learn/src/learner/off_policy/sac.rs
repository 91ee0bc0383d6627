//! Losses of soft actor-critic and their gradients, written by hand.
//!
//! Source: Haarnoja et al., "Soft actor-critic algorithms and applications", 2018:
//! equations 5 (critics), 7 and 9 (actor, by reparametrisation), 18 (temperature), and
//! appendix C (squashed actions). Twin critics: Fujimoto et al. 2018; critics that learn the
//! distribution of returns: `values`.

use super::actor::ActorSpace;
use super::config::SacConfig;
use super::critics::CriticSpaces;
use super::inputs::Inputs;
use super::method::{Method, Nets, squash_slope, weighted};
use super::section::Section;
use super::values::Values;
use crate::learner::error::LearnError;
use crate::learner::nn::device::LearnKernels;
use crate::learner::nn::{Adam, Layout, Params};
use crate::learner::state::{Holds, State};
use crate::learner::tensors::zeros;
use ostler_collector::peers::Group;
use tch::{Device, Kind, TchError, Tensor};

/// Half of the logarithm of a circle's turn.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
const LN_2: f64 = std::f64::consts::LN_2;

/// Soft actor-critic.
#[derive(Debug)]
pub(crate) struct Sac {
    auto_alpha: bool,
    /// The temperature learns with the critics, from the next actions.
    with_critics: bool,
    rate: f64,
    /// Entropy aimed at, of all actions together (nat).
    target_entropy: f64,
    /// The temperature's logarithm `[1]`.
    log_alpha: Params,
    adam: Adam,
    section: Section,
    actor: ActorSpace,
    next: ActorSpace,
    critics: CriticSpaces,
    values: Values,
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
            with_critics: config.alpha_with_critics,
            rate: config.alpha_learning_rate,
            target_entropy: config.target_entropy * width as f64,
            log_alpha,
            adam: Adam::new(1, config.alpha_learning_rate, device)?
                .named("alpha.adam")
                .with_betas(config.betas),
            section: Section::new(0, 0.0, device)?,
            actor: nets.policy.net.learning_space(rows, device)?,
            next: nets.policy.net.space(rows, device)?,
            critics: nets.critics.spaces(rows, device)?,
            values: config.values(device)?,
            d_action: matrix()?,
            scratch: matrix()?,
            td_error: Tensor::new(),
        })
    }

    fn alpha(&self) -> Result<Tensor, TchError> {
        self.log_alpha.theta.f_exp()
    }

    /// The gradient of the loss -log_alpha (log_prob + target), by log_alpha.
    fn aim(&self, entropy: &Tensor) -> Result<(), TchError> {
        let gradient = entropy.f_sub_scalar(self.target_entropy)?;
        self.log_alpha.grad.shallow_clone().f_copy_(&gradient.f_view([1])?)
    }

    fn step_alpha(&mut self, x: &Inputs) -> Result<(), LearnError> {
        let loss = self.log_alpha.grad.f_view([0i64; 0])?;
        self.section.losses(&x.total, &loss)?;
        self.section.step(&mut self.adam, &mut self.log_alpha)
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
        let action = next.tanh.f_mul(&nets.policy.bound)?;
        x.next.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_next(x, &self.critics)?;
        // What entropy is worth is a part of the reward.
        let cost = next.log_prob.f_mul(&self.alpha()?)?.f_mul(&x.bootstrap)?;
        let reward = x.reward.f_sub(&cost)?;
        let targets = self.values.targets(&self.critics.next.out, &reward, &x.bootstrap)?;
        nets.critics.forward_taken(x, &self.critics)?;
        self.td_error = self.values.losses(&self.critics.taken, &targets, x, section)?;
        if self.with_critics {
            self.aim(&weighted(&next.log_prob.f_neg()?, &x.weight)?)?;
        }
        nets.critics.backward(x, &self.critics)
    }

    fn after_critics(&mut self, x: &Inputs) -> Result<(), LearnError> {
        match self.auto_alpha && self.with_critics {
            true => self.step_alpha(x),
            false => Ok(()),
        }
    }

    fn actor_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError> {
        let bound = &nets.policy.bound;
        nets.policy.net.forward_now(x, &self.actor)?;
        let Drawn { tanh, std, log_prob } = &draw(&self.actor, &x.noise)?;
        let action = tanh.f_mul(bound)?;
        x.now.action.shallow_clone().f_copy_(&action)?;
        nets.critics.forward_now(x, &self.critics)?;
        let worth = self.values.of_actions(self.critics.now(), &x.weight)?;
        nets.critics.backward_action(&self.critics, &self.d_action, &self.scratch)?;
        let value = weighted(&worth, &x.weight)?;

        let alpha = self.alpha()?;
        let worth = x.weight.f_mul(&alpha)?;
        // d(log_prob)/du is 2 tanh(u).
        let d_u = self.d_action.f_mul(&squash_slope(tanh, bound)?)?;
        let d_u = d_u.f_add(&tanh.f_mul(&worth)?.f_mul_scalar(2.0)?)?;
        self.actor.d_mean.f_copy_(&d_u)?;
        let d_log_std = d_u.f_mul(std)?.f_mul(&x.noise)?.f_sub(&worth)?;
        self.actor.d_log_std.f_copy_(&d_log_std)?;

        let entropy = weighted(&log_prob.f_neg()?, &x.weight)?;
        let loss = entropy.f_mul(&alpha)?.f_add(&value)?.f_neg()?;
        section.losses(&x.total, &loss.f_view([0i64; 0])?)?;
        section.own(0, &entropy)?;
        section.own(1, &std.f_mean(Kind::Float)?)?;
        if !self.with_critics {
            self.aim(&entropy)?;
        }
        nets.policy.net.backward(x, &self.actor)
    }

    fn after_actor(&mut self, x: &Inputs) -> Result<(), LearnError> {
        match self.auto_alpha && !self.with_critics {
            true => self.step_alpha(x),
            false => Ok(()),
        }
    }

    fn mean(&self) -> &Tensor {
        &self.actor.mean
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
        // A temperature that stays is the configuration's, whatever weights a run begins with.
        let holds = if self.auto_alpha { Holds::Weights } else { Holds::Progress };
        self.log_alpha.declare_as(state, holds)?;
        self.adam.declare(state);
        Ok(())
    }

    fn with_kernels(&mut self, kernels: &LearnKernels) -> Result<(), LearnError> {
        self.adam.with_kernels(kernels)
    }

    fn join(&mut self, group: &Group) {
        self.section.join(group);
    }

    fn restart(&mut self) -> Result<(), TchError> {
        self.adam.restart()
    }

    fn set_rate(&mut self, share: f64) -> Result<(), TchError> {
        self.adam.set_rate(0, self.rate * share)
    }
}
