//! Numbers about an update, gathered on the device and read once.

use super::loss::{CLIP_FRACTION, ENTROPY, KL, STATS, SURROGATE, VALUE};
use crate::learner::{LearnError, UpdateStats};
use ostler_collector::memory::HostRows;
use ostler_collector::transfer::host_doubles;
use ostler_sim::device::Counts;
use tch::{Device, Kind, TchError, Tensor};

/// Places behind the losses' means.
const GRAD_NORM: usize = STATS;
const CLIPPED: usize = STATS + 1;
const COUNT: usize = STATS + 2;
const WIDTH: usize = STATS + 3;
/// What has to be finite for a step, in the order in which a reason is looked for:
/// from [`CLIP_FRACTION`] (no sample was valid) over the losses to the gradient's norm.
const DECISIVE: usize = GRAD_NORM + 1 - CLIP_FRACTION;

/// Sums over minibatches that were not skipped.
#[derive(Debug)]
pub struct Accumulator {
    /// One minibatch, float32 `[WIDTH]`; the last entry is 1.
    row: Tensor,
    losses: Tensor,
    grad_norm: Tensor,
    clipped: Tensor,
    kl: Tensor,
    /// What decides whether the minibatch is skipped `[DECISIVE]`.
    decisive: Tensor,
    /// Sums, float64 `[WIDTH]`.
    sum: Tensor,
    /// Minibatches in which this and everything before it was finite, float64
    /// `[DECISIVE]`.
    passed: Tensor,
    /// Before the first minibatch, float64 `[3]`: explained variance, mean deviation,
    /// samples not valid.
    before: Tensor,
    zero: Tensor,
}

/// [`Accumulator::judge`] on the host.
#[derive(Debug)]
pub struct Judge {
    row: HostRows<f32>,
    sum: HostRows<f64>,
    passed: HostRows<f64>,
}

impl Judge {
    /// Takes in a minibatch whose losses are in place: whether to step, and what the
    /// divergence is.
    pub fn judge(&mut self, norm: f64, limit: f64) -> Result<(bool, f64), LearnError> {
        let row = self.row.all_mut()?;
        row[GRAD_NORM] = norm as f32;
        row[CLIPPED] = f32::from(u8::from(norm > limit));
        let decisive = &row[CLIP_FRACTION..CLIP_FRACTION + DECISIVE];
        let mut ok = true;
        for (passed, x) in self.passed.all_mut()?.iter_mut().zip(decisive) {
            ok &= x.is_finite();
            *passed += f64::from(u8::from(ok));
        }
        if ok {
            let sum = self.sum.all_mut()?.iter_mut();
            sum.zip(&*row).for_each(|(s, &x)| *s += f64::from(x));
        }
        Ok((ok, f64::from(row[KL])))
    }
}

impl Accumulator {
    /// Nothing gathered yet.
    pub fn new(device: Device) -> Result<Self, LearnError> {
        let row = Tensor::f_ones([WIDTH as i64], (Kind::Float, device))?;
        Ok(Self {
            losses: row.f_narrow(0, 0, STATS as i64)?,
            grad_norm: row.f_get(GRAD_NORM as i64)?,
            clipped: row.f_get(CLIPPED as i64)?,
            kl: row.f_get(KL as i64)?,
            decisive: row.f_narrow(0, CLIP_FRACTION as i64, DECISIVE as i64)?,
            row,
            sum: Tensor::f_zeros([WIDTH as i64], (Kind::Double, device))?,
            passed: Tensor::f_zeros([DECISIVE as i64], (Kind::Double, device))?,
            before: Tensor::f_zeros([3], (Kind::Double, device))?,
            zero: Tensor::f_zeros([0i64; 0], (Kind::Float, device))?,
        })
    }

    /// Where the means of a minibatch's losses go.
    pub fn losses(&self) -> &Tensor {
        &self.losses
    }

    /// Starts an update. All `[M,1]` but `std [M,A]`.
    pub fn begin(
        &mut self,
        valid: &Tensor,
        returns: &Tensor,
        advantage: &Tensor,
        std: Option<&Tensor>,
    ) -> Result<(), TchError> {
        let _ = self.sum.f_zero_()?;
        let _ = self.passed.f_zero_()?;
        let n = valid.f_sum(Kind::Double)?;
        let variance = |x: &Tensor| -> Result<Tensor, TchError> {
            let mean = x.f_mul(valid)?.f_sum(Kind::Double)?.f_div(&n)?;
            let centred = x.f_sub(&mean)?;
            centred
                .f_mul(&centred)?
                .f_mul(valid)?
                .f_sum(Kind::Double)?
                .f_div(&n)
        };
        // return - value is the advantage.
        let unexplained = variance(advantage)?.f_div(&variance(returns)?)?;
        let explained = unexplained.f_neg()?.f_add_scalar(1.0)?;
        let deviation = match std {
            Some(std) => std.f_mean(Kind::Double)?,
            None => n.f_zeros_like()?,
        };
        let invalid = n.f_neg()?.f_add_scalar(valid.numel() as f64)?;
        self.before = Tensor::f_stack(&[explained, deviation, invalid], 0)?;
        Ok(())
    }

    #[cfg(test)]
    pub fn explained_variance(&self) -> f64 {
        self.before.double_value(&[0])
    }

    /// Takes in a minibatch whose losses are in place. Says whether to step, a boolean
    /// without dimensions: every loss and the gradient's norm are finite (they are not
    /// where no sample was valid); and what the divergence is.
    pub fn judge(&mut self, norm: &Tensor, limit: f64) -> Result<(Tensor, Tensor), TchError> {
        self.grad_norm.f_copy_(norm)?;
        self.clipped.f_copy_(&norm.f_gt(limit)?)?;
        // 1 up to the first that is not finite, 0 from there on.
        let passed = self.decisive.f_isfinite()?.f_cumprod(0, Kind::Double)?;
        let _ = self.passed.f_add_(&passed)?;
        let ok = passed.f_get(DECISIVE as i64 - 1)?.f_gt(0.0)?;
        let counted = self.row.f_where_self(&ok, &self.zero)?;
        let _ = self.sum.f_add_(&counted)?;
        Ok((ok, self.kl.f_to_kind(Kind::Double)?))
    }

    /// What [`judge`](Self::judge) works on, as the host's memory, for as long as no
    /// tensor is replaced.
    pub fn on_host(&self) -> Result<Judge, LearnError> {
        // SAFETY: ones and zeros, each in memory of its own. `Judge::judge` alone borrows slices,
        // and calls nothing of libtorch's but for addresses.
        unsafe {
            Ok(Judge {
                row: HostRows::new(&self.row)?,
                sum: HostRows::new(&self.sum)?,
                passed: HostRows::new(&self.passed)?,
            })
        }
    }

    /// Reads everything back after an update of so many minibatches. `size` is finite
    /// if the learner's state is, float64 `[1]`.
    pub fn read(
        &self,
        lr: &Tensor,
        size: &Tensor,
        minibatches: u64,
        crossed: &Counts,
    ) -> Result<UpdateStats, TchError> {
        let parts = [
            &self.sum,
            &self.before,
            &lr.f_view([1])?,
            size,
            &self.passed,
        ];
        let all = Tensor::f_cat(&parts, 0)?;
        crossed.fetched();
        let x = host_doubles(&all)?;
        let mean = |i: usize| x[i] / x[COUNT];
        // How many got as far as this entry of the row.
        let passed = |entry: usize| x[WIDTH + 5 + entry - CLIP_FRACTION] as u64;
        Ok(UpdateStats {
            surrogate: mean(SURROGATE),
            value_function: mean(VALUE),
            entropy: mean(ENTROPY),
            kl: mean(KL),
            clip_fraction: mean(CLIP_FRACTION),
            grad_norm: mean(GRAD_NORM),
            grad_clipped: mean(CLIPPED),
            skipped: minibatches.saturating_sub(x[COUNT] as u64),
            skipped_no_valid: minibatches.saturating_sub(passed(CLIP_FRACTION)),
            skipped_loss: passed(CLIP_FRACTION) - passed(ENTROPY),
            skipped_gradient: passed(ENTROPY) - passed(GRAD_NORM),
            non_finite_params: !x[WIDTH + 4].is_finite(),
            minibatches,
            explained_variance: x[WIDTH],
            mean_std: x[WIDTH + 1],
            invalid: x[WIDTH + 2] as u64,
            learning_rate: x[WIDTH + 3],
            ..UpdateStats::default()
        })
    }
}
