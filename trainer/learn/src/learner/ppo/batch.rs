//! A rollout as one row per sample, and minibatches drawn from it.

use super::config::{PpoConfig, ValueLoss};
use crate::learner::error::LearnError;
use crate::learner::nn::host::kernels::LossShape;
use crate::learner::policy::net::{Net, NetSpace};
use crate::learner::tensors::zeros;
use tch::{Device, Kind, TchError, Tensor};

/// Widths of the columns of [`Samples::packed`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    /// Action, `A`.
    pub action: i64,
    /// Mean or logits, `D`.
    pub dist: i64,
    /// Standard deviation, `A`, or 0 for a categorical policy.
    pub std: i64,
    /// A teacher's mean or logits, `D`, or 0 without one.
    pub target: i64,
}

impl Columns {
    /// All columns: action, dist, std, a teacher's dist, then one each for log-probability,
    /// advantage, return, value, validity, and the weight of the advantage.
    pub(crate) fn total(self) -> i64 {
        self.action + self.dist + self.std + self.target + 6
    }

    /// Widths and kinds for the loss.
    pub(crate) fn shape(self, config: &PpoConfig) -> LossShape {
        LossShape {
            actions: self.action as usize,
            dists: self.dist as usize,
            stds: self.std as usize,
            targets: self.target as usize,
            huber: config.value_loss == ValueLoss::Huber,
            clip_value: config.use_clipped_value_loss,
        }
    }
}

/// Source of minibatches, `M = T N` rows.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Inputs of the actor `[M,O]`.
    pub x_actor: Tensor,
    /// Inputs of the critic `[M,O']`, if they differ from the actor's.
    pub x_critic: Option<Tensor>,
    /// All else `[M,F]`, see [`Columns`].
    pub packed: Tensor,
    /// Of a recurrent actor.
    pub memory: Option<Remembered>,
}

/// Further columns of a recurrent actor's samples.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Hidden states before each step `[M,H]`.
    pub hidden: Tensor,
    /// 1 where they come from the step before, 0 where an episode begins `[M,1]`.
    pub keep: Tensor,
}

impl Remembered {
    /// Those of sequences of `steps` steps whose samples are `index [L B]`: states before the
    /// first steps `[B,H]`; `keep [L B,1]`.
    pub(crate) fn gather(&self, index: &Tensor, steps: i64) -> Result<Self, TchError> {
        let first = index.f_narrow(0, 0, index.size1()? / steps)?;
        Ok(Self {
            hidden: self.hidden.f_index_select(0, &first)?,
            keep: self.keep.f_index_select(0, index)?,
        })
    }
}

/// Buffers and views of one minibatch of `B` samples. Columns are `[B,1]` unless noted.
#[derive(Debug)]
pub(crate) struct MiniBatch {
    /// Samples, `B`.
    pub rows: i64,
    x_actor: Tensor,
    x_critic: Option<Tensor>,
    /// All of the following columns `[B,F]`, see [`Columns`].
    pub packed: Tensor,
    /// Actions taken `[B,A]`.
    pub action: Tensor,
    /// Mean or logits they were drawn with `[B,D]`.
    pub dist: Tensor,
    /// Deviation they were drawn with `[B,A]`; none for a categorical policy.
    pub std: Option<Tensor>,
    /// Mean or logits of a teacher `[B,D]`, if there is one.
    pub target: Option<Tensor>,
    /// Their log-probability then.
    pub log_prob: Tensor,
    /// Advantage.
    pub advantage: Tensor,
    /// Target of the value.
    pub returns: Tensor,
    /// The value before the update.
    pub value: Tensor,
    /// 0 for samples not to learn from, else 1.
    pub valid: Tensor,
    /// Weight of an advantage that is normalised in its minibatch: below 1 where an older
    /// policy acted.
    pub weight: Tensor,
    /// The networks' buffers.
    pub space: NetSpace,
}

impl MiniBatch {
    /// Allocates for `rows` samples; `x_critic` is the critic's input width if it has
    /// inputs of its own.
    pub(crate) fn new(
        net: &Net,
        columns: Columns,
        rows: i64,
        x_actor: i64,
        x_critic: Option<i64>,
        device: Device,
    ) -> Result<Self, LearnError> {
        let buffer = |width| zeros("minibatch", &[rows, width], Kind::Float, device);
        Ok(Self::over(
            columns,
            rows,
            buffer(x_actor)?,
            x_critic.map(buffer).transpose()?,
            buffer(columns.total())?,
            net.space(rows, true, device)?,
        )?)
    }

    fn over(
        columns: Columns,
        rows: i64,
        x_actor: Tensor,
        x_critic: Option<Tensor>,
        packed: Tensor,
        space: NetSpace,
    ) -> Result<Self, TchError> {
        let mut at = 0;
        let mut next = |width: i64| {
            let view = packed.f_narrow(1, at, width);
            at += width;
            view
        };
        Ok(Self {
            rows,
            action: next(columns.action)?,
            dist: next(columns.dist)?,
            std: match columns.std {
                0 => None,
                width => Some(next(width)?),
            },
            target: match columns.target {
                0 => None,
                width => Some(next(width)?),
            },
            log_prob: next(1)?,
            advantage: next(1)?,
            returns: next(1)?,
            value: next(1)?,
            valid: next(1)?,
            weight: next(1)?,
            x_actor,
            x_critic,
            packed,
            space,
        })
    }

    /// The same over the first `rows` rows, sharing memory.
    pub(crate) fn narrow(&self, columns: Columns, rows: i64) -> Result<Self, TchError> {
        Self::over(
            columns,
            rows,
            self.x_actor.f_narrow(0, 0, rows)?,
            self.x_critic.as_ref().map(|x| x.f_narrow(0, 0, rows)).transpose()?,
            self.packed.f_narrow(0, 0, rows)?,
            self.space.narrow(rows)?,
        )
    }

    /// Fills the buffers with the samples `index [B]`.
    pub(crate) fn gather(&self, samples: &Samples, index: &Tensor) -> Result<(), TchError> {
        let _ = samples.x_actor.f_index_select_out(&self.x_actor, 0, index)?;
        if let (Some(from), Some(to)) = (&samples.x_critic, &self.x_critic) {
            let _ = from.f_index_select_out(to, 0, index)?;
        }
        let _ = samples.packed.f_index_select_out(&self.packed, 0, index)?;
        Ok(())
    }

    /// Runs both networks on the gathered inputs.
    pub(crate) fn forward(&self, net: &Net) -> Result<(), TchError> {
        net.forward_actor(&self.x_actor, &self.space)?;
        net.forward_critic(self.x_critic(), &self.space)
    }

    /// Runs both networks backward from the gradients of their outputs.
    pub(crate) fn backward(&self, net: &Net) -> Result<(), TchError> {
        net.backward(&self.x_actor, self.x_critic(), &self.space)
    }

    /// Inputs of the actor and of the critic.
    pub(crate) fn inputs(&self) -> (&Tensor, &Tensor) {
        (&self.x_actor, self.x_critic())
    }

    fn x_critic(&self) -> &Tensor {
        self.x_critic.as_ref().unwrap_or(&self.x_actor)
    }
}

/// Start and length of part `i` of `parts` nearly equal parts of `total`.
pub(crate) fn part(total: i64, parts: i64, i: i64) -> (i64, i64) {
    let start = |i: i64| (i128::from(total) * i128::from(i) / i128::from(parts)) as i64;
    (start(i), start(i + 1) - start(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_and_differ_by_at_most_one() {
        for (total, parts) in [(2048, 4), (10, 4), (7, 7), (5, 1)] {
            let all: Vec<_> = (0..parts).map(|i| part(total, parts, i)).collect();
            assert_eq!(all.iter().map(|p| p.1).sum::<i64>(), total);
            assert!(all.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0));
            assert!(all.iter().all(|p| (total / parts..=total / parts + 1).contains(&p.1)));
        }
    }
}
