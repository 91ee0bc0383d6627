//! Numbers about an update, gathered on the device and read once.

use super::loss::{CLIP_FRACTION, ENTROPY, IMITATION, KL, STATS, SURROGATE, VALUE};
use crate::learner::{LearnError, UpdateStats};
use ostler_collector::memory::HostRows;
use ostler_collector::transfer::host_doubles;
use ostler_sim::device::Counts;
use tch::{Device, Kind, TchError, Tensor};

/// Places behind the losses' means: norms of the actor's and the critic's gradient, whether
/// one of them was clipped, 1 where the policy takes the step, 1.
const GRAD_NORM: usize = STATS;
const CRITIC_NORM: usize = STATS + 1;
const CLIPPED: usize = STATS + 2;
const POLICY: usize = STATS + 3;
const COUNT: usize = STATS + 4;
const WIDTH: usize = STATS + 5;
/// Entries that have to be finite for a step, in the order in which a reason is looked for:
/// from [`CLIP_FRACTION`] (no sample was valid) over the losses to the gradients' norms.
const DECISIVE: usize = CRITIC_NORM + 1 - CLIP_FRACTION;
/// Entries that count nothing in a step that the policy does not take, and decides nothing.
const OF_POLICY: [usize; 6] = [KL, SURROGATE, ENTROPY, IMITATION, GRAD_NORM, POLICY];

/// Sums over minibatches that were not skipped.
#[derive(Debug)]
pub struct Accumulator {
    /// One minibatch, float32 `[WIDTH]`; the last entry is 1.
    row: Tensor,
    losses: Tensor,
    norms: [Tensor; 2],
    clipped: Tensor,
    clip_fraction: Tensor,
    kl: Tensor,
    /// Where the row is the policy's `[WIDTH]`.
    of_policy: Tensor,
    /// Entries that decide whether the minibatch is skipped `[DECISIVE]`.
    decisive: Tensor,
    /// Sums, float64 `[WIDTH]`.
    sum: Tensor,
    /// Minibatches in which this and everything before it was finite, float64
    /// `[DECISIVE]`.
    passed: Tensor,
    /// The divergence in the last minibatch before the policy stopped, or in that where it
    /// did; 1 where it stopped; the divergence in the first. Float64 `[3]`.
    end: Tensor,
    /// Before the first minibatch, float64 `[3]`: explained variance, mean standard deviation,
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
    end: HostRows<f64>,
}

impl Judge {
    /// Whether the policy takes the step of a minibatch whose losses are in place. It stops
    /// for good where the divergence is beyond `limit`, not counting that of the first
    /// minibatch: samples may be an older policy's.
    pub fn policy_goes_on(&mut self, limit: f64) -> Result<bool, LearnError> {
        let kl = f64::from(self.row.all()?[KL]);
        let end = self.end.all_mut()?;
        if end[1] == 0.0 && kl.is_finite() {
            if end[2].is_nan() {
                end[2] = kl;
            }
            end[0] = kl;
            end[1] = f64::from(u8::from(kl - end[2] > limit));
        }
        Ok(end[1] == 0.0)
    }

    /// Whether the policy has stopped.
    pub fn has_stopped(&self) -> Result<bool, LearnError> {
        Ok(self.end.all()?[1] != 0.0)
    }

    /// Takes in a minibatch: whether to step. `norms`: of the actor's gradient and of the
    /// critic's.
    pub fn judge(&mut self, policy: bool, norms: [f64; 2], limit: f64) -> Result<bool, LearnError> {
        let row = self.row.all_mut()?;
        row[GRAD_NORM] = norms[0] as f32;
        row[CRITIC_NORM] = norms[1] as f32;
        row[POLICY] = 1.0;
        if !policy {
            OF_POLICY.iter().for_each(|&at| row[at] = 0.0);
            // NaN stays: there was no valid sample.
            row[CLIP_FRACTION] *= 0.0;
        }
        let longest = row[GRAD_NORM].max(row[CRITIC_NORM]);
        row[CLIPPED] = f32::from(u8::from(f64::from(longest) > limit));
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
        Ok(ok)
    }
}

impl Accumulator {
    /// Nothing gathered yet.
    pub fn new(device: Device) -> Result<Self, LearnError> {
        let row = Tensor::f_ones([WIDTH as i64], (Kind::Float, device))?;
        let entry = |at: usize| row.f_get(at as i64);
        // Networks that share a trunk have one norm.
        let _ = entry(CRITIC_NORM)?.f_zero_()?;
        let mut of_policy = [false; WIDTH];
        OF_POLICY.iter().for_each(|&at| of_policy[at] = true);
        Ok(Self {
            losses: row.f_narrow(0, 0, STATS as i64)?,
            norms: [entry(GRAD_NORM)?, entry(CRITIC_NORM)?],
            clipped: entry(CLIPPED)?,
            clip_fraction: entry(CLIP_FRACTION)?,
            kl: entry(KL)?,
            of_policy: Tensor::f_from_slice(&of_policy)?.f_to_device(device)?,
            decisive: row.f_narrow(0, CLIP_FRACTION as i64, DECISIVE as i64)?,
            row,
            sum: Tensor::f_zeros([WIDTH as i64], (Kind::Double, device))?,
            passed: Tensor::f_zeros([DECISIVE as i64], (Kind::Double, device))?,
            end: Tensor::f_zeros([3], (Kind::Double, device))?,
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
        let _ = self.end.f_zero_()?;
        let _ = self.end.f_get(2)?.f_fill_(f64::NAN)?;
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
        let total = variance(returns)?;
        let unexplained = variance(advantage)?.f_div(&total)?;
        // Nothing is to be explained where all returns are the same.
        let unexplained = unexplained.f_masked_fill(&total.f_eq(0.0)?, 1.0)?;
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

    /// The update's divergence, whether it stopped the policy, and whether the policy took
    /// a step; without dimensions.
    pub fn end(&self) -> Result<[Tensor; 3], TchError> {
        let (end, steps) = (&self.end, self.sum.f_get(POLICY as i64)?);
        Ok([end.f_get(0)?, end.f_get(1)?.f_gt(0.0)?, steps.f_gt(0.0)?])
    }

    /// [`Judge::policy_goes_on`], a boolean without dimensions.
    pub fn policy_goes_on(&mut self, limit: &Tensor) -> Result<Tensor, TchError> {
        let kl = self.kl.f_to_kind(Kind::Double)?;
        let [last, stopped, first] = [self.end.f_get(0)?, self.end.f_get(1)?, self.end.f_get(2)?];
        let counts = stopped.f_eq(0.0)?.f_logical_and(&kl.f_isfinite()?)?;
        first
            .shallow_clone()
            .f_copy_(&kl.f_where_self(&first.f_isnan()?.f_logical_and(&counts)?, &first)?)?;
        last.shallow_clone()
            .f_copy_(&kl.f_where_self(&counts, &last)?)?;
        let beyond = kl
            .f_sub(&first)?
            .f_gt_tensor(limit)?
            .f_to_kind(Kind::Double)?;
        stopped
            .shallow_clone()
            .f_copy_(&beyond.f_where_self(&counts, &stopped)?)?;
        stopped.f_eq(0.0)
    }

    /// [`Judge::judge`], a boolean without dimensions: every loss and the norms of the
    /// gradients are finite (they are not where no sample was valid).
    pub fn judge(
        &mut self,
        policy: &Tensor,
        norms: &[Tensor],
        limit: f64,
    ) -> Result<Tensor, TchError> {
        for (to, norm) in self.norms.iter().zip(norms) {
            to.shallow_clone().f_copy_(norm)?;
        }
        let out = self.of_policy.f_logical_and(&policy.f_logical_not()?)?;
        let one = self.row.f_get(POLICY as i64)?;
        let _ = one.shallow_clone().f_fill_(1.0)?;
        let _ = self.zero.f_where_self_out(&self.row, &out, &self.row)?;
        let _ = self.clip_fraction.f_mul_(&policy.f_to_kind(Kind::Float)?)?;
        let longest = self.norms[0].f_maximum(&self.norms[1])?;
        self.clipped.f_copy_(&longest.f_gt(limit)?)?;
        // 1 up to the first that is not finite, 0 from there on.
        let passed = self.decisive.f_isfinite()?.f_cumprod(0, Kind::Double)?;
        let _ = self.passed.f_add_(&passed)?;
        let ok = passed.f_get(DECISIVE as i64 - 1)?.f_gt(0.0)?;
        let counted = self.row.f_where_self(&ok, &self.zero)?;
        let _ = self.sum.f_add_(&counted)?;
        Ok(ok)
    }

    /// Numbers of [`judge`](Self::judge) as the host's memory, for as long as no
    /// tensor is replaced.
    pub fn on_host(&self) -> Result<Judge, LearnError> {
        // SAFETY: ones and zeros, each in memory of its own. `Judge::judge` alone borrows slices,
        // and calls nothing of libtorch's but for addresses.
        unsafe {
            Ok(Judge {
                row: HostRows::new(&self.row)?,
                sum: HostRows::new(&self.sum)?,
                passed: HostRows::new(&self.passed)?,
                end: HostRows::new(&self.end)?,
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
            &self.end,
        ];
        let all = Tensor::f_cat(&parts, 0)?;
        crossed.fetched();
        let x = host_doubles(&all)?;
        let mean = |i: usize| x[i] / x[COUNT];
        let of_policy = |i: usize| x[i] / x[POLICY];
        // How many got as far as this entry of the row.
        let passed = |entry: usize| x[WIDTH + 5 + entry - CLIP_FRACTION] as u64;
        Ok(UpdateStats {
            surrogate: of_policy(SURROGATE),
            value_function: mean(VALUE),
            entropy: of_policy(ENTROPY),
            imitation: Some(of_policy(IMITATION)),
            kl: x[WIDTH + 5 + DECISIVE],
            clip_fraction: of_policy(CLIP_FRACTION),
            grad_norm: of_policy(GRAD_NORM),
            critic_grad_norm: mean(CRITIC_NORM),
            policy_share: x[POLICY] / x[COUNT],
            grad_clipped: mean(CLIPPED),
            skipped: minibatches.saturating_sub(x[COUNT] as u64),
            skipped_no_valid: minibatches.saturating_sub(passed(CLIP_FRACTION)),
            skipped_loss: passed(CLIP_FRACTION) - passed(IMITATION),
            skipped_gradient: passed(IMITATION) - passed(CRITIC_NORM),
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
