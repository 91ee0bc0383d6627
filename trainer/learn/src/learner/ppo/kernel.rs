//! The loss of a minibatch on a device by one kernel, `trainer/kernels/loss.cuh`: the text that
//! blocks run in vectors on a host.

use super::batch::MiniBatch;
use super::config::{AdvantageNorm, PpoConfig};
use super::loss::{STATS, centred};
use crate::learner::error::LearnError;
use crate::learner::nn::device::{Entry, LearnKernels, address};
use crate::learner::nn::host::kernels::{Columns, LossShape};
use crate::learner::nn::shared::LossArgs;
use crate::learner::tensors::zeros;
use ostler_collector::peers::Group;
use tch::{Kind, TchError, Tensor};

/// The kernel, loaded, and room for its results for every sample.
#[derive(Debug)]
pub(crate) struct LossKernel {
    kernels: LearnKernels,
    shape: LossShape,
    /// Statistics of the samples `[STATS * B]`.
    stats: Tensor,
    /// Samples, the advantages' mean and scale, how far a value may move: `[4]`.
    terms: Tensor,
    /// 0 and 1, without dimensions.
    plain: [Tensor; 2],
}

impl LossKernel {
    /// For minibatches of up to `rows` samples on `device`, whose kernels these are.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(
        kernels: &LearnKernels,
        shape: LossShape,
        rows: i64,
        device: tch::Device,
    ) -> Result<Self, LearnError> {
        let zeros = |size| zeros("statistics of samples", &[size], Kind::Float, device);
        let number = |x: f64| Tensor::f_full([0i64; 0], x, (Kind::Float, device));
        Ok(Self {
            kernels: kernels.clone(),
            shape,
            stats: zeros(rows * STATS as i64)?,
            terms: zeros(4)?,
            plain: [number(0.0)?, number(1.0)?],
        })
    }

    /// Writes the gradients of the loss into `d_dist`, `d_log_std` and `d_value` of the
    /// minibatch's space, and the weighted means into `stats [STATS]`. `value_clip`: how far a
    /// value may move, without dimensions; `imitation`: how much the distance from a teacher
    /// counts. A minibatch without a valid sample gives NaN everywhere.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn run(
        &self,
        config: &PpoConfig,
        mb: &MiniBatch,
        (value_clip, imitation): (&Tensor, f64),
        stats: &Tensor,
    ) -> Result<(), LearnError> {
        self.take_terms(config, mb, value_clip)?;
        let own = self.stats.f_narrow(0, 0, mb.rows * STATS as i64)?;
        let space = &mb.space;
        let mut loss = self.shape.args();
        loss.packed = columns(&mb.packed)?;
        loss.dist = columns(&space.dist)?;
        loss.value = columns(&space.value)?;
        loss.d_dist = columns(&space.d_dist)?;
        loss.d_value = columns(&space.d_value)?;
        if self.shape.stds > 0 {
            loss.log_std = match space.log_std.dim() {
                1 => Columns { p: address(&space.log_std), column: 1, row: 0 },
                _ => columns(&space.log_std)?,
            };
            loss.d_log_std = columns(&space.d_log_std)?;
        }
        loss.terms.clip = config.clip_param as f32;
        loss.terms.value_coef = config.value_loss_coef as f32;
        loss.terms.entropy_coef = config.entropy_bonus() as f32;
        loss.terms.imitation_coef = imitation as f32;
        loss.in_memory = address(&self.terms);
        let args = LossArgs { loss, stats: address(&own), rows: mb.rows };
        // SAFETY: the struct is the entry's; the addresses are of tensors of this device with
        // `rows` rows, which live until the launch has ended, since libtorch gives memory back
        // in the order of the same stream, and nothing else works on them meanwhile.
        unsafe { self.kernels.launch(Entry::Loss, mb.rows as usize, &args)? };
        let own = own.f_view([STATS as i64, mb.rows])?;
        let _ = own.f_sum_intlist_out(stats, &[1i64][..], false, Kind::Float)?;
        Ok(())
    }

    /// Valid samples, and how advantages are normalised.
    fn take_terms(
        &self,
        config: &PpoConfig,
        mb: &MiniBatch,
        value_clip: &Tensor,
    ) -> Result<(), TchError> {
        let n = mb.valid.f_sum(Kind::Float)?;
        let (mean, scale) = match config.normalize_advantage {
            AdvantageNorm::MiniBatch => {
                let mean = mb.advantage.f_mul(&mb.valid)?.f_sum(Kind::Float)?.f_div(&n)?;
                let (_, deviation) = centred(&mb.advantage, &mb.valid, &Group::default())?;
                (mean, deviation.f_add_scalar(1e-8)?.f_reciprocal()?)
            }
            _ => (self.plain[0].shallow_clone(), self.plain[1].shallow_clone()),
        };
        let clip = value_clip.f_to_kind(Kind::Float)?;
        let _ = Tensor::f_stack_out(&self.terms, &[n, mean, scale, clip], 0)?;
        Ok(())
    }
}

/// A matrix `[B,W]` as columns of samples.
fn columns(t: &Tensor) -> Result<Columns, TchError> {
    let [row, column] = t.stride()[..] else {
        return Err(TchError::Shape(format!("{:?} is no matrix", t.size())));
    };
    Ok(Columns { p: address(t), column, row })
}
