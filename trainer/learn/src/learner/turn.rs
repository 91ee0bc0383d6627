//! Exchanges of columns with signs: reflections of rows (`[symmetry]`).

use ostler_sim::env::mirror::Signed;
use tch::{Device, TchError, Tensor};

/// A [`Signed`] exchange of columns, on a device.
#[derive(Debug)]
pub(crate) struct Turn {
    index: Tensor,
    sign: Tensor,
}

// SAFETY: the tensors are read only, which libtorch allows from several threads.
unsafe impl Sync for Turn {}

impl Turn {
    pub(crate) fn new(of: &Signed, device: Device) -> Result<Self, TchError> {
        let index: Vec<i64> = of.0.iter().map(|e| i64::from(e.0)).collect();
        let sign: Vec<f32> = of.0.iter().map(|e| e.1).collect();
        Ok(Self {
            index: Tensor::f_from_slice(&index)?.f_to_device(device)?,
            sign: Tensor::f_from_slice(&sign)?.f_to_device(device)?,
        })
    }

    /// The reflections of rows `[.., W]`.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_index_select(-1, &self.index)?.f_mul(&self.sign)
    }

    /// The reflection of means `[W]`, float64.
    pub(crate) fn of_means(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_index_select(-1, &self.index)?.f_mul(&self.sign.f_to_kind(tch::Kind::Double)?)
    }

    /// The reflection of what has no sign.
    pub(crate) fn exchanged(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_index_select(-1, &self.index)
    }
}
