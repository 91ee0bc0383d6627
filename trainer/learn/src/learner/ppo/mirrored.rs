//! Reflections of a rollout's samples (`[symmetry]`).
//!
//! Behind the `M` samples of a rollout stand their reflections, in the same order: what was seen
//! and done on the other side, with the same advantage, return and log-probability, as if the
//! policy had been reflected, too. A minibatch takes both. The divergence is measured against what
//! the policy itself decided in the reflected observations.

use super::batch::Columns;
use crate::learner::error::LearnError;
use crate::learner::state::{Holds, State};
use crate::learner::tensors::zeros;
use crate::learner::turn::Turn;
use ostler_sim::env::mirror::Signed;
use tch::{Kind, TchError, Tensor};

/// Reflections that a learner learns from.
#[derive(Debug)]
pub(super) struct Mirrored {
    pub policy: Turn,
    pub critic: Option<Turn>,
    pub action: Turn,
    pub augmentation: bool,
    /// Weight of the mirror loss.
    pub loss: f64,
    /// The actions' reflection in plain numbers.
    pub signed: Signed,
    /// Hidden state that the reflected observations so far have left, of all processes' rows
    /// `[N,H]`, of a recurrent actor.
    pub hidden: Option<Tensor>,
}

/// What the reflections of a rollout add to its samples.
pub(super) struct Reflected {
    /// Inputs of the critic `[M,O']`, where it has its own.
    pub critic: Option<Tensor>,
    /// Hidden states before each step `[M,H]`, of a recurrent actor.
    pub hidden: Option<Tensor>,
    /// Mean or logits of the policy `[M,D]`.
    pub dist: Tensor,
    /// Its deviation `[M,A]`.
    pub std: Option<Tensor>,
}

impl Mirrored {
    /// Learns from now on with other processes, of `rows` rows in all.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn join(&mut self, rows: i64) -> Result<(), LearnError> {
        if let Some(hidden) = &mut self.hidden {
            let size = [rows, hidden.size2()?.1];
            *hidden = zeros("hidden states", &size, Kind::Float, hidden.device())?;
        }
        Ok(())
    }

    /// Enters what is remembered from rollout to rollout.
    pub(super) fn declare(&self, state: &mut State) {
        if let Some(hidden) = &self.hidden {
            state.rows("ppo.reflected_hidden", hidden, Holds::Progress);
        }
    }

    /// The columns of actions reflected.
    pub(super) fn act(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.action.apply(x)
    }

    /// The weight of an own sample's advantage, and of its reflection's.
    pub(super) fn weights(&self) -> [f64; 2] {
        // Without augmentation the mean over both sides is that over the own ones.
        if self.augmentation { [1.0, 1.0] } else { [2.0, 0.0] }
    }

    /// Coefficient of the distance from the targets. It is a mean over both sides, of which one
    /// is at its target.
    pub(super) fn coef(&self) -> f32 {
        2.0 * self.loss as f32
    }

    /// Where blocks find the targets of the mirror loss.
    pub(super) fn targets(&self, columns: Columns) -> Option<Targets> {
        let first = columns.action + columns.dist + columns.std;
        (self.loss > 0.0).then(|| Targets { signed: self.signed.clone(), first: first as usize })
    }

    /// Targets of means `dist [L 2S, D]`, in which each of `steps` has `S` samples and then their
    /// reflections: of these the reflected means, of the others themselves.
    pub(super) fn aim(&self, dist: &Tensor, target: &Tensor, steps: i64) -> Result<(), TchError> {
        let (rows, width) = dist.size2()?;
        let sides = dist.f_detach()?.f_view([steps, 2, rows / steps / 2, width])?;
        let own = sides.f_select(1, 0)?;
        let both = Tensor::f_stack(&[&own, &self.act(&own)?], 1)?;
        target.shallow_clone().f_copy_(&both.f_view([rows, width])?)
    }
}

/// Targets of a block's means.
#[derive(Debug)]
pub(super) struct Targets {
    signed: Signed,
    /// Their first column.
    first: usize,
}

impl Targets {
    /// Fills the columns of `packed` from the means `dist`, both `[..][stride]`. Rows are those of
    /// [`Mirrored::aim`].
    pub(super) fn fill(
        &self,
        (packed, dist): (&mut [f32], &[f32]),
        (rows, stride, steps): (usize, usize, usize),
    ) {
        let half = rows / steps / 2;
        for (k, &(index, sign)) in self.signed.0.iter().enumerate() {
            let target = &mut packed[(self.first + k) * stride..][..rows];
            let own = &dist[k * stride..][..rows];
            let other = &dist[index as usize * stride..][..rows];
            for first in (0..rows).step_by(2 * half) {
                target[first..][..half].copy_from_slice(&own[first..][..half]);
                let reflected = &mut target[first + half..][..half];
                let from = &other[first..][..half];
                reflected.iter_mut().zip(from).for_each(|(to, x)| *to = sign * x);
            }
        }
    }
}
