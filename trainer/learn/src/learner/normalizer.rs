//! Running mean and variance of observations.

use super::state::{Holds, State};
use super::turn::Turn;
use ostler_collector::peers::Group;
use tch::{Device, Kind, TchError, Tensor};

/// Added to the standard deviation, so that an entry that hardly moves is not blown up; the
/// same as in rsl_rl.
const EPS: f64 = 1e-2;

/// Normalised numbers farther from 0 are cut off here: one odd observation of an entry that
/// hardly moved so far would move the networks by any amount. Stable-Baselines3's
/// `VecNormalize` has the same bound.
pub const FARTHEST: f32 = 10.0;

/// Rows that are converted to float64 at a time on a host.
const CHUNK: i64 = 16_384;

/// The same on a GPU, where launches cost more than memory.
const CHUNK_ON_GPU: i64 = 131_072;

/// Shifts and scales observations by statistics that only [`merge`](Self::merge)
/// changes: they are the same throughout an iteration, and in an evaluation.
#[derive(Debug)]
pub struct Normalizer {
    prefix: &'static str,
    /// Mean `[O]`, float64.
    mean: Tensor,
    /// Variance (of the population) `[O]`, float64.
    var: Tensor,
    /// Observations seen, float64 `[1]`.
    count: Tensor,
    /// `mean` `[O]`, float32.
    shift: Tensor,
    /// `1 / (standard deviation + EPS)` `[O]`, float32.
    scale: Tensor,
    /// Weight of the old statistics when new ones are merged, 0..1.
    memory: f64,
    /// Observations come with their reflections.
    reflection: Option<Turn>,
    /// Whose observations count.
    group: Group,
}

impl Normalizer {
    /// Without statistics: mean 0, variance 1. `prefix` starts the names in a checkpoint.
    pub fn new(prefix: &'static str, width: i64, device: Device) -> Result<Self, TchError> {
        let double = (Kind::Double, device);
        let mut this = Self {
            prefix,
            mean: Tensor::f_zeros([width], double)?,
            var: Tensor::f_ones([width], double)?,
            count: Tensor::f_zeros([1], double)?,
            shift: Tensor::f_zeros([width], (Kind::Float, device))?,
            scale: Tensor::f_ones([width], (Kind::Float, device))?,
            memory: 1.0,
            reflection: None,
            group: Group::default(),
        };
        this.derive()?;
        Ok(this)
    }

    /// One that forgets: with every merge the weight of earlier samples shrinks to `memory` of
    /// it.
    pub fn forgetting(self, memory: f64) -> Self {
        Self { memory, ..self }
    }

    /// From now on the observations of all these processes count, in each of them.
    pub(crate) fn join(&mut self, group: &Group) {
        self.group = group.clone();
    }

    /// From now on every observation counts with its reflection, so that reflecting and normalising
    /// may change places.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn reflect(&mut self, turn: Turn) -> Result<(), TchError> {
        self.reflection = Some(turn);
        self.derive()
    }

    /// Mean, without dimensions, of a single column; float64.
    pub fn mean(&self) -> Result<Tensor, TchError> {
        self.mean.f_get(0)
    }

    /// Variance (of the population), without dimensions, of a single column; float64.
    pub fn var(&self) -> Result<Tensor, TchError> {
        self.var.f_get(0)
    }

    /// All that [`apply`](Self::apply) depends on: the shift that is subtracted and the factor,
    /// `[O]`, float32.
    pub fn applied(&self) -> [&Tensor; 2] {
        [&self.shift, &self.scale]
    }

    /// Normalises `x [B,O]` into `out`, within [`FARTHEST`] of 0; NaN stays.
    pub fn apply(&self, x: &Tensor, out: &Tensor) -> Result<(), TchError> {
        let _ = x.f_sub_out(out, &self.shift)?;
        let _ = out.f_mul_out(out, &self.scale)?;
        let _ = out.f_clamp_out(out, -f64::from(FARTHEST), f64::from(FARTHEST))?;
        Ok(())
    }

    /// Takes the rows of `x [M,O]` with weight 1 in `weight [M,1]` into the statistics.
    ///
    /// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
    /// computing sample variances", 1979.
    pub fn merge(&mut self, x: &Tensor, weight: &Tensor) -> Result<(), TchError> {
        let rows = x.size().first().copied().unwrap_or(0);
        let chunk = match self.mean.device() {
            Device::Cpu => CHUNK,
            _ => CHUNK_ON_GPU,
        };
        let chunks: Vec<(i64, i64)> = (0..rows)
            .step_by(chunk as usize)
            .map(|start| (start, chunk.min(rows - start)))
            .collect();
        let n = weight.f_sum(Kind::Double)?;
        let mut sum = self.mean.f_zeros_like()?;
        for &(start, len) in &chunks {
            let (x, w) = (x.f_narrow(0, start, len)?, weight.f_narrow(0, start, len)?);
            let x = x.f_to_kind(Kind::Double)?.f_mul(&w)?;
            let _ = sum.f_add_(&x.f_sum_dim_intlist(&[0i64][..], false, Kind::Double)?)?;
        }
        let [n, sum] = self.group.totals([n, sum])?;
        let some = n.f_clamp_min(1.0)?;
        let mean = sum.f_div(&some)?;
        let mut squares = self.mean.f_zeros_like()?;
        for &(start, len) in &chunks {
            let (x, w) = (x.f_narrow(0, start, len)?, weight.f_narrow(0, start, len)?);
            let x = x.f_to_kind(Kind::Double)?.f_sub(&mean)?;
            let x = x.f_mul(&x)?.f_mul(&w)?;
            let _ = squares.f_add_(&x.f_sum_dim_intlist(&[0i64][..], false, Kind::Double)?)?;
        }
        let squares = self.group.total(squares)?;
        let count = self.count.f_mul_scalar(self.memory)?;
        let total = count.f_add(&n)?;
        let at_least_1 = total.f_clamp_min(1.0)?;
        let delta = mean.f_sub(&self.mean)?;
        let share = n.f_div(&at_least_1)?;
        let between = delta.f_mul(&delta)?.f_mul(&count)?.f_mul(&share)?;
        let var = self.var.f_mul(&count)?.f_add(&squares)?.f_add(&between)?;
        let var = var.f_div(&at_least_1)?;
        // A batch without a single valid row, or with one that is not finite, leaves
        // everything as it was.
        let good = delta.f_add(&var)?.f_sum(Kind::Double)?.f_isfinite()?;
        let good = good.f_logical_and(&n.f_gt(0.0)?)?;
        let moved = self.mean.f_add(&delta.f_mul(&share)?)?;
        // In place: others hold these tensors too.
        let _ = var.f_where_self_out(&self.var, &good, &self.var)?;
        let _ = moved.f_where_self_out(&self.mean, &good, &self.mean)?;
        let _ = total.f_where_self_out(&self.count, &good, &self.count)?;
        self.derive()
    }

    /// Computes the inputs of [`apply`](Self::apply) from the statistics.
    pub fn derive(&mut self) -> Result<(), TchError> {
        if let Some(turn) = &self.reflection {
            // Of samples and as many reflections; of what is that already, the same.
            let (mean, var) = (turn.of_means(&self.mean)?, turn.exchanged(&self.var)?);
            let half = self.mean.f_sub(&mean)?.f_mul_scalar(0.5)?;
            let both = self.var.f_add(&var)?.f_mul_scalar(0.5)?.f_add(&half.f_square()?)?;
            self.var.f_copy_(&both)?;
            self.mean.f_copy_(&self.mean.f_add(&mean)?.f_mul_scalar(0.5)?)?;
        }
        self.shift.f_copy_(&self.mean)?;
        let scale = self.var.f_sqrt()?.f_add_scalar(EPS)?.f_reciprocal()?;
        self.scale.f_copy_(&scale)
    }

    /// Enters the statistics into a learner's state; a file may lack those that are
    /// `optional`. Whoever loads or restores them [derives](Self::derive) the rest.
    pub fn declare(&self, state: &mut State, optional: bool) {
        let parts =
            [("mean", &self.mean, 0.0), ("var", &self.var, 1.0), ("count", &self.count, 0.0)];
        for (part, t, none) in parts {
            let name = format!("{}.{part}", self.prefix);
            match optional {
                true => state.optional(name, t, none),
                false => state.tensor(name, t, Holds::Weights),
            }
        }
        state.block(&self.shift);
        state.block(&self.scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40,000 rows of two columns, one far from 0.
    fn rows() -> Tensor {
        let t = Tensor::arange(40_000, (Kind::Double, Device::Cpu));
        let a = (&t * 0.7).sin() * 3.0 + 100.0;
        let b = (&t * 0.3).cos() * 0.01;
        Tensor::stack(&[a, b], 1).to_kind(Kind::Float)
    }

    fn saved(n: &Normalizer) -> crate::learner::tensors::NamedTensors {
        let mut state = State::default();
        n.declare(&mut state, false);
        state.save().unwrap()
    }

    #[test]
    fn merging_parts_equals_the_statistics_of_the_whole() {
        let x = rows();
        let mut n = Normalizer::new("n", 2, Device::Cpu).unwrap();
        for (start, len) in [(0, 5), (5, 20_000), (20_005, 19_995)] {
            let ones = Tensor::ones([len, 1], (Kind::Float, Device::Cpu));
            n.merge(&x.narrow(0, start, len), &ones).unwrap();
        }
        let x64 = x.to_kind(Kind::Double);
        let (var, mean) = x64.var_mean_dim(&[0i64][..], false, false);
        assert!((&n.mean - mean).abs().max().double_value(&[]) < 1e-9);
        assert!((&n.var - var).abs().max().double_value(&[]) < 1e-9);
        let out = x.zeros_like();
        n.apply(&x, &out).unwrap();
        let first = (x.double_value(&[0, 0]) - n.mean.double_value(&[0]))
            / (n.var.double_value(&[0]).sqrt() + EPS);
        assert!((out.double_value(&[0, 0]) - first).abs() < 1e-4);
    }

    #[test]
    fn statistics_with_reflections_are_those_of_samples_and_reflections() {
        let signed = ostler_sim::env::mirror::Signed(vec![(1, -1.0), (0, -1.0)]);
        let turn = || Turn::new(&signed, Device::Cpu).unwrap();
        let x = rows().narrow(0, 0, 1000);
        let ones = |n: i64| Tensor::ones([n, 1], (Kind::Float, Device::Cpu));
        let [mut n, mut both] = [(); 2].map(|()| Normalizer::new("n", 2, Device::Cpu).unwrap());
        n.reflect(turn()).unwrap();
        n.merge(&x, &ones(1000)).unwrap();
        both.merge(&Tensor::cat(&[&x, &turn().apply(&x).unwrap()], 0), &ones(2000)).unwrap();
        let far = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
        assert!(far(&n.mean, &both.mean) < 1e-9 && far(&n.var, &both.var) < 1e-9);
    }

    #[test]
    fn an_observation_far_from_all_others_moves_nothing_by_more_than_the_bound() {
        let mut n = Normalizer::new("n", 2, Device::Cpu).unwrap();
        let ones = Tensor::ones([40_000, 1], (Kind::Float, Device::Cpu));
        n.merge(&rows(), &ones).unwrap();
        let x = Tensor::from_slice(&[1e9f32, -1e9, 100.0, f32::NAN]).view([2, 2]);
        let out = x.zeros_like();
        n.apply(&x, &out).unwrap();
        assert_eq!(out.double_value(&[0, 0]), 10.0);
        assert_eq!(out.double_value(&[0, 1]), -10.0);
        assert!(out.double_value(&[1, 0]).abs() < 1.0);
        assert!(out.double_value(&[1, 1]).is_nan(), "a NaN stays one");
    }

    #[test]
    fn rows_without_weight_do_not_count_and_none_at_all_changes_nothing() {
        let x = rows().narrow(0, 0, 100);
        let mut n = Normalizer::new("n", 2, Device::Cpu).unwrap();
        let before = saved(&n);
        n.merge(&x, &Tensor::zeros([100, 1], (Kind::Float, Device::Cpu))).unwrap();
        assert_eq!(saved(&n), before);

        let mut half = Tensor::zeros([100, 1], (Kind::Float, Device::Cpu));
        let _ = half.narrow(0, 0, 50).fill_(1.0);
        n.merge(&x, &half).unwrap();
        let mut m = Normalizer::new("n", 2, Device::Cpu).unwrap();
        half = half.narrow(0, 0, 50);
        m.merge(&x.narrow(0, 0, 50), &half).unwrap();
        for ((name, a), (_, b)) in saved(&n).iter().zip(&saved(&m)) {
            assert!((a - b).abs().max().double_value(&[]) < 1e-12, "{name}");
        }
        assert_eq!(n.count.double_value(&[0]), 50.0);
    }

    /// Written by `tests/referee/normalizer_reference.py`.
    const NUMPY: &str = include_str!("../../../../tests/fixtures/normalizer.json");

    #[derive(serde::Deserialize)]
    struct Numpy {
        rows: i64,
        x: Vec<f64>,
        mean: Vec<f64>,
        var: Vec<f64>,
    }

    #[test]
    fn running_statistics_equal_numpys() {
        let f: Numpy = serde_json::from_str(NUMPY).unwrap();
        let x = Tensor::from_slice(&f.x).to_kind(Kind::Float).view([f.rows, 3]);
        let mut n = Normalizer::new("n", 3, Device::Cpu).unwrap();
        for start in (0..f.rows).step_by(7) {
            let part = x.narrow(0, start, 7.min(f.rows - start));
            let ones = part.narrow(1, 0, 1).ones_like();
            n.merge(&part, &ones).unwrap();
        }
        for (got, expected) in [(&n.mean, &f.mean), (&n.var, &f.var)] {
            for (i, e) in expected.iter().enumerate() {
                let got = got.double_value(&[i as i64]);
                assert!((got - e).abs() < 1e-6 * e.abs().max(1e-3), "{got} {e}");
            }
        }
    }
}
