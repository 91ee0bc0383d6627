//! The layers of a [`Stack`](super::super::stack::Stack) by products of bfloat16.

use super::super::stack::Dense;
use super::{Half, Left, panels_len, rows_len};
use ostler_sim::memory::{MemoryError, zeroed};

/// A stack's weights as its products read them.
#[derive(Debug)]
pub struct HalfWeights {
    half: Half,
    layers: Vec<Packed>,
}

/// A layer's weights.
#[derive(Debug)]
struct Packed {
    /// `[I,H]`, for the pass forward.
    forward: Vec<u32>,
    /// `[H,I]`, for gradients of inputs.
    back: Vec<u32>,
}

/// Factors of a block of rows.
#[derive(Debug)]
pub struct HalfSpace {
    /// Rows of a layer's inputs, and later of its result's gradients.
    rows: Vec<u32>,
    /// Panels of each layer's inputs.
    inputs: Vec<Vec<u32>>,
    /// Panels of gradients.
    d: Vec<u32>,
}

impl HalfWeights {
    /// Room for the weights of these layers.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(half: Half, layers: &[Dense]) -> Result<Self, MemoryError> {
        let packed = |rows: usize, width: usize| zeroed("weights", panels_len(rows, width));
        let layer = |l: &Dense| {
            Ok(Packed { forward: packed(l.inputs, l.outputs)?, back: packed(l.outputs, l.inputs)? })
        };
        Ok(Self { half, layers: layers.iter().map(layer).collect::<Result<_, MemoryError>>()? })
    }

    /// Takes in the layers' present weights.
    pub fn pack(&mut self, layers: &[Dense], theta: &[f32]) {
        for (packed, layer) in self.layers.iter_mut().zip(layers) {
            let weight = &theta[layer.weight.clone()];
            self.half.pack_transposed(weight, layer.inputs, &mut packed.forward);
            self.half.pack(weight, layer.inputs, None, &mut packed.back);
        }
    }

    /// Rows `x [B,I]` of layer `i` without the bias into `y [B,H]`.
    pub(crate) fn rows(
        &self,
        (i, layer): (usize, &Dense),
        x: &[f32],
        y: &mut [f32],
        space: &mut HalfSpace,
    ) {
        let size = [y.len() / layer.outputs.max(1), layer.outputs, layer.inputs];
        self.half.pack(x, layer.inputs, Some(&mut space.rows), &mut space.inputs[i]);
        self.half.product(y, size, Left::Rows(&space.rows), &self.layers[i].forward, false);
    }

    /// After [`rows`](Self::rows), from the gradient `d [B,H]` of its result: that of the weight
    /// is added to `grad`, that of the input goes to `dx [B,I]`, if there is one.
    pub(crate) fn gradients(
        &self,
        (i, layer): (usize, &Dense),
        d: &[f32],
        grad: &mut [f32],
        dx: Option<&mut [f32]>,
        space: &mut HalfSpace,
    ) {
        let Dense { inputs, outputs, .. } = *layer;
        let rows = d.len() / outputs.max(1);
        let as_rows = dx.is_some().then_some(&mut space.rows[..]);
        self.half.pack(d, outputs, as_rows, &mut space.d);
        let to = &mut grad[layer.weight.clone()];
        let size = [outputs, inputs, rows];
        self.half.product(to, size, Left::Panels(&space.d), &space.inputs[i], true);
        if let Some(dx) = dx {
            let size = [rows, inputs, outputs];
            self.half.product(dx, size, Left::Rows(&space.rows), &self.layers[i].back, false);
        }
    }
}

impl HalfSpace {
    /// For blocks of up to `rows` rows.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(layers: &[Dense], rows: usize) -> Result<Self, MemoryError> {
        let most = |len: fn(usize, usize) -> usize, of: fn(&Dense) -> usize| {
            layers.iter().map(|l| len(rows, of(l))).max().unwrap_or(0)
        };
        let widest = |l: &Dense| l.inputs.max(l.outputs);
        let packed = |len: usize| zeroed("a block of rows", len);
        let inputs = layers.iter().map(|l| packed(panels_len(rows, l.inputs)));
        Ok(Self {
            rows: packed(most(rows_len, widest))?,
            inputs: inputs.collect::<Result<_, _>>()?,
            d: packed(most(panels_len, |l| l.outputs))?,
        })
    }
}
