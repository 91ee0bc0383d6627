//! A whole network over a few rows at a time, which stay in the processor's nearest cache
//! from observation to action.
//!
//! Rows are the lanes of vectors: 32 rows lie side by side, one column of them after the
//! other, so that weights are read as they lie, each once per block and output, and sums
//! run over a layer's inputs in their order.

use super::kernels::{NormWeights, ROWS, Vectors};
use crate::learner::error::LearnError;
use crate::learner::nn::{Gru, Linear, Trunk};
use crate::learner::normalizer::FARTHEST;
use ostler_collector::Hidden;
use ostler_collector::memory::with_floats;
use ostler_sim::memory::zeroed;
use tch::{TchError, Tensor};

/// Shift and scale of inputs, `[I]` each: `(x - shift) * scale`.
type Norm<'a> = Option<(&'a [f32], &'a [f32])>;

/// Room for passes of one actor over any number of rows.
#[derive(Debug)]
pub struct ActorPass {
    pub(super) vectors: Vectors,
    /// Columns of a block: a layer's inputs and its outputs in turn; a GRU needs four.
    columns: [Vec<f32>; 4],
}

impl ActorPass {
    /// For an actor of this trunk and other layers; none where libtorch has to do it: parameters
    /// are on a device, or the processor is too old.
    ///
    /// # Errors
    /// No memory.
    pub fn new<'a>(
        trunk: &'a Trunk,
        others: impl IntoIterator<Item = &'a Linear>,
    ) -> Result<Option<Self>, LearnError> {
        let mut widest = 1;
        for layer in trunk.layers().iter().chain(others) {
            if layer.weights().is_none() {
                return Ok(None);
            }
            widest = widest.max(layer.inputs()).max(layer.outputs());
        }
        let vectors = Vectors::widest();
        let columns = || zeroed("a block of rows", widest.saturating_mul(ROWS));
        Ok(Some(Self { vectors, columns: [columns()?, columns()?, columns()?, columns()?] }))
    }

    /// Raw observations `x [B,O]`, shifted by the first and scaled by the second of `norm
    /// [O]`, through a step of a GRU, if there is one, and through the trunk, then through each
    /// of the heads into its tensor `[B,H]`. `false`, and nothing is done, where one of them
    /// is not on the host, has gaps or another size.
    ///
    /// # Errors
    /// Parameters lie elsewhere than they did.
    pub fn tensors<const HEADS: usize>(
        &mut self,
        x: &Tensor,
        norm: Option<[&Tensor; 2]>,
        (gru, trunk): (Option<(&Gru, Hidden<'_>)>, &Trunk),
        heads: [&Linear; HEADS],
        out: [&Tensor; HEADS],
    ) -> Result<bool, TchError> {
        let [shift, scale] = norm.unwrap_or([x; 2]);
        if let Some((gru, Hidden { before, after })) = gru {
            let pass = |numbers: [&[f32]; 4], [after]: [&mut [f32]; 1]| {
                let [x, shift, scale, before] = numbers;
                let norm = norm.map(|_| (shift, scale));
                self.remember(x, norm, gru, before, after)
            };
            // SAFETY: observations, statistics and hidden states are written before they come
            // here. The pass reads numbers and parameters, which are no results; it calls
            // nothing of libtorch's but for the parameters' addresses.
            let done = unsafe { with_floats([x, shift, scale, before], [after], pass) };
            if !done.unwrap_or(Ok(false))? {
                return Ok(false);
            }
        }
        let after = gru.map_or(x, |(_, hidden)| hidden.after);
        let pass = |numbers: [&[f32]; 4], out: [&mut [f32]; HEADS]| {
            let [x, shift, scale, after] = numbers;
            let norm = norm.map(|_| (shift, scale));
            let hidden = gru.map(|(gru, _)| (after, gru.width()));
            self.run((x, norm), hidden, trunk, heads, out)
        };
        // SAFETY: as above; the states were written by that pass.
        let done = unsafe { with_floats([x, shift, scale, after], out, pass) };
        done.unwrap_or(Ok(false))
    }

    /// [`tensors`](Self::tensors) into the first of `out` and, with a second head, the
    /// standard deviation's logarithm into the second and, held within `bounds`, into the third.
    ///
    /// # Errors
    /// Parameters lie elsewhere than they did.
    pub fn actor(
        &mut self,
        (x, norm): (&Tensor, Option<[&Tensor; 2]>),
        trunk: (Option<(&Gru, Hidden<'_>)>, &Trunk),
        (head, std_head): (&Linear, Option<&Linear>),
        (low, high): (f64, f64),
        [out, raw_log_std, log_std]: [&Tensor; 3],
    ) -> Result<bool, TchError> {
        let Some(std_head) = std_head else {
            return self.tensors(x, norm, trunk, [head], [out]);
        };
        let done = self.tensors(x, norm, trunk, [head, std_head], [out, raw_log_std])?;
        if done {
            let _ = raw_log_std.f_clamp_out(log_std, low, high)?;
        }
        Ok(done)
    }

    /// Rows `x [B,I]`, shifted by `norm.0 [I]` and scaled by `norm.1 [I]`, and beside them
    /// `hidden` ones and their width, through the hidden layers, then through each of `heads`
    /// into its `out [B,H]`.
    fn run<const HEADS: usize>(
        &mut self,
        (x, norm): (&[f32], Norm<'_>),
        hidden: Option<(&[f32], usize)>,
        trunk: &Trunk,
        heads: [&Linear; HEADS],
        mut out: [&mut [f32]; HEADS],
    ) -> Result<bool, TchError> {
        let (layers, function) = (trunk.layers(), trunk.activation());
        let Some(first) = layers.first().or(heads.first().copied()) else {
            return Ok(false);
        };
        let (states, width) = hidden.unwrap_or_default();
        let Some(inputs) = first.inputs().checked_sub(width) else {
            return Ok(false);
        };
        let count = x.len() / inputs.max(1);
        let fits = |(head, out): (&&Linear, &&mut [f32])| out.len() == count * head.outputs();
        let all = x.len() == count * inputs && states.len() == count * width;
        if !all || !heads.iter().zip(&out).all(fits) {
            return Ok(false);
        }
        for (block, rows) in x.chunks(ROWS * inputs.max(1)).enumerate() {
            let [from, to, ..] = &mut self.columns;
            load(rows, norm, inputs, from);
            let count = rows.len() / inputs.max(1);
            let states = &states[block * ROWS * width..][..count * width];
            load(states, None, width, &mut from[inputs * ROWS..]);
            let (mut from, mut to) = (from, to);
            for (i, linear) in layers.iter().enumerate() {
                layer(self.vectors, linear, from, to)?;
                let filled = &mut to[..linear.outputs() * ROWS];
                if let Some(norm) = trunk.norms().get(i) {
                    let [gain, shift] = norm.on_host()?.ok_or_else(not_here)?;
                    self.vectors.columns_norm(NormWeights { gain, shift }, filled);
                }
                self.vectors.activate(function, filled);
                if trunk.adds(i) {
                    self.vectors.add(filled, &from[..linear.outputs() * ROWS]);
                }
                std::mem::swap(&mut from, &mut to);
            }
            for (head, out) in heads.iter().zip(&mut out) {
                let width = head.outputs();
                layer(self.vectors, head, from, to)?;
                let out = &mut out[block * ROWS * width..][..count * width];
                for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                    for (out, column) in out.iter_mut().zip(to.chunks_exact(ROWS)) {
                        *out = column[row];
                    }
                }
            }
        }
        Ok(true)
    }
}

impl ActorPass {
    /// A step of a GRU from states `before [B,H]` with inputs `x [B,I]`, normalised.
    fn remember(
        &mut self,
        x: &[f32],
        norm: Norm<'_>,
        gru: &Gru,
        before: &[f32],
        after: &mut [f32],
    ) -> Result<bool, TchError> {
        let [input, hidden] = gru.layers();
        let (inputs, width) = (input.inputs(), gru.width());
        let count = x.len() / inputs.max(1);
        if x.len() != count * inputs || [before.len(), after.len()] != [count * width; 2] {
            return Ok(false);
        }
        let [numbers, states, of_input, of_hidden] = &mut self.columns;
        let blocks = x.chunks(ROWS * inputs.max(1));
        let states_of = before.chunks(ROWS * width).zip(after.chunks_mut(ROWS * width));
        for (x, (before, after)) in blocks.zip(states_of) {
            load(x, norm, inputs, numbers);
            load(before, None, width, states);
            layer(self.vectors, input, numbers, of_input)?;
            layer(self.vectors, hidden, states, of_hidden)?;
            let gates = 3 * width * ROWS;
            // The new states take the inputs' place.
            let next = &mut numbers[..width * ROWS];
            let out = [&mut of_input[..gates], &mut of_hidden[..gates], next];
            let states = &states[..width * ROWS];
            self.vectors.gru_forward(None, out, states, width * ROWS);
            for (row, out) in after.chunks_exact_mut(width).enumerate() {
                for (out, column) in out.iter_mut().zip(numbers.chunks_exact(ROWS)) {
                    *out = column[row];
                }
            }
        }
        Ok(true)
    }
}

/// Rows into columns, normalised. Columns of rows that are not there keep numbers of
/// earlier ones, which nobody reads.
fn load(rows: &[f32], norm: Norm<'_>, inputs: usize, columns: &mut [f32]) {
    for (row, x) in rows.chunks_exact(inputs.max(1)).enumerate() {
        let columns = columns.chunks_exact_mut(ROWS);
        match norm {
            None => columns.zip(x).for_each(|(column, x)| column[row] = *x),
            Some((shift, scale)) => {
                for ((column, x), (shift, scale)) in columns.zip(x).zip(shift.iter().zip(scale)) {
                    column[row] = ((x - shift) * scale).clamp(-FARTHEST, FARTHEST);
                }
            }
        }
    }
}

/// Columns `x [I]` into columns `y [H]` of [`ROWS`] each.
fn layer(vectors: Vectors, linear: &Linear, x: &[f32], y: &mut [f32]) -> Result<(), TchError> {
    let (weight, bias) = linear.weights().ok_or_else(not_here)?.get()?;
    vectors.columns_layer(weight, bias, x, y);
    Ok(())
}

fn not_here() -> TchError {
    TchError::Torch("parameters of a layer that are not in the host's memory".into())
}
