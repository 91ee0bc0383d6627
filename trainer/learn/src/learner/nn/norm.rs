//! Layer normalisation, forward and backward.
//!
//! Source: Ba, Kiros and Hinton, "Layer normalization", 2016; libtorch's `layer_norm`.
//! Shapes: `B` rows, `H` numbers in each.

use super::host::stack::NormAt;
use super::{Layout, Params};
use crate::learner::error::LearnError;
use crate::learner::tensors::zeros;
use ostler_collector::memory::HostRows;
use tch::{Device, Kind, TchError, Tensor};

/// Added to the variance, as in PyTorch.
pub const EPS: f64 = 1e-5;

/// `y = gain (x - mean) / sqrt(var + EPS) + bias` over each row.
#[derive(Debug)]
pub struct LayerNorm {
    gain: Tensor,
    bias: Tensor,
    d_gain: Tensor,
    d_bias: Tensor,
    /// Gain and bias again, where they lie on the host.
    host: Option<[HostRows<f32>; 2]>,
    place: NormAt,
}

/// Where its parameters lie.
#[derive(Debug, Clone, Copy)]
pub struct LayerNormAt {
    gain: usize,
    bias: usize,
}

/// Buffers of one pass.
#[derive(Debug)]
pub struct LayerNormSpace {
    /// Its input `[B,H]`.
    pub x: Tensor,
    /// Gradient of its input `[B,H]`; empty where no backward pass is wanted.
    pub d_x: Tensor,
    mean: Tensor,
    /// `1 / sqrt(var + EPS)` `[B,1]`.
    scale: Tensor,
}

impl LayerNorm {
    /// Adds the parameters for rows of `width` numbers to a layout.
    pub fn declare(layout: &mut Layout, name: &str, width: i64) -> LayerNormAt {
        LayerNormAt {
            gain: layout.add(format!("{name}.weight"), &[width]),
            bias: layout.add(format!("{name}.bias"), &[width]),
        }
    }

    /// The norm whose parameters lie there.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn new(params: &Params, at: LayerNormAt) -> Result<Self, TchError> {
        let (gain, bias) = (params.view(at.gain)?, params.view(at.bias)?);
        // SAFETY: parameters have initial values. They are read in `on_host`'s passes alone,
        // which call nothing of libtorch's but for addresses.
        let rows = |t: &Tensor| unsafe { HostRows::new(t) }.ok();
        Ok(Self {
            place: NormAt { gain: params.range(at.gain), shift: params.range(at.bias) },
            host: rows(&gain).and_then(|g| Some([g, rows(&bias)?])),
            gain,
            bias,
            d_gain: params.grad_view(at.gain)?,
            d_bias: params.grad_view(at.bias)?,
        })
    }

    /// Gain and bias `[H]`.
    pub fn parameters(&self) -> [&Tensor; 2] {
        [&self.gain, &self.bias]
    }

    /// Where its parameters lie among all.
    pub fn place(&self) -> &NormAt {
        &self.place
    }

    /// Begins with a gain of 1 and a bias of 0.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn init(&self) -> Result<(), TchError> {
        let _ = self.gain.shallow_clone().f_fill_(1.0)?;
        let _ = self.bias.shallow_clone().f_zero_()?;
        Ok(())
    }

    /// Gain and bias as numbers, where they lie on the host.
    ///
    /// # Errors
    /// They lie elsewhere than they did.
    pub fn on_host(&self) -> Result<Option<[&[f32]; 2]>, TchError> {
        let moved = |e: ostler_collector::CollectError| TchError::Torch(e.to_string());
        match &self.host {
            Some([gain, bias]) => {
                Ok(Some([gain.all().map_err(moved)?, bias.all().map_err(moved)?]))
            }
            None => Ok(None),
        }
    }

    /// Allocates for `rows` rows.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn space(
        &self,
        rows: i64,
        backward: bool,
        device: Device,
    ) -> Result<LayerNormSpace, LearnError> {
        let width = self.gain.numel() as i64;
        let float = |size: &[i64]| zeros("layer norm", size, Kind::Float, device);
        let of_gradient: &[i64] = if backward { &[rows, width] } else { &[0] };
        Ok(LayerNormSpace {
            x: float(&[rows, width])?,
            d_x: float(of_gradient)?,
            mean: float(&[rows, 1])?,
            scale: float(&[rows, 1])?,
        })
    }

    /// Of `space.x`, into `y [B,H]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn forward(&self, space: &LayerNormSpace, y: &Tensor) -> Result<(), TchError> {
        let width = [self.gain.numel() as i64];
        let (gain, bias) = (Some(&self.gain), Some(&self.bias));
        let (mean, scale) = (&space.mean, &space.scale);
        let _ = space.x.f_native_layer_norm_out(y, mean, scale, &width[..], gain, bias, EPS)?;
        Ok(())
    }

    /// From the gradient `d [B,H]` of the result to those of the parameters and of the
    /// input, which goes into `space.d_x`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn backward(&self, d: &Tensor, space: &LayerNormSpace) -> Result<(), TchError> {
        self.backward_input(d, space)?;
        let centred = space.x.f_sub(&space.mean)?.f_mul(&space.scale)?;
        let along = &[0i64][..];
        let _ = centred.f_mul(d)?.f_sum_intlist_out(&self.d_gain, along, false, Kind::Float)?;
        let _ = d.f_sum_intlist_out(&self.d_bias, along, false, Kind::Float)?;
        Ok(())
    }

    /// The gradient of the input alone.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn backward_input(&self, d: &Tensor, space: &LayerNormSpace) -> Result<(), TchError> {
        let centred = space.x.f_sub(&space.mean)?.f_mul(&space.scale)?;
        let d = d.f_mul(&self.gain)?;
        let mean = |t: &Tensor| t.f_mean_dim(&[1i64][..], true, Kind::Float);
        let along = centred.f_mul(&mean(&centred.f_mul(&d)?)?)?;
        let rest = d.f_sub(&mean(&d)?)?.f_sub(&along)?;
        let _ = rest.f_mul_out(&space.d_x, &space.scale)?;
        Ok(())
    }
}

impl LayerNormSpace {
    /// The first `rows` rows, sharing memory.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn narrow(&self, rows: i64) -> Result<Self, TchError> {
        let cut = |t: &Tensor| match t.dim() {
            2 => t.f_narrow(0, 0, rows),
            _ => Ok(t.shallow_clone()),
        };
        Ok(Self {
            x: cut(&self.x)?,
            d_x: cut(&self.d_x)?,
            mean: cut(&self.mean)?,
            scale: cut(&self.scale)?,
        })
    }
}
