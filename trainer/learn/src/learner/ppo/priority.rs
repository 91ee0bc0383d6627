//! Samples, or a recurrent policy's sequences, drawn by the size of their advantages: large
//! ones several times in an epoch, small ones perhaps not at all.
//!
//! A sequence of advantages `A` has priority `sum |A|`, its probability is in proportion to
//! priority^`alpha` (Schaul et al., "Prioritized experience replay", 2016, equation 1; segments
//! of rollouts: PufferLib 3, 2025). One is drawn from each of as many equal shares as there
//! are sequences, so that one with a mean probability is drawn once. `(S p)^-beta` weighs its
//! advantages in the policy's loss.

use super::Ppo;
use super::sequences::Part;
use crate::learner::error::LearnError;
use ostler_collector::peers::Group;
use ostler_collector::transfer::read_into;
use ostler_sim::rng::{Purpose, philox};
use tch::{Kind, TchError, Tensor};

/// Beside the mean, no priority is less than this: advantages may all be 0.
const LEAST: f64 = 1e-6;

/// Probabilities of a rollout's sequences.
#[derive(Debug)]
pub(crate) struct Priorities {
    /// Their sums from the first to each `[S]`, float64.
    sums: Tensor,
    /// Factors of the samples' advantages `[M,1]`.
    pub weight: Tensor,
}

impl Priorities {
    /// Of advantages `[M,1]`, where `valid [M,1]` is not 0, among those of all processes.
    ///
    /// # Errors
    /// libtorch refuses, or another process is gone.
    pub(crate) fn new(
        advantage: &Tensor,
        valid: &Tensor,
        part: Part,
        group: &Group,
        [alpha, beta]: [f64; 2],
    ) -> Result<Self, TchError> {
        let (sequences, own) = (part.own, part.own.rows() as i64);
        let size = |t: &Tensor| t.f_view(sequences.blocks().as_slice());
        let large = advantage.f_abs()?.f_where_self(&valid.f_gt(0.0)?, &valid.f_zeros_like()?)?;
        let large = size(&large)?.f_to_kind(Kind::Double)?;
        let priority = large.f_sum_dim_intlist(&[1i64][..], true, Kind::Double)?;
        let priority = group.among(&priority, 2, part.place())?;
        let priority = priority.f_pow_tensor_scalar(alpha)?;
        let priority = priority.f_nan_to_num(0.0, 0.0, 0.0)?;
        let mean = priority.f_mean(Kind::Double)?;
        // Relative to the mean: S p.
        let relative = priority.f_div(&mean)?.f_nan_to_num(1.0, None, None)?;
        let relative = relative.f_add_scalar(LEAST)?.f_div_scalar(1.0 + LEAST)?;
        let weight = relative.f_pow_tensor_scalar(-beta)?.f_to_kind(Kind::Float)?;
        let weight = weight.f_narrow(2, part.place().first, own)?;
        Ok(Self {
            weight: weight.f_expand_as(&large)?.f_reshape([-1, 1])?,
            sums: relative.f_view([-1])?.f_cumsum(0, Kind::Double)?,
        })
    }

    /// A sequence from each of `S` shares of the sum, of which `at` says how far within it,
    /// 0 to 1: `[S]`, int64.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn draw(&self, at: f64) -> Result<Tensor, TchError> {
        let count = self.sums.size1()?;
        let options = (Kind::Double, self.sums.device());
        let places = Tensor::f_arange(count, options)?.f_add_scalar(at)?;
        let last = self.sums.f_get(count - 1)?;
        let places = places.f_mul(&last)?.f_div_scalar(count as f64)?;
        let none = None::<Tensor>;
        let drawn = places.f_searchsorted(&self.sums, false, true, "right", none)?;
        drawn.f_clamp_max(count - 1)
    }
}

impl Ppo {
    /// The sequences that stand in an epoch's order, in place of all of them.
    pub(super) fn drawn(&self, epoch: usize) -> Result<Option<Tensor>, TchError> {
        let Some(priorities) = &self.priorities else {
            return Ok(None);
        };
        let key = (self.seed, epoch as u32, self.updates.get());
        let word = philox(key.0, key.1, Purpose::PriorityDraw, key.2, 0)[0];
        priorities.draw(f64::from(word) / 2f64.powi(32)).map(Some)
    }

    /// The same as numbers.
    pub(super) fn drawn_on_host(&self, epoch: usize) -> Result<Option<Vec<i64>>, LearnError> {
        let Some(drawn) = self.drawn(epoch)? else {
            return Ok(None);
        };
        let mut numbers = vec![0; drawn.numel()];
        read_into(&drawn, &mut numbers)?;
        Ok(Some(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::ppo::sequences::Sequences;

    fn column(numbers: &[f32]) -> Tensor {
        Tensor::from_slice(numbers).view([-1, 1])
    }

    fn counts(priorities: &Priorities, at: f64) -> Vec<i64> {
        let drawn = Vec::<i64>::try_from(priorities.draw(at).unwrap()).unwrap();
        let count = |i: i64| drawn.iter().filter(|d| **d == i).count() as i64;
        (0..drawn.len() as i64).map(count).collect()
    }

    #[test]
    fn sequences_come_as_often_as_their_advantages_are_large() {
        // Three steps of two environments, single samples: mean priority 2.
        let advantage = column(&[4.0, -2.0, 0.0, -4.0, f32::NAN, 2.0]);
        let valid = column(&[1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
        let new = |advantage: &Tensor, valid: &Tensor, of: Sequences, exponents| {
            Priorities::new(advantage, valid, Part::whole(of), &Group::default(), exponents)
        };
        let samples = Sequences::new(1, 2, 6);
        let of = |exponents| new(&advantage, &valid, samples, exponents).unwrap();
        for at in [0.01, 0.5, 0.99] {
            assert_eq!(counts(&of([1.0, 0.0]), at), [2, 1, 0, 2, 0, 1], "{at}");
        }
        // Weights are relative to the mean probability.
        let weight = Vec::<f32>::try_from(of([1.0, 1.0]).weight.view([-1])).unwrap();
        for (i, wanted) in [(0, 0.5), (1, 1.0), (3, 0.5), (5, 1.0)] {
            assert!((weight[i] - wanted).abs() < 1e-5, "{weight:?}");
        }
        let weight = of([2.0, 0.0]).weight;
        assert_eq!(weight, weight.ones_like());
        // Squares: 16, 4, 0, 16, 0, 4 of a mean of 20 / 3.
        let often = counts(&of([2.0, 0.0]), 0.5);
        assert!(often[0] >= 2 && often[3] >= 2 && often[2] + often[4] == 0, "{often:?}");

        // Sequences of three steps: one of each environment, sums 4 and 8.
        let whole = Sequences::new(3, 2, 6);
        let whole = new(&advantage, &valid, whole, [1.0, 1.0]).unwrap();
        assert_eq!(counts(&whole, 0.9), [0, 2]);
        assert_eq!(counts(&whole, 0.1), [1, 1]);
        let weight = Vec::<f32>::try_from(whole.weight.view([-1])).unwrap();
        for (i, weight) in weight.iter().enumerate() {
            let wanted = [1.5, 0.75][i % 2];
            assert!((weight - wanted).abs() < 1e-5, "{i}: {weight}");
        }
    }

    #[test]
    fn without_advantages_all_come_once() {
        let samples = Sequences::new(1, 4, 8);
        for advantage in [0.0, f32::NAN] {
            let advantage = column(&[advantage; 8]);
            let (ones, alone) = (advantage.ones_like(), Group::default());
            let all = Priorities::new(&advantage, &ones, Part::whole(samples), &alone, [0.8, 0.5]);
            let all = all.unwrap();
            assert_eq!(counts(&all, 0.5), [1; 8]);
            let off = (&all.weight - 1.0).abs().max().double_value(&[]);
            assert!(off < 1e-5);
        }
    }
}
