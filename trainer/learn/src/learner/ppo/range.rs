//! Values within the bounds of rewards.
//!
//! No state is worth more than the largest reward for ever, `r / (1 - gamma)`, nor less than
//! the smallest (0 once the task has ended). Nothing else bounds what a critic says of the
//! states that episodes are cut off in: it is never trained on them, and what it says of
//! them enters its own targets. Source: Andrychowicz et al., "Hindsight experience replay",
//! 2017, section 4.1, which clips targets for this reason.

use ostler_collector::peers::Group;
use tch::{Device, Kind, TchError, Tensor};

/// The range of rewards that a run has seen, 0 included.
#[derive(Debug)]
pub(crate) struct RewardRange {
    /// Smallest and largest, float64 `[2]`.
    seen: Tensor,
}

impl RewardRange {
    /// Nothing seen yet.
    pub(crate) fn new(device: Device) -> Result<Self, TchError> {
        let seen = Tensor::f_zeros([2], (Kind::Double, device))?;
        Ok(Self { seen })
    }

    /// The state.
    pub(crate) fn seen(&self) -> &Tensor {
        &self.seen
    }

    /// Takes in the rewards `[T,N]` of all processes' samples with 1 in `valid [T,N]`; numbers that are not
    /// finite count as 0.
    pub(crate) fn merge(
        &mut self,
        reward: &Tensor,
        valid: &Tensor,
        group: &Group,
    ) -> Result<(), TchError> {
        let counted = reward.f_mul(valid)?.f_nan_to_num(0.0, 0.0, 0.0)?;
        let (low, high) = counted.f_aminmax(None, false)?;
        let now = Tensor::f_stack(&[low.f_neg()?, high], 0)?.f_to_kind(Kind::Double)?;
        let now = group.largest(now)?;
        let (mut low, mut high) = (self.seen.f_get(0)?, self.seen.f_get(1)?);
        low.f_copy_(&low.f_minimum(&now.f_get(0)?.f_neg()?)?)?;
        high.f_copy_(&high.f_maximum(&now.f_get(1)?)?)
    }

    /// Holds values within the bounds of these rewards with the discount `gamma`, in place;
    /// without a discount every value is possible.
    pub(crate) fn hold(&self, value: &Tensor, gamma: f64) -> Result<(), TchError> {
        if gamma >= 1.0 {
            return Ok(());
        }
        let bounds = self.seen.f_mul_scalar(1.0 / (1.0 - gamma))?;
        let bounds = bounds.f_to_kind(Kind::Float)?;
        let (low, high) = (bounds.f_get(0)?, bounds.f_get(1)?);
        let _ = value.shallow_clone().f_clamp_tensor_(Some(low), Some(high))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(x: &[f32]) -> Tensor {
        Tensor::from_slice(x).view([1, -1])
    }

    #[test]
    fn values_stay_within_what_the_largest_and_smallest_rewards_allow() {
        let mut range = RewardRange::new(Device::Cpu).unwrap();
        let (all, alone) = (rows(&[1.0; 4]), Group::default());
        range.merge(&rows(&[1.0, 2.0, 0.5, f32::INFINITY]), &all, &alone).unwrap();
        range.merge(&rows(&[-0.25, 1.0, 1.0, f32::NAN]), &all, &alone).unwrap();
        // Not valid, and so not seen.
        let none = rows(&[0.0; 4]);
        range.merge(&rows(&[50.0, -50.0, 0.0, 0.0]), &none, &alone).unwrap();
        let value = rows(&[1e30, -1e30, 7.0, f32::NAN]);
        range.hold(&value, 0.99).unwrap();
        let got: Vec<f32> = Vec::try_from(value.view([-1])).unwrap();
        assert!((got[0] - 200.0).abs() < 1e-3 && (got[1] + 25.0).abs() < 1e-4, "{got:?}");
        assert!(got[2] == 7.0 && got[3].is_nan(), "{got:?}");
        let value = rows(&[1e30]);
        range.hold(&value, 1.0).unwrap();
        assert_eq!(value.double_value(&[0, 0]), f64::from(1e30f32));
    }
}
