//! Returns of any size for a critic that learns numbers near 1.
//!
//! Source: van Hasselt et al., "Learning values across many orders of magnitude",
//! 2016 (Pop-Art): targets are shifted and scaled by running statistics, and whenever
//! those move, the output layer is corrected so that the values it stands for do not.

use super::error::LearnError;
use super::nn::Linear;
use super::normalizer::Normalizer;
use super::tensors::find;
use ostler_collector::peers::Group;
use tch::{Device, Kind, TchError, Tensor};

/// Starts the names in a checkpoint.
const PREFIX: &str = "critic.return_normalizer";

/// Share of the statistics' weight after an update: they follow the returns of
/// a policy that improves within some twenty updates. Following those that spread more at
/// once makes a ratchet: the critic's errors are in units of the standard deviation, and returns
/// hold the critic's values.
const MEMORY: f64 = 0.95;

/// Returns that differ by less are not blown up.
const SMALLEST_DEVIATION: f64 = 1e-4;

/// Nor are those that differ by less than this share of their root mean square: the returns
/// of a policy that has solved its task are all alike, and a critic that had to tell them
/// apart would learn noise, with weights that grow as their spread shrinks.
const SMALLEST_SHARE: f64 = 0.1;

/// Running mean and standard deviation of returns.
#[derive(Debug)]
pub struct ReturnNormalizer {
    stats: Normalizer,
}

impl ReturnNormalizer {
    /// Without statistics: nothing is shifted or scaled.
    pub fn new(device: Device) -> Result<Self, TchError> {
        Ok(Self { stats: Normalizer::new(PREFIX, 1, device)?.forgetting(MEMORY) })
    }

    /// The statistics, to be saved and kept.
    pub fn stats(&self) -> &Normalizer {
        &self.stats
    }

    /// From now on the returns of all these processes count.
    pub(crate) fn join(&mut self, group: &Group) {
        self.stats.join(group);
    }

    /// Computes the values that derive from the statistics.
    pub fn derive(&mut self) -> Result<(), TchError> {
        self.stats.derive()
    }

    /// The standard deviation of returns, without dimensions, float64.
    pub fn standard_deviation(&self) -> Result<Tensor, TchError> {
        standard_deviation(&self.stats.mean()?, &self.stats.var()?)
    }

    /// From the critic's outputs to values, in place.
    pub fn denormalize(&self, value: &Tensor) -> Result<(), TchError> {
        let mut value = value.shallow_clone();
        let _ = value.f_mul_(&self.standard_deviation()?)?;
        let _ = value.f_add_(&self.stats.mean()?)?;
        Ok(())
    }

    /// From values to the critic's targets.
    pub fn normalize(&self, value: &Tensor) -> Result<Tensor, TchError> {
        value.f_sub(&self.stats.mean()?)?.f_div(&self.standard_deviation()?)
    }

    /// Takes the returns `[M,1]` with weight 1 in `weight [M,1]` into the statistics
    /// and corrects `head`, the critic's output layer. Without a usable return not a
    /// bit changes.
    pub fn merge(
        &mut self,
        returns: &Tensor,
        weight: &Tensor,
        head: &Linear,
    ) -> Result<(), TchError> {
        let mean = self.stats.mean()?.f_add_scalar(0.0)?;
        let deviation = self.standard_deviation()?;
        self.stats.merge(returns, weight)?;
        let now = self.standard_deviation()?;
        let shift = mean.f_sub(&self.stats.mean()?)?.f_div(&now)?;
        correct(head, &deviation.f_div(&now)?, &shift)
    }

    /// Makes a critic whose weights were taken from `tensors` say values as they are,
    /// if it was trained on normalised returns: for a learner without.
    pub fn fold(tensors: &[(String, Tensor)], head: &Linear) -> Result<(), LearnError> {
        if !Self::is_in(tensors) {
            return Ok(());
        }
        let device = head.weight().device();
        let number = |part: &str| -> Result<Tensor, LearnError> {
            let found = find(tensors, &format!("{PREFIX}.{part}"), &[1])?;
            Ok(found.f_to_device(device)?.f_to_kind(Kind::Double)?.f_get(0)?)
        };
        let mean = number("mean")?;
        let deviation = standard_deviation(&mean, &number("var")?)?;
        Ok(correct(head, &deviation, &mean)?)
    }

    fn is_in(tensors: &[(String, Tensor)]) -> bool {
        tensors.iter().any(|(name, _)| name.starts_with(PREFIX))
    }
}

/// Divisor of returns.
fn standard_deviation(mean: &Tensor, var: &Tensor) -> Result<Tensor, TchError> {
    let size = mean.f_mul(mean)?.f_add(var)?.f_sqrt()?;
    let least = size.f_mul_scalar(SMALLEST_SHARE)?;
    var.f_sqrt()?.f_maximum(&least)?.f_clamp_min(SMALLEST_DEVIATION)
}

/// `y` becomes `ratio y + shift`; both without dimensions.
fn correct(head: &Linear, ratio: &Tensor, shift: &Tensor) -> Result<(), TchError> {
    let _ = head.weight().shallow_clone().f_mul_(ratio)?;
    let mut bias = head.bias().shallow_clone();
    let _ = bias.f_mul_(ratio)?.f_add_(shift)?;
    Ok(())
}
