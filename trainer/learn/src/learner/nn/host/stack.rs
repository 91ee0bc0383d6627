//! Layers forward and backward over blocks of rows, which stay in the processor's caches from
//! the first layer to the last and back.
//!
//! Parameters and gradients are flat slices; layers know where theirs lie. Nothing here
//! allocates but [`Stack::space`], and nothing knows of libtorch, so that any thread may run
//! it.

use super::half::{HalfSpace, HalfWeights};
use super::kernels::{NormWeights, Vectors};
use super::product::{Matrix, product};
use crate::learner::nn::activation::Activation;
use ostler_sim::memory::{MemoryError, zeroed};
use std::ops::Range;

/// Where a fully connected layer's parameters lie.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Weight `[H,I]`.
    pub weight: Range<usize>,
    /// Bias `[H]`.
    pub bias: Range<usize>,
    /// Inputs `I`.
    pub inputs: usize,
    /// Outputs `H`.
    pub outputs: usize,
}

/// Where a layer norm's parameters `[H]` lie.
#[derive(Debug, Clone)]
pub struct NormAt {
    /// Gain.
    pub gain: Range<usize>,
    /// Shift.
    pub shift: Range<usize>,
}

/// Hidden layers.
#[derive(Debug, Clone)]
pub struct Stack {
    /// First first.
    pub layers: Vec<Dense>,
    /// One behind each layer, or none at all.
    pub norms: Vec<NormAt>,
    /// The function behind each.
    pub activation: Activation,
    /// Add to a layer's result that of the one before, where both are as wide.
    pub residual: bool,
    /// Numbers of a row that comes in.
    pub inputs: usize,
}

/// Buffers of a [`Stack`] for so many rows.
#[derive(Debug)]
pub struct StackSpace {
    /// Results of the layers `[B,H]`.
    hidden: Vec<Vec<f32>>,
    /// Of the layers' norms: normalised numbers `[B,H]`, and scales `[B]`.
    normal: Vec<[Vec<f32>; 2]>,
    /// Gradients `[B,H]` of a layer's result and, in turn, of the one before.
    d: [Vec<f32>; 2],
    /// Of layers that add what is before them: results without it `[B,H]`, else empty.
    own: Vec<Vec<f32>>,
    /// The gradient `[B,H]` of such a result, to be added to that of the one before.
    kept: Vec<f32>,
    /// Factors of products in bfloat16.
    half: Option<HalfSpace>,
}

impl Dense {
    /// Rows `x [B,I]` without the bias into `y [B,H]`.
    pub(super) fn rows(&self, theta: &[f32], x: &[f32], y: &mut [f32]) {
        let rows = y.len() / self.outputs.max(1);
        let x = Matrix::rows(x, rows, self.inputs);
        let weight = Matrix::rows(&theta[self.weight.clone()], self.outputs, self.inputs);
        product(Matrix::rows(y, rows, self.outputs), x, weight.t(), false);
    }

    /// Gradients of the weight from input `x [B,I]` and the result's gradient `d [B,H]`, added.
    pub(super) fn weight_gradient(&self, x: &[f32], d: &[f32], grad: &mut [f32]) {
        let rows = d.len() / self.outputs.max(1);
        let d = Matrix::rows(d, rows, self.outputs);
        let to = &mut grad[self.weight.clone()];
        let to = Matrix::rows(to, self.outputs, self.inputs);
        product(to, d.t(), Matrix::rows(x, rows, self.inputs), true);
    }

    /// The gradient of the input from the result's `d [B,H]`, into `dx [B,I]` or added to it.
    pub(super) fn input_gradient(&self, theta: &[f32], d: &[f32], dx: &mut [f32], add: bool) {
        let rows = d.len() / self.outputs.max(1);
        let weight = Matrix::rows(&theta[self.weight.clone()], self.outputs, self.inputs);
        let d = Matrix::rows(d, rows, self.outputs);
        product(Matrix::rows(dx, rows, self.inputs), d, weight, add);
    }

    /// Rows `x [B,I]` into columns `y [H]`, one every `stride` numbers.
    pub fn columns(&self, theta: &[f32], x: &[f32], rows: usize, y: &mut [f32], stride: usize) {
        let bias = &theta[self.bias.clone()];
        for (column, bias) in y.chunks_exact_mut(stride).zip(bias) {
            column[..rows].fill(*bias);
        }
        let x = Matrix::rows(x, rows, self.inputs);
        let weight = Matrix::rows(&theta[self.weight.clone()], self.outputs, self.inputs);
        let y = Matrix::columns(y, rows, self.outputs, stride);
        product(y, x, weight.t(), true);
    }

    /// Gradients of the parameters, added, from input `x [B,I]` and the gradient of
    /// [`columns`](Self::columns)'s result, `d`.
    pub fn columns_backward(
        &self,
        vectors: Vectors,
        x: &[f32],
        (d, stride): (&[f32], usize),
        grad: &mut [f32],
    ) {
        let rows = x.len() / self.inputs.max(1);
        let to = &mut grad[self.weight.clone()];
        let to = Matrix::rows(to, self.outputs, self.inputs);
        let columns = Matrix::columns(d, rows, self.outputs, stride);
        product(to, columns.t(), Matrix::rows(x, rows, self.inputs), true);
        let bias = grad[self.bias.clone()].iter_mut();
        for (bias, column) in bias.zip(d.chunks_exact(stride)) {
            *bias += vectors.sum(&column[..rows]);
        }
    }

    /// The gradient of [`columns`](Self::columns)'s input into `dx [B,I]`, or added to it.
    pub fn columns_input(
        &self,
        theta: &[f32],
        (d, stride): (&[f32], usize),
        dx: &mut [f32],
        add: bool,
    ) {
        let rows = dx.len() / self.inputs.max(1);
        let weight = Matrix::rows(&theta[self.weight.clone()], self.outputs, self.inputs);
        let d = Matrix::columns(d, rows, self.outputs, stride);
        product(Matrix::rows(dx, rows, self.inputs), d, weight, add);
    }
}

impl Stack {
    /// Numbers of a row that comes out.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(self.inputs, |l| l.outputs)
    }

    /// Whether layer `i` adds the result of the one before to its own.
    pub fn adds(&self, i: usize) -> bool {
        let layer = &self.layers[i];
        self.residual && i > 0 && layer.inputs == layer.outputs
    }

    /// Buffers for blocks of up to `rows` rows; `half`: for products in bfloat16, too.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn space(&self, rows: usize, half: bool) -> Result<StackSpace, MemoryError> {
        let buffer = |width: usize| zeroed("a block of rows", width.saturating_mul(rows));
        let widest = self.layers.iter().map(|l| l.outputs).max().unwrap_or(0);
        let layers = || self.layers.iter().take(self.norms.len());
        Ok(StackSpace {
            hidden: self.layers.iter().map(|l| buffer(l.outputs)).collect::<Result<_, _>>()?,
            normal: layers()
                .map(|l| Ok([buffer(l.outputs)?, buffer(1)?]))
                .collect::<Result<_, MemoryError>>()?,
            d: [buffer(widest)?, buffer(widest)?],
            own: (0..self.layers.len())
                .map(|i| buffer(if self.adds(i) { self.layers[i].outputs } else { 0 }))
                .collect::<Result<_, _>>()?,
            kept: buffer(if self.residual { widest } else { 0 })?,
            half: half.then(|| HalfSpace::new(&self.layers, rows)).transpose()?,
        })
    }

    /// Rows `x [B,I]` through all layers; the result is [`StackSpace::output`]. With `half` of
    /// the present parameters products are of bfloat16.
    pub fn forward(
        &self,
        vectors: Vectors,
        (theta, half): (&[f32], Option<&HalfWeights>),
        x: &[f32],
        space: &mut StackSpace,
    ) {
        let rows = x.len() / self.inputs.max(1);
        for (i, layer) in self.layers.iter().enumerate() {
            let (before, from) = space.hidden.split_at_mut(i);
            let input = before.last().map_or(x, |h| &h[..rows * layer.inputs]);
            let sum = &mut from[0][..rows * layer.outputs];
            let y = match self.adds(i) {
                true => &mut space.own[i][..rows * layer.outputs],
                false => &mut *sum,
            };
            let bias = &theta[layer.bias.clone()];
            let own = &mut space.half;
            let product = |y: &mut [f32]| match (half, own) {
                (Some(half), Some(own)) => half.rows((i, layer), input, y, own),
                _ => layer.rows(theta, input, y),
            };
            match (self.norms.get(i), space.normal.get_mut(i)) {
                (Some(norm), Some([normal, scale])) => {
                    let normal = &mut normal[..rows * layer.outputs];
                    product(normal);
                    let weights = norm.weights(theta);
                    vectors.norm_forward(self.activation, bias, weights, [normal, scale, y]);
                }
                _ => {
                    product(y);
                    vectors.forward(self.activation, bias, y);
                }
            }
            if self.adds(i) {
                sum.copy_from_slice(input);
                vectors.add(sum, &space.own[i][..rows * layer.outputs]);
            }
        }
    }

    /// Gradients of all parameters are added to `grad`, from that of the output, which lies in
    /// [`StackSpace::ends`], after [`forward`](Self::forward) on the same rows. That of the
    /// input goes to `dx`, if there is one and a layer.
    pub fn backward(
        &self,
        vectors: Vectors,
        (theta, half): (&[f32], Option<&HalfWeights>),
        x: &[f32],
        space: &mut StackSpace,
        grad: &mut [f32],
        mut dx: Option<&mut [f32]>,
    ) {
        let rows = x.len() / self.inputs.max(1);
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let [d, d_before] = &mut space.d;
            let d = &mut d[..rows * layer.outputs];
            let mut y = &space.hidden[i][..rows * layer.outputs];
            if self.adds(i) {
                y = &space.own[i][..rows * layer.outputs];
                space.kept[..d.len()].copy_from_slice(d);
            }
            match (self.norms.get(i), space.normal.get(i)) {
                (Some(norm), Some([normal, scale])) => {
                    let [gain, shift, bias] = apart(grad, [&norm.gain, &norm.shift, &layer.bias]);
                    let inputs = [y, &normal[..d.len()], scale, norm.weights(theta).gain];
                    vectors.norm_backward(self.activation, inputs, d, [gain, shift, bias]);
                }
                _ => vectors.backward(self.activation, y, d, &mut grad[layer.bias.clone()]),
            }
            let before = i.checked_sub(1);
            let input = before.map_or(x, |before| &space.hidden[before][..rows * layer.inputs]);
            let mut to = match before {
                Some(_) => Some(&mut d_before[..rows * layer.inputs]),
                None => dx.as_deref_mut(),
            };
            match (half, &mut space.half) {
                (Some(half), Some(own)) => {
                    half.gradients((i, layer), d, grad, to.as_deref_mut(), own);
                }
                _ => {
                    layer.weight_gradient(input, d, grad);
                    if let Some(to) = &mut to {
                        layer.input_gradient(theta, d, to, false);
                    }
                }
            }
            if let Some(to) = to.filter(|_| self.adds(i)) {
                vectors.add(to, &space.kept[..d.len()]);
            }
            space.d.swap(0, 1);
        }
    }
}

impl NormAt {
    fn weights<'a>(&self, theta: &'a [f32]) -> NormWeights<'a> {
        NormWeights { gain: &theta[self.gain.clone()], shift: &theta[self.shift.clone()] }
    }
}

impl StackSpace {
    /// The stack's result for the rows `x`; without layers, `x` itself.
    pub fn output<'a>(&'a self, x: &'a [f32], rows: usize, width: usize) -> &'a [f32] {
        self.hidden.last().map_or(x, |h| &h[..rows * width])
    }

    /// The same, and where its gradient goes; nowhere without layers.
    pub fn ends<'a>(
        &'a mut self,
        x: &'a [f32],
        rows: usize,
        width: usize,
    ) -> (&'a [f32], Option<&'a mut [f32]>) {
        match self.hidden.last() {
            Some(h) => (&h[..rows * width], Some(&mut self.d[0][..rows * width])),
            None => (x, None),
        }
    }
}

/// Three ranges of `x` at once, which do not overlap.
fn apart<'a>(x: &'a mut [f32], ranges: [&Range<usize>; 3]) -> [&'a mut [f32]; 3] {
    x.get_disjoint_mut(ranges.map(Clone::clone)).expect("parameters lie apart")
}
