//! Units that minibatches are drawn from: single samples, or for a recurrent policy sequences of
//! consecutive steps of one environment.
//!
//! A rollout of `T` steps of `N` environments has samples `t N + n` and, of `L` steps each,
//! `T / L * N` sequences: sequence `k N + n` has steps `k L ..` of environment `n`.

use ostler_collector::peers::Place;
use tch::{Kind, TchError, Tensor};

/// Sequences of a rollout; of one step each they are its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequences {
    /// Steps of each, `L`.
    pub steps: usize,
    /// Rows of a step, `N`.
    envs: usize,
    /// How many there are.
    count: usize,
}

impl Sequences {
    /// Of a rollout of `total` samples, `envs` a step; `steps` divides the rollout's.
    pub(crate) fn new(steps: usize, envs: usize, total: usize) -> Self {
        let steps = steps.max(1);
        Self { steps, envs: envs.max(1), count: total / steps }
    }

    /// Rows of a step.
    pub(crate) fn rows(self) -> usize {
        self.envs
    }

    /// How many there are.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Sizes of a column of all samples: sequences one after the other, their steps, rows.
    pub(crate) fn blocks(self) -> [i64; 3] {
        let blocks = self.count / self.envs;
        [blocks, self.steps, self.envs].map(|n| n as i64)
    }

    /// The samples of some of them, step by step.
    pub(crate) fn samples(self, sequences: &[i64]) -> impl Iterator<Item = i64> {
        let (steps, n) = (self.steps as i64, self.envs as i64);
        let sample = move |s: i64, t: i64| (s / n * steps + t) * n + s % n;
        (0..steps).flat_map(move |t| sequences.iter().map(move |s| sample(*s, t)))
    }

    /// The same for tensors: `[B]` to `[L B]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn index(self, sequences: &Tensor) -> Result<Tensor, TchError> {
        if self.steps == 1 {
            return Ok(sequences.shallow_clone());
        }
        let (steps, n) = (self.steps as i64, self.envs as i64);
        let of_block = sequences.f_divide_scalar_mode(n, "floor")?;
        // k L N + n = s + k (L - 1) N
        let first = sequences.f_add(&of_block.f_mul_scalar((steps - 1) * n)?)?;
        let options = (Kind::Int64, sequences.device());
        let steps = Tensor::f_arange(steps, options)?.f_mul_scalar(n)?;
        steps.f_unsqueeze(1)?.f_add(&first.f_unsqueeze(0)?)?.f_view([-1])
    }
}

/// Which samples or sequences of all are this process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Of all processes.
    pub all: Sequences,
    /// Of this one.
    pub own: Sequences,
    /// The first row of a step that is its own.
    pub first: usize,
}

impl Part {
    /// Of a process alone.
    pub(crate) fn whole(own: Sequences) -> Self {
        Self { all: own, own, first: 0 }
    }

    /// Of some of all samples or sequences those that are its own, by their numbers here.
    pub(crate) fn of(self, some: &[i64], into: &mut Vec<i64>) {
        into.clear();
        if self.all == self.own {
            into.extend_from_slice(some);
            return;
        }
        let [all, own] = [self.all, self.own].map(|s| s.rows() as i64);
        let first = self.first as i64;
        let here = some.iter().filter_map(|s| {
            let row = s % all - first;
            (0..own).contains(&row).then_some(s / all * own + row)
        });
        into.extend(here);
    }

    /// The most of a minibatch of so many that can be its own, where none is drawn twice.
    pub(crate) fn most(self, of: usize) -> usize {
        of.min(self.own.count())
    }

    /// Its rows among all.
    pub(crate) fn place(self) -> Place {
        Place { first: self.first as i64, all: self.all.rows() as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sequences_have_every_sample_once_and_steps_of_one_environment() {
        for (steps, envs, total) in [(1, 5, 20), (2, 5, 20), (4, 5, 20), (3, 1, 9)] {
            let sequences = Sequences::new(steps, envs, total);
            let order: Vec<i64> = (0..sequences.count() as i64).rev().collect();
            let samples: Vec<i64> = sequences.samples(&order).collect();
            let tensor = sequences.index(&Tensor::from_slice(&order)).unwrap();
            assert_eq!(Vec::<i64>::try_from(tensor).unwrap(), samples);
            let mut all = samples.clone();
            all.sort_unstable();
            assert!(all.iter().zip(0..).all(|(a, b)| *a == b));
            for b in 0..order.len() {
                let of: Vec<i64> = samples.iter().skip(b).step_by(order.len()).copied().collect();
                assert!(of.windows(2).all(|w| w[1] - w[0] == envs as i64));
                assert_eq!(of[0] / envs as i64 % steps as i64, 0);
            }
        }
    }

    #[test]
    fn all_parts_of_an_order_are_the_whole() {
        for steps in [1, 4] {
            let all = Sequences::new(steps, 5, 5 * 8);
            let part =
                |first, rows| Part { all, own: Sequences::new(steps, rows, rows * 8), first };
            let order: Vec<i64> = (0..all.count() as i64).rev().collect();
            let (mut samples, mut own) = (Vec::new(), Vec::new());
            for part in [part(0, 2), part(2, 3)] {
                part.of(&order, &mut own);
                assert_eq!(own.len(), part.own.count());
                // Back to the numbers of all: k N + n.
                let rows = part.own.rows() as i64;
                samples.extend(own.iter().map(|s| s / rows * 5 + s % rows + part.first as i64));
            }
            samples.sort_unstable();
            assert!(samples.iter().copied().eq(0..all.count() as i64));
        }
    }
}
