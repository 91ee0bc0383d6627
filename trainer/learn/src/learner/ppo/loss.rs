//! Names of the loss's means, and what is worked out before it: log-probabilities of the
//! actions, normalised advantages. The loss itself is `trainer/kernels/loss.cuh`.

use crate::learner::nn::shared;
use ostler_collector::peers::Group;
use tch::{Kind, TchError, Tensor};

/// `ln(2 pi) / 2`.
pub(super) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;

/// Means over a minibatch that the loss gives, in order.
pub(crate) const KL: usize = shared::OSTLER_KL;
/// Finite unless no sample was valid.
pub(crate) const CLIP_FRACTION: usize = shared::OSTLER_CLIP_FRACTION;
pub(crate) const SURROGATE: usize = shared::OSTLER_SURROGATE;
pub(crate) const VALUE: usize = shared::OSTLER_VALUE;
pub(crate) const ENTROPY: usize = shared::OSTLER_ENTROPY;
pub(crate) const IMITATION: usize = shared::OSTLER_IMITATION;
/// How many there are.
pub(crate) const STATS: usize = shared::OSTLER_STATS;

/// Log-probability `[M,1]` of the actions under the distribution that drew them.
pub(crate) fn old_log_prob(
    action: &Tensor,
    dist: &Tensor,
    std: Option<&Tensor>,
) -> Result<Tensor, TchError> {
    let Some(std) = std else {
        let choice = action.f_to_kind(Kind::Int64)?;
        return dist.f_log_softmax(1, Kind::Float)?.f_gather(1, &choice, false);
    };
    let z = action.f_sub(dist)?.f_div(std)?;
    let exponent = z.f_mul(&z)?.f_mul_scalar(-0.5)?.f_sub(&std.f_log()?)?;
    let sum = exponent.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)?;
    sum.f_sub_scalar(dist.size2()?.1 as f64 * HALF_LN_TAU)
}

/// Shifts and scales `x` to mean 0 and standard deviation 1 over the samples that are valid.
pub(crate) fn standardize(x: &Tensor, valid: &Tensor) -> Result<Tensor, TchError> {
    let (centred, deviation) = centred(x, valid, &Group::default())?;
    centred.f_div(&deviation.f_add_scalar(1e-8)?)
}

/// `x` without its mean over the samples of all processes that are valid, and its standard
/// deviation, without dimensions. The variance is that of a sample (n - 1), as in rsl_rl.
pub(crate) fn centred(
    x: &Tensor,
    valid: &Tensor,
    group: &Group,
) -> Result<(Tensor, Tensor), TchError> {
    let sums = [valid.f_sum(Kind::Float)?, x.f_mul(valid)?.f_sum(Kind::Float)?];
    let [n, sum] = group.totals(sums)?;
    let centred = x.f_sub(&sum.f_div(&n)?)?;
    let squares = group.total(centred.f_mul(&centred)?.f_mul(valid)?.f_sum(Kind::Float)?)?;
    let var = squares.f_div(&n.f_sub_scalar(1.0)?.f_clamp_min(1.0)?)?;
    Ok((centred, var.f_sqrt()?))
}
