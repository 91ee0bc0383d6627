//! A gated recurrent unit (Cho et al., "Learning phrase representations using RNN
//! encoder-decoder", 2014), with PyTorch's gates: reset, update, new.
//!
//! Shapes: `B` rows, `I` inputs, `H` hidden numbers.

use super::host::recurrent::GruAt;
use super::layer::LinearAt;
use super::{Layout, Linear, Params, init};
use tch::{TchError, Tensor};

/// A GRU of one layer.
#[derive(Debug)]
pub struct Gru {
    input: Linear,
    hidden: Linear,
}

/// Where its parameters lie.
#[derive(Debug, Clone, Copy)]
pub struct GruPlaces {
    input: LinearAt,
    hidden: LinearAt,
}

impl Gru {
    /// Adds its parameters to a layout.
    pub fn declare(layout: &mut Layout, name: &str, inputs: i64, width: i64) -> GruPlaces {
        let gates = 3 * width;
        GruPlaces {
            input: Linear::declare(layout, &format!("{name}.input"), inputs, gates),
            hidden: Linear::declare(layout, &format!("{name}.hidden"), width, gates),
        }
    }

    /// The GRU whose parameters lie there.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn new(params: &Params, at: GruPlaces) -> Result<Self, TchError> {
        Ok(Self { input: Linear::new(params, at.input)?, hidden: Linear::new(params, at.hidden)? })
    }

    /// Orthogonal weights with gain 1, biases 0. Takes streams `stream` and the next.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn init(&self, seed: u64, stream: u32) -> Result<(), TchError> {
        for (layer, stream) in [&self.input, &self.hidden].into_iter().zip(stream..) {
            init::orthogonal_layer(layer, 1.0, seed, stream)?;
        }
        Ok(())
    }

    /// Its layers: of the input `[3H,I]`, of the hidden state `[3H,H]`.
    pub fn layers(&self) -> [&Linear; 2] {
        [&self.input, &self.hidden]
    }

    /// Inputs `I`.
    pub fn inputs(&self) -> usize {
        self.input.inputs()
    }

    /// Hidden numbers `H`.
    pub fn width(&self) -> usize {
        self.hidden.inputs()
    }

    /// The same for passes over blocks of rows.
    pub fn place(&self) -> GruAt {
        GruAt { input: self.input.dense().clone(), hidden: self.hidden.dense().clone() }
    }

    /// States `[B,H]` after one step from `h [B,H]` with inputs `x [B,I]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn step(&self, x: &Tensor, h: &Tensor) -> Result<Tensor, TchError> {
        let [of_input, of_hidden] = self.layers();
        let biases = [of_input, of_hidden].map(|l| Some(l.bias()));
        let [b_x, b_h] = biases;
        x.f_gru_cell(h, of_input.weight(), of_hidden.weight(), b_x, b_h)
    }
}
