//! Numbers about an update, gathered on the device and read once.

use super::loss::{CLIP_FRACTION, ENTROPY, IMITATION, KL, STATS, SURROGATE, VALUE};
use crate::learner::nn::adam::OnDevice;
use crate::learner::nn::device::{Entry, address};
use crate::learner::nn::host::Vectors;
use crate::learner::nn::host::kernels::TallyShape;
use crate::learner::nn::shared::{self, PpoFinishArgs};
use crate::learner::{UpdateStats, error::LearnError};
use ostler_collector::memory::HostRows;
use ostler_collector::peers::Group;
use ostler_collector::transfer::host_doubles;
use ostler_sim::device::Counts;
use tch::{Device, Kind, TchError, Tensor};

/// Places behind the losses' means: norms of the actor's and the critic's gradient, whether one
/// of them was clipped, 1 where the policy takes the step, 1.
const GRAD_NORM: usize = shared::OSTLER_GRAD_NORM;
const CRITIC_NORM: usize = shared::OSTLER_CRITIC_NORM;
const CLIPPED: usize = shared::OSTLER_CLIPPED;
const POLICY: usize = shared::OSTLER_POLICY;
const COUNT: usize = POLICY + 1;
const WIDTH: usize = POLICY + 2;
/// Entries that have to be finite for a step, in the order in which a reason is looked for:
/// from [`CLIP_FRACTION`] (no sample was valid) over the losses to the gradients' norms.
const DECISIVE: usize = CRITIC_NORM + 1 - CLIP_FRACTION;
const SHAPE: TallyShape =
    TallyShape { width: WIDTH, first: CLIP_FRACTION, decisive: DECISIVE, clipped: CLIPPED };

/// Sums over minibatches that were not skipped.
#[derive(Debug)]
pub(crate) struct Accumulator {
    /// One minibatch, float32 `[WIDTH]`; the last entry is 1.
    row: Tensor,
    losses: Tensor,
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
}

/// The same in the host's memory.
#[derive(Debug)]
pub(crate) struct Judge {
    row: HostRows<f32>,
    sum: HostRows<f64>,
    passed: HostRows<f64>,
    end: HostRows<f64>,
}

impl Judge {
    /// Whether the policy takes the step of a minibatch whose losses are in place:
    /// `policy_goes_on` of `finish.cuh`.
    pub(crate) fn policy_goes_on(&mut self, limit: f64) -> Result<bool, LearnError> {
        let kl = self.row.all()?[KL];
        let end = self.end.all_mut()?;
        let mut own = [end[0], end[1], end[2]];
        let goes_on = Vectors::widest().policy_goes_on(kl, limit, &mut own);
        end.copy_from_slice(&own);
        Ok(goes_on)
    }

    /// Whether the policy has stopped.
    pub(crate) fn has_stopped(&self) -> Result<bool, LearnError> {
        Ok(self.end.all()?[1] != 0.0)
    }

    /// Takes in a minibatch: whether to step. `norms`: of the actor's gradient and of the
    /// critic's.
    pub(crate) fn judge(
        &mut self,
        policy: bool,
        norms: [f64; 2],
        limit: f64,
    ) -> Result<bool, LearnError> {
        let row = self.row.all_mut()?;
        row[GRAD_NORM] = norms[0] as f32;
        row[CRITIC_NORM] = norms[1] as f32;
        let (sum, passed) = (self.sum.all_mut()?, self.passed.all_mut()?);
        Ok(Vectors::widest().judge(&SHAPE, row, sum, passed, (policy, limit)))
    }
}

impl Accumulator {
    /// Nothing gathered yet.
    pub(crate) fn new(device: Device) -> Result<Self, LearnError> {
        let row = Tensor::f_ones([WIDTH as i64], (Kind::Float, device))?;
        // Networks that share a trunk have one norm.
        let _ = row.f_get(CRITIC_NORM as i64)?.f_zero_()?;
        Ok(Self {
            losses: row.f_narrow(0, 0, STATS as i64)?,
            row,
            sum: Tensor::f_zeros([WIDTH as i64], (Kind::Double, device))?,
            passed: Tensor::f_zeros([DECISIVE as i64], (Kind::Double, device))?,
            end: Tensor::f_zeros([3], (Kind::Double, device))?,
            before: Tensor::f_zeros([3], (Kind::Double, device))?,
        })
    }

    /// Where the means of a minibatch's losses go.
    pub(crate) fn losses(&self) -> &Tensor {
        &self.losses
    }

    /// Starts an update, of all processes' samples. All `[M,1]` but `std [M,A]`.
    pub(crate) fn begin(
        &mut self,
        group: &Group,
        valid: &Tensor,
        returns: &Tensor,
        advantage: &Tensor,
        std: Option<&Tensor>,
    ) -> Result<(), TchError> {
        let _ = self.sum.f_zero_()?;
        let _ = self.passed.f_zero_()?;
        let _ = self.end.f_zero_()?;
        let _ = self.end.f_get(2)?.f_fill_(f64::NAN)?;
        let sum = |x: &Tensor| x.f_mul(valid)?.f_sum(Kind::Double);
        let rows = valid.f_ones_like()?.f_sum(Kind::Double)?;
        let deviations = match std {
            Some(std) => std.f_sum(Kind::Double)?,
            None => rows.f_zeros_like()?,
        };
        let sums = [valid.f_sum(Kind::Double)?, sum(returns)?, sum(advantage)?, rows, deviations];
        let [n, of_returns, of_advantages, rows, deviations] = group.totals(sums)?;
        let squares = |x: &Tensor, sum: &Tensor| -> Result<Tensor, TchError> {
            let centred = x.f_sub(&sum.f_div(&n)?)?;
            centred.f_mul(&centred)?.f_mul(valid)?.f_sum(Kind::Double)
        };
        let squares = [squares(returns, &of_returns)?, squares(advantage, &of_advantages)?];
        // return - value is the advantage.
        let [total, unexplained] = group.totals(squares)?;
        let (total, unexplained) = (total.f_div(&n)?, unexplained.f_div(&n)?);
        let unexplained = unexplained.f_div(&total)?;
        // Nothing is to be explained where all returns are the same.
        let unexplained = unexplained.f_masked_fill(&total.f_eq(0.0)?, 1.0)?;
        let explained = unexplained.f_neg()?.f_add_scalar(1.0)?;
        let width = std.map_or(1, |std| std.numel() / valid.numel().max(1));
        let deviation = deviations.f_div(&rows.f_mul_scalar(width as f64)?)?;
        let invalid = rows.f_sub(&n)?;
        self.before = Tensor::f_stack(&[explained, deviation, invalid], 0)?;
        Ok(())
    }

    #[cfg(test)]
    pub fn explained_variance(&self) -> f64 {
        self.before.double_value(&[0])
    }

    /// The update's divergence, whether it stopped the policy, and whether the policy took
    /// a step; without dimensions.
    pub(crate) fn end(&self) -> Result<[Tensor; 3], TchError> {
        let (end, steps) = (&self.end, self.sum.f_get(POLICY as i64)?);
        Ok([end.f_get(0)?, end.f_get(1)?.f_gt(0.0)?, steps.f_gt(0.0)?])
    }

    /// On a device: judges a minibatch whose losses are in place, and works out the numbers of
    /// Adam's steps, by one thread. `stop`: the divergence at which the policy stops; `norms`:
    /// of the parts' gradients; all without dimensions.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn finish(
        &mut self,
        adam: OnDevice<'_>,
        stop: &Tensor,
        norms: &[Tensor],
    ) -> Result<(), LearnError> {
        let norm = |part: usize| norms.get(part).map_or(0, address);
        let args = PpoFinishArgs {
            tally: SHAPE.at(address(&self.row), address(&self.sum), address(&self.passed)),
            adam: adam.config,
            norms: [norm(0), norm(1)],
            stop: address(stop),
            end: address(&self.end),
            lr: adam.lr,
            powers: adam.powers,
            steps: adam.steps,
            parts: norms.len() as i64,
        };
        // SAFETY: the entry's struct; one thread reads and writes these tensors, which have the
        // sizes that it counts on, and one norm, learning rate and step for each part.
        unsafe { adam.kernels.launch(Entry::PpoFinish, 1, &args) }
    }

    /// The numbers of minibatches in the host's memory, for as long as no
    /// tensor is replaced.
    pub(crate) fn on_host(&self) -> Result<Judge, LearnError> {
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
    pub(crate) fn read(
        &self,
        lr: &Tensor,
        size: &Tensor,
        minibatches: u64,
        crossed: &Counts,
    ) -> Result<UpdateStats, TchError> {
        let parts = [&self.sum, &self.before, &lr.f_view([1])?, size, &self.passed, &self.end];
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
