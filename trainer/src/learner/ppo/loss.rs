//! The loss of a minibatch and its gradient with respect to the networks' outputs,
//! worked out by hand (no autograd), weighted by valid samples.
//!
//! Sources: Schulman et al., "Proximal policy optimization algorithms", 2017,
//! equations 7 and 9; the clipped value loss is that of the authors' code.

use super::batch::MiniBatch;
use super::config::{AdvantageNorm, PpoConfig, ValueLoss};
use tch::{Kind, TchError, Tensor};

/// `ln(2 pi) / 2`.
pub(super) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;

/// Means that `stats` of [`loss`] holds, in order.
pub const KL: usize = 0;
/// Finite unless no sample was valid.
pub const CLIP_FRACTION: usize = 1;
pub const SURROGATE: usize = 2;
pub const VALUE: usize = 3;
pub const ENTROPY: usize = 4;
pub const IMITATION: usize = 5;
/// How many there are.
pub const STATS: usize = 6;

/// A policy's distribution at the samples, each `[B,1]`, and how to pass
/// gradients back through it.
struct Eval {
    log_prob: Tensor,
    entropy: Tensor,
    kl: Tensor,
    parts: Parts,
}

enum Parts {
    /// `z = (action - mean) / std` and `1 / std`.
    Gaussian {
        z: Tensor,
        z2: Tensor,
        inv_std: Tensor,
    },
    /// Log-probabilities and probabilities of all choices, and the choice made, one-hot.
    Categorical {
        log_p: Tensor,
        p: Tensor,
        chosen: Tensor,
    },
}

/// Writes the gradients of the loss into `d_dist`, `d_log_std` and `d_value` of the
/// minibatch's space, and the weighted means [`KL`].. into `stats [STATS]`. `value_clip`: how
/// far a value may move, without dimensions.
/// `imitation`: how much the distance from a teacher counts. A minibatch without a valid
/// sample gives NaN everywhere.
pub fn loss(
    config: &PpoConfig,
    mb: &MiniBatch,
    (value_clip, imitation): (&Tensor, f64),
    stats: &Tensor,
) -> Result<(), TchError> {
    let weight = mb.valid.f_div(&mb.valid.f_sum(Kind::Float)?)?;
    let eval = if mb.std.is_some() {
        gaussian(mb)?
    } else {
        categorical(mb)?
    };

    // Surrogate: the larger of the two losses; the clipped one has no slope.
    let advantage = match config.normalize_advantage {
        AdvantageNorm::MiniBatch => standardize(&mb.advantage, &mb.valid)?.f_mul(&mb.weight)?,
        _ => mb.advantage.shallow_clone(),
    };
    let ratio = eval.log_prob.f_sub(&mb.log_prob)?.f_exp()?;
    let clipped = ratio.f_clamp(1.0 - config.clip_param, 1.0 + config.clip_param)?;
    let minus = advantage.f_neg()?;
    let free = ratio.f_mul(&minus)?;
    let bound = clipped.f_mul(&minus)?;
    let surrogate = free.f_maximum(&bound)?;
    let zero = ratio.f_zeros_like()?;
    // d(-A ratio) / d(log prob) is -A ratio itself.
    let d_log_prob = free
        .f_where_self(&free.f_ge_tensor(&bound)?, &zero)?
        .f_mul(&weight)?;
    let outside = ratio.f_ne_tensor(&clipped)?.f_to_kind(Kind::Float)?;

    let d_entropy = weight.f_mul_scalar(-config.entropy_coef)?;
    distribution_gradient(mb, &eval.parts, &d_log_prob, &d_entropy, &eval.entropy)?;
    let apart = match &mb.target {
        Some(target) => imitate(mb, &eval.parts, target, &weight.f_mul_scalar(imitation)?)?,
        None => zero.shallow_clone(),
    };
    let value = value_loss(config, mb, value_clip, &weight, &zero)?;

    let columns = [
        &eval.kl,
        &outside,
        &surrogate,
        &value,
        &eval.entropy,
        &apart,
    ];
    let columns = Tensor::f_cat(&columns, 1)?.f_mul(&weight)?;
    let _ = columns.f_sum_intlist_out(stats, &[0i64][..], false, Kind::Float)?;
    Ok(())
}

/// Distances from a teacher `[B,1]`, mean squares or KL(teacher || policy); their gradients,
/// times `weight`, are added to the space's.
fn imitate(
    mb: &MiniBatch,
    parts: &Parts,
    target: &Tensor,
    weight: &Tensor,
) -> Result<Tensor, TchError> {
    let mut d_dist = mb.space.d_dist.shallow_clone();
    match parts {
        Parts::Gaussian { .. } => {
            let off = mb.space.dist.f_sub(target)?;
            let each = 2.0 / target.size2()?.1 as f64;
            let _ = d_dist.f_add_(&off.f_mul(weight)?.f_mul_scalar(each)?)?;
            off.f_square()?.f_mean_dim(&[1i64][..], true, Kind::Float)
        }
        Parts::Categorical { log_p, p, .. } => {
            let log_q = target.f_log_softmax(1, Kind::Float)?;
            let q = log_q.f_exp()?;
            let _ = d_dist.f_add_(&p.f_sub(&q)?.f_mul(weight)?)?;
            let each = log_q.f_sub(log_p)?.f_mul(&q)?;
            each.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)
        }
    }
}

/// Losses `[B,1]`; the gradient goes into the space.
fn value_loss(
    config: &PpoConfig,
    mb: &MiniBatch,
    clip: &Tensor,
    weight: &Tensor,
    zero: &Tensor,
) -> Result<Tensor, TchError> {
    let new = &mb.space.value;
    let error = new.f_sub(&mb.returns)?;
    let (mut loss, mut slope) = point_loss(config.value_loss, &error)?;
    if config.use_clipped_value_loss {
        let moved = new.f_sub(&mb.value)?;
        let held = moved.f_minimum(clip)?.f_maximum(&clip.f_neg()?)?;
        let held_error = mb.value.f_add(&held)?.f_sub(&mb.returns)?;
        let (held_loss, _) = point_loss(config.value_loss, &held_error)?;
        // Within the range both losses are the same and have the same slope; beyond,
        // the held one has none.
        let moves = loss
            .f_ge_tensor(&held_loss)?
            .f_logical_or(&moved.f_eq_tensor(&held)?)?;
        slope = slope.f_where_self(&moves, zero)?;
        loss = loss.f_maximum(&held_loss)?;
    }
    let slope = slope.f_mul_scalar(config.value_loss_coef)?;
    let _ = slope.f_mul_out(&mb.space.d_value, weight)?;
    Ok(loss)
}

/// Loss of an error and its slope.
fn point_loss(kind: ValueLoss, error: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    match kind {
        ValueLoss::Mse => Ok((error.f_mul(error)?, error.f_mul_scalar(2.0)?)),
        ValueLoss::Huber => {
            let slope = error.f_clamp(-1.0, 1.0)?;
            // slope * (error - slope / 2): half the square within, |error| - 1/2 beyond.
            let loss = error.f_sub(&slope.f_mul_scalar(0.5)?)?.f_mul(&slope)?;
            Ok((loss, slope))
        }
    }
}

fn gaussian(mb: &MiniBatch) -> Result<Eval, TchError> {
    let (mean, log_std) = (&mb.space.dist, &mb.space.log_std);
    let old_std = mb.std.as_ref().unwrap_or(&mb.dist);
    let inv_std = log_std.f_neg()?.f_exp()?;
    let z = mb.action.f_sub(mean)?.f_mul(&inv_std)?;
    let z2 = z.f_mul(&z)?;
    let width = mean.size2()?.1 as f64;
    let sum = |t: &Tensor| t.f_sum_dim_intlist(&[-1i64][..], true, Kind::Float);

    let exponent = z2.f_mul_scalar(-0.5)?.f_sub(log_std)?;
    let log_prob = sum(&exponent)?.f_sub_scalar(width * HALF_LN_TAU)?;
    let entropy = sum(log_std)?.f_add_scalar(width * (0.5 + HALF_LN_TAU))?;
    // KL(old || new) of two Gaussians.
    let shift = mb.dist.f_sub(mean)?.f_mul(&inv_std)?;
    let shrink = old_std.f_mul(&inv_std)?;
    let squares = shift
        .f_mul(&shift)?
        .f_add(&shrink.f_mul(&shrink)?)?
        .f_mul_scalar(0.5)?;
    let kl = squares.f_sub(&shrink.f_log()?)?.f_sub_scalar(0.5)?;
    Ok(Eval {
        entropy: entropy.f_expand_as(&log_prob)?,
        log_prob,
        kl: sum(&kl)?,
        parts: Parts::Gaussian { z, z2, inv_std },
    })
}

fn categorical(mb: &MiniBatch) -> Result<Eval, TchError> {
    let log_p = mb.space.dist.f_log_softmax(1, Kind::Float)?;
    let p = log_p.f_exp()?;
    let choice = mb.action.f_to_kind(Kind::Int64)?;
    let sum = |t: Tensor| t.f_sum_dim_intlist(&[1i64][..], true, Kind::Float);
    let old = mb.dist.f_log_softmax(1, Kind::Float)?;
    let chosen = log_p.f_zeros_like()?.f_scatter_value(1, &choice, 1.0)?;
    Ok(Eval {
        log_prob: log_p.f_gather(1, &choice, false)?,
        entropy: sum(p.f_mul(&log_p)?)?.f_neg()?,
        kl: sum(old.f_sub(&log_p)?.f_mul(&old.f_exp()?)?)?,
        parts: Parts::Categorical { log_p, p, chosen },
    })
}

/// Gradients of the distribution's parameters from those of the samples'
/// log-probability and of their entropy, both `[B,1]`.
fn distribution_gradient(
    mb: &MiniBatch,
    parts: &Parts,
    d_log_prob: &Tensor,
    d_entropy: &Tensor,
    entropy: &Tensor,
) -> Result<(), TchError> {
    match parts {
        Parts::Gaussian { z, z2, inv_std } => {
            let _ = z.f_mul(inv_std)?.f_mul_out(&mb.space.d_dist, d_log_prob)?;
            // d(log prob) / d(log std) = z^2 - 1; d(entropy) / d(log std) = 1.
            let pull = z2.f_sub_scalar(1.0)?.f_mul(d_log_prob)?;
            let _ = pull.f_add_out(&mb.space.d_log_std, d_entropy)?;
        }
        Parts::Categorical { log_p, p, chosen } => {
            let pull = chosen.f_sub(p)?.f_mul(d_log_prob)?;
            // d(entropy) / d(logit k) = -p[k] (log p[k] + entropy).
            let spread = log_p.f_add(entropy)?.f_mul(p)?.f_mul(d_entropy)?;
            let _ = pull.f_sub_out(&mb.space.d_dist, &spread)?;
        }
    }
    Ok(())
}

/// Log-probability `[M,1]` of the actions under the distribution that drew them.
pub fn old_log_prob(
    action: &Tensor,
    dist: &Tensor,
    std: Option<&Tensor>,
) -> Result<Tensor, TchError> {
    let Some(std) = std else {
        let choice = action.f_to_kind(Kind::Int64)?;
        return dist
            .f_log_softmax(1, Kind::Float)?
            .f_gather(1, &choice, false);
    };
    let z = action.f_sub(dist)?.f_div(std)?;
    let exponent = z.f_mul(&z)?.f_mul_scalar(-0.5)?.f_sub(&std.f_log()?)?;
    let sum = exponent.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)?;
    sum.f_sub_scalar(dist.size2()?.1 as f64 * HALF_LN_TAU)
}

/// Shifts and scales `x` to mean 0 and standard deviation 1 over the samples that are valid.
pub fn standardize(x: &Tensor, valid: &Tensor) -> Result<Tensor, TchError> {
    let (centred, deviation) = centred(x, valid)?;
    centred.f_div(&deviation.f_add_scalar(1e-8)?)
}

/// `x` without its mean over the samples that are valid, and its standard deviation, without
/// dimensions. The variance is that of a sample (n - 1), as in rsl_rl.
pub fn centred(x: &Tensor, valid: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let n = valid.f_sum(Kind::Float)?;
    let mean = x.f_mul(valid)?.f_sum(Kind::Float)?.f_div(&n)?;
    let centred = x.f_sub(&mean)?;
    let squares = centred.f_mul(&centred)?.f_mul(valid)?.f_sum(Kind::Float)?;
    let var = squares.f_div(&n.f_sub_scalar(1.0)?.f_clamp_min(1.0)?)?;
    Ok((centred, var.f_sqrt()?))
}
