//! A minibatch's loss and gradient by libtorch's automatic differentiation, written as
//! plainly as can be.
//!
//! It runs on every device, several times slower than the [fast path](super), which equals it
//! up to rounding: tests hold that path against it, and recurrent policies on a device have no
//! other. A new kind of layer or term of the loss works as soon as it is written
//! here.

use super::batch::{MiniBatch, Remembered};
use super::config::{AdvantageNorm, PpoConfig, ValueLoss};
use super::loss;
use super::mirrored::Mirrored;
use crate::learner::nn::Params;
use crate::learner::nn::host::recurrent::GruAt;
use crate::learner::nn::host::stack::{Dense, NormAt, Stack};
use crate::learner::nn::norm;
use crate::learner::policy::Activation;
use crate::learner::policy::block::{BlockNet, BlockStd};
use crate::learner::policy::net::stop_at_bounds;
use std::ops::Range;
use tch::{Kind, TchError, Tensor};

/// Parameters that gradients are taken with respect to.
struct Leaf(Tensor);

impl Leaf {
    fn view(&self, place: &Range<usize>, shape: &[i64]) -> Result<Tensor, TchError> {
        let (from, len) = (place.start as i64, place.len() as i64);
        self.0.f_narrow(0, from, len)?.f_view(shape)
    }

    fn dense(&self, layer: &Dense, x: &Tensor) -> Result<Tensor, TchError> {
        let [weight, bias] = self.weights(layer)?;
        x.f_linear(&weight, Some(&bias))
    }

    /// Weight `[H,I]` and bias `[H]`.
    fn weights(&self, layer: &Dense) -> Result<[Tensor; 2], TchError> {
        let (inputs, outputs) = (layer.inputs as i64, layer.outputs as i64);
        let weight = self.view(&layer.weight, &[outputs, inputs])?;
        Ok([weight, self.view(&layer.bias, &[outputs])?])
    }

    fn norm(&self, norm: &NormAt, x: &Tensor) -> Result<Tensor, TchError> {
        let width = [norm.gain.len() as i64];
        let gain = self.view(&norm.gain, &width)?;
        let shift = self.view(&norm.shift, &width)?;
        x.f_layer_norm(&width[..], Some(&gain), Some(&shift), norm::EPS, false)
    }

    /// Hidden states after each step of sequences with inputs `x [L B,I]`.
    fn gru(&self, gru: &GruAt, x: &Tensor, memory: &Remembered) -> Result<Tensor, TchError> {
        let [w_x, b_x] = self.weights(&gru.input)?;
        let [w_h, b_h] = self.weights(&gru.hidden)?;
        let sequences = memory.hidden.size()[0];
        let steps = x.f_split(sequences, 0)?;
        let keep = memory.keep.f_split(sequences, 0)?;
        let mut h = memory.hidden.shallow_clone();
        let mut after = Vec::with_capacity(steps.len());
        for (t, (x, keep)) in steps.iter().zip(keep).enumerate() {
            if t > 0 {
                h = h.f_where_self(&keep.f_gt(0.0)?, &h.f_zeros_like()?)?;
            }
            h = x.f_gru_cell(&h, &w_x, &w_h, Some(&b_x), Some(&b_h))?;
            after.push(h.shallow_clone());
        }
        Tensor::f_cat(&after, 0)
    }

    fn stack(&self, stack: &Stack, x: &Tensor) -> Result<Tensor, TchError> {
        let mut h = x.shallow_clone();
        for (i, layer) in stack.layers.iter().enumerate() {
            let before = h;
            h = self.dense(layer, &before)?;
            if let Some(norm) = stack.norms.get(i) {
                h = self.norm(norm, &h)?;
            }
            h = match stack.activation {
                Activation::Elu => h.f_elu()?,
                Activation::Relu => h.f_relu()?,
                Activation::Tanh => h.f_tanh()?,
                Activation::Silu => h.f_silu()?,
            };
            if stack.adds(i) {
                h = h.f_add(&before)?;
            }
        }
        Ok(h)
    }
}

/// A policy's distribution at the samples `[B,1]`.
struct Evaluated {
    log_prob: Tensor,
    entropy: Tensor,
    kl: Tensor,
}

/// A standard deviation's logarithm before it is held within its bounds: as the network gives
/// it, and as a leaf.
struct BoundedLogStd {
    raw: Tensor,
    leaf: Tensor,
}

/// The gradient of a gathered minibatch's loss, with the further columns of a recurrent actor's
/// samples besides, into `params.grad`, and its means into `stats`, as
/// [`LossKernel::run`](super::kernel::LossKernel::run) and the backward pass give them.
///
/// # Errors
/// libtorch refuses.
pub(crate) fn gradient(
    config: &PpoConfig,
    (net, params): (&BlockNet, &Params),
    mb: &MiniBatch,
    (memory, aim): (Option<Remembered>, Option<(&Mirrored, i64)>),
    terms: (&Tensor, f64),
    stats: &Tensor,
) -> Result<(), TchError> {
    tch::with_grad(|| {
        let theta = params.theta.f_detach()?.f_set_requires_grad(true)?;
        let leaf = Leaf(theta.shallow_clone());
        let samples = (mb, memory.as_ref(), aim);
        let (loss, held) = minibatch_loss(config, net, &leaf, samples, terms, stats)?;
        let grad = match held {
            None => gradients(&loss, &[&theta])?.remove(0),
            // A standard deviation at its bound is not pushed beyond: the gradient is stopped
            // there on its way to the network.
            Some(BoundedLogStd { raw, leaf }) => {
                let both = gradients(&loss, &[&theta, &leaf])?;
                stop_at_bounds(&raw.f_detach()?, &both[1], net.log_std_bounds)?;
                let rest = raw.f_mul(&both[1])?.f_sum(Kind::Float)?;
                both[0].f_add(&gradients(&rest, &[&theta])?[0])?
            }
        };
        tch::no_grad(|| params.grad.shallow_clone().f_copy_(&grad))
    })
}

fn gradients(of: &Tensor, with: &[&Tensor]) -> Result<Vec<Tensor>, TchError> {
    Tensor::f_run_backward(&[of], with, true, false)
}

fn minibatch_loss(
    config: &PpoConfig,
    net: &BlockNet,
    leaf: &Leaf,
    (mb, memory, aim): (&MiniBatch, Option<&Remembered>, Option<(&Mirrored, i64)>),
    (value_clip, imitation): (&Tensor, f64),
    stats: &Tensor,
) -> Result<(Tensor, Option<BoundedLogStd>), TchError> {
    // Rows that are not valid may hold anything: zeros stand in for them.
    let valid = mb.valid.f_gt(0.0)?;
    let only = |t: &Tensor| t.f_where_self(&valid, &t.f_zeros_like()?);
    let weight = mb.valid.f_div(&mb.valid.f_sum(Kind::Float)?)?;

    let (x_actor, x_critic) = mb.inputs();
    let x_actor = only(x_actor)?;
    let x_actor = match (&net.gru, memory) {
        (Some(gru), Some(memory)) => {
            let hidden = leaf.gru(gru, &x_actor, memory)?;
            Tensor::f_cat(&[x_actor, hidden], 1)?
        }
        _ => x_actor,
    };
    let features = leaf.stack(&net.actor, &x_actor)?;
    let value = match &net.critic {
        Some(critic) => leaf.dense(&net.value, &leaf.stack(critic, &only(x_critic)?)?)?,
        None => leaf.dense(&net.value, &features)?,
    };
    let dist = leaf.dense(&net.head, &features)?;
    if let (Some((mirrored, steps)), Some(target)) = (aim, &mb.target) {
        tch::no_grad(|| mirrored.aim(&dist, target, steps))?;
    }
    let mut held = None;
    let judged = match &net.std {
        BlockStd::Categorical => categorical(&dist, &only(&mb.action)?, &only(&mb.dist)?)?,
        std => {
            let log_std = match std {
                BlockStd::Head(head) => {
                    let raw = leaf.dense(head, &features)?;
                    let own = raw.f_detach()?.f_set_requires_grad(true)?;
                    let (low, high) = net.log_std_bounds;
                    // The clamped number with the slope of the other.
                    let off = own.f_clamp(low, high)?.f_sub(&own)?.f_detach()?;
                    let log_std = own.f_add(&off)?;
                    held = Some(BoundedLogStd { raw, leaf: own });
                    log_std
                }
                BlockStd::Scalar(place) => {
                    let width = [1, place.len() as i64];
                    leaf.view(place, &width)?.f_expand_as(&dist)?
                }
                BlockStd::Categorical => dist.f_zeros_like()?,
            };
            let old_std = mb.std.as_ref().unwrap_or(&mb.dist);
            let old_std = old_std.f_where_self(&valid, &old_std.f_ones_like()?)?;
            let old = [&only(&mb.dist)?, &old_std];
            gaussian(&dist, &log_std, &only(&mb.action)?, old)?
        }
    };

    let advantage = match config.normalize_advantage {
        AdvantageNorm::MiniBatch => {
            loss::standardize(&only(&mb.advantage)?, &mb.valid)?.f_mul(&mb.weight)?
        }
        _ => only(&mb.advantage)?,
    };
    let ratio = judged.log_prob.f_sub(&only(&mb.log_prob)?)?.f_exp()?;
    let clipped = ratio.f_clamp(1.0 - config.clip_param, 1.0 + config.clip_param)?;
    let minus = advantage.f_neg()?;
    let surrogate = minus.f_mul(&ratio)?.f_maximum(&minus.f_mul(&clipped)?)?;
    let targets = [&only(&mb.returns)?, &only(&mb.value)?];
    let values = only(&value_loss(config, &value, targets, value_clip)?)?;

    let apart = match &mb.target {
        Some(target) => imitation_loss(&net.std, &dist, &only(target)?)?,
        None => surrogate.f_zeros_like()?,
    };

    let sum = |t: &Tensor| t.f_mul(&weight)?.f_sum(Kind::Float);
    let loss = sum(&surrogate)?
        .f_add(&sum(&apart)?.f_mul_scalar(imitation)?)?
        .f_add(&sum(&values)?.f_mul_scalar(config.value_loss_coef)?)?
        .f_sub(&sum(&judged.entropy)?.f_mul_scalar(config.entropy_bonus())?)?;
    let outside = ratio.f_ne_tensor(&clipped)?.f_to_kind(Kind::Float)?;
    let columns = [&judged.kl, &outside, &surrogate, &values, &judged.entropy, &apart];
    let means = Tensor::f_cat(&columns, 1)?.f_mul(&weight)?.f_detach()?;
    let means = means.f_sum_dim_intlist(&[0i64][..], false, Kind::Float)?;
    tch::no_grad(|| stats.shallow_clone().f_copy_(&means))?;
    Ok((loss, held))
}

/// Distances from a teacher's means, or logits, `[B,1]`.
fn imitation_loss(std: &BlockStd, dist: &Tensor, target: &Tensor) -> Result<Tensor, TchError> {
    match std {
        BlockStd::Categorical => {
            let target = target.f_softmax(1, Kind::Float)?;
            let log_p = dist.f_log_softmax(1, Kind::Float)?;
            sum_of(&log_p.f_kl_div(&target, tch::Reduction::None, false)?)
        }
        _ => dist.f_mse_loss(target, tch::Reduction::None)?.f_mean_dim(
            &[1i64][..],
            true,
            Kind::Float,
        ),
    }
}

fn value_loss(
    config: &PpoConfig,
    value: &Tensor,
    [returns, before]: [&Tensor; 2],
    clip: &Tensor,
) -> Result<Tensor, TchError> {
    let point = |error: Tensor| match config.value_loss {
        ValueLoss::Mse => error.f_square(),
        ValueLoss::Huber => error.f_huber_loss(&error.f_zeros_like()?, tch::Reduction::None, 1.0),
    };
    let free = point(value.f_sub(returns)?)?;
    if !config.use_clipped_value_loss {
        return Ok(free);
    }
    let moved = value.f_sub(before)?;
    let held = moved.f_minimum(clip)?.f_maximum(&clip.f_neg()?)?;
    free.f_maximum(&point(before.f_add(&held)?.f_sub(returns)?)?)
}

fn sum_of(t: &Tensor) -> Result<Tensor, TchError> {
    t.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)
}

fn gaussian(
    mean: &Tensor,
    log_std: &Tensor,
    action: &Tensor,
    [old_mean, old_std]: [&Tensor; 2],
) -> Result<Evaluated, TchError> {
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    let std = log_std.f_exp()?;
    let z = action.f_sub(mean)?.f_div(&std)?;
    let log_prob = z.f_square()?.f_mul_scalar(-0.5)?.f_sub(log_std)?;
    // KL(old || new).
    let squares = old_mean.f_sub(mean)?.f_square()?;
    let squares = squares.f_add(&old_std.f_square()?)?;
    let kl = squares.f_div(&std.f_square()?.f_mul_scalar(2.0)?)?;
    let kl = kl.f_add(log_std)?.f_sub(&old_std.f_log()?)?;
    Ok(Evaluated {
        log_prob: sum_of(&log_prob.f_sub_scalar(half_ln_tau)?)?,
        entropy: sum_of(&log_std.f_add_scalar(0.5 + half_ln_tau)?)?,
        kl: sum_of(&kl.f_sub_scalar(0.5)?)?.f_detach()?,
    })
}

fn categorical(logits: &Tensor, action: &Tensor, old: &Tensor) -> Result<Evaluated, TchError> {
    let log_p = logits.f_log_softmax(1, Kind::Float)?;
    let old = old.f_log_softmax(1, Kind::Float)?;
    let choice = action.f_to_kind(Kind::Int64)?;
    Ok(Evaluated {
        log_prob: log_p.f_gather(1, &choice, false)?,
        entropy: sum_of(&log_p.f_exp()?.f_mul(&log_p)?)?.f_neg()?,
        kl: sum_of(&old.f_sub(&log_p)?.f_mul(&old.f_exp()?)?)?.f_detach()?,
    })
}
