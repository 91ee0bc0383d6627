//! A learner's tensors as they were, to go back to.

use super::LearnError;
use super::nn::zeros;
use tch::{Kind, TchError, Tensor};

/// A copy of the state, on its device, in buffers that live as long as the learner.
///
/// The live tensors are held too: nothing may replace one by another, all changes are
/// in place.
#[derive(Debug)]
pub struct TensorSnapshot {
    /// The state, and where it is copied to.
    tensors: Vec<(Tensor, Tensor)>,
}

impl TensorSnapshot {
    /// Allocates, and captures the state as it is.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new<'a>(live: impl Iterator<Item = &'a Tensor>) -> Result<Self, LearnError> {
        let tensors = live
            .map(|t| {
                let copy = zeros("the learner's snapshot", &t.size(), t.kind(), t.device())?;
                Ok((t.shallow_clone(), copy))
            })
            .collect::<Result<_, LearnError>>()?;
        let mut snapshot = Self { tensors };
        snapshot.capture()?;
        Ok(snapshot)
    }

    /// The state's tensors.
    #[cfg(test)]
    pub fn live(&self) -> Vec<&Tensor> {
        self.tensors.iter().map(|(live, _)| live).collect()
    }

    /// Captures the state as it is now.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn capture(&mut self) -> Result<(), TchError> {
        self.tensors
            .iter_mut()
            .try_for_each(|(live, copy)| copy.f_copy_(live))
    }

    /// Goes back to what was captured. Allocates no tensor.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn restore(&mut self) -> Result<(), TchError> {
        self.tensors
            .iter_mut()
            .try_for_each(|(live, copy)| live.f_copy_(copy))
    }

    /// The sum of every tensor's largest magnitude, float64 `[1]`: finite only if each
    /// number of the state is.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn size_of_state(&self) -> Result<Tensor, TchError> {
        let largest = self
            .tensors
            .iter()
            .map(|(live, _)| {
                live.f_view([-1])?
                    .f_linalg_norm(f64::INFINITY, None::<&[i64]>, false, None)?
                    .f_to_kind(Kind::Double)?
                    .f_view([1])
            })
            .collect::<Result<Vec<_>, _>>()?;
        Tensor::f_cat(&largest, 0)?.f_sum(Kind::Double)?.f_view([1])
    }
}
