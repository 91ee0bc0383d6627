//! A GRU forward and backward over blocks of sequences.
//!
//! A block has `S` steps of `B` sequences, step by step: row `t B + b` is step `t` of sequence
//! `b`. `I` inputs, `H` hidden numbers. The backward pass goes through all steps of a sequence
//! and stops where an episode began.

use super::kernels::Vectors;
use super::stack::Dense;
use ostler_sim::memory::{MemoryError, zeroed};

/// Where a GRU's parameters lie: rows of the weights are gates `r`, `z`, `n`.
#[derive(Debug, Clone)]
pub struct GruAt {
    /// Of the input `[3H,I]`.
    pub input: Dense,
    /// Of the hidden state `[3H,H]`.
    pub hidden: Dense,
}

/// Buffers for a block.
#[derive(Debug)]
pub struct GruSpace {
    /// Hidden states before each step `[S B,H]`; the first step's are given.
    pub before: Vec<f32>,
    /// 0 for rows that begin an episode, else 1 `[S B]`; the first step's do not count.
    pub keep: Vec<f32>,
    /// Hidden states after each step `[S B,H]`: the result.
    pub after: Vec<f32>,
    /// Gradient of `after`, to be given.
    pub d: Vec<f32>,
    /// Products with the inputs and with the hidden states `[S B,3H]`.
    products: [Vec<f32>; 2],
}

impl GruAt {
    /// Hidden numbers.
    pub fn width(&self) -> usize {
        self.hidden.inputs
    }

    /// Buffers for blocks of up to `rows` rows.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn space(&self, rows: usize) -> Result<GruSpace, MemoryError> {
        let buffer = |width: usize| zeroed("a block of sequences", width.saturating_mul(rows));
        let h = self.width();
        Ok(GruSpace {
            before: buffer(h)?,
            keep: buffer(1)?,
            after: buffer(h)?,
            d: buffer(h)?,
            products: [buffer(3 * h)?, buffer(3 * h)?],
        })
    }

    /// Steps of `sequences` sequences with inputs `x [S B,I]`.
    pub fn forward(
        &self,
        vectors: Vectors,
        theta: &[f32],
        x: &[f32],
        sequences: usize,
        space: &mut GruSpace,
    ) {
        let (h, rows) = (self.width(), x.len() / self.input.inputs.max(1));
        let [of_input, of_hidden] = &mut space.products;
        self.input.rows(theta, x, &mut of_input[..3 * h * rows]);
        let biases = [&self.input, &self.hidden].map(|d| &theta[d.bias.clone()]);
        for from in (0..rows).step_by(sequences.max(1)) {
            let step = from * h..(from + sequences) * h;
            let wide = 3 * step.start..3 * step.end;
            let before = &mut space.before;
            if from > 0 {
                let last = &space.after[(from - sequences) * h..from * h];
                before[step.clone()].copy_from_slice(last);
                clear(&mut before[step.clone()], &space.keep[from..from + sequences]);
            }
            let y = &mut of_hidden[wide.clone()];
            self.hidden.rows(theta, &before[step.clone()], y);
            let out = [&mut of_input[wide], y, &mut space.after[step.clone()]];
            vectors.gru_forward(Some(biases), out, &before[step], h);
        }
    }

    /// Gradients of all parameters are added to `grad`, from that of the result, which is
    /// written over, after [`forward`](Self::forward) on the same rows.
    pub fn backward(
        &self,
        vectors: Vectors,
        theta: &[f32],
        x: &[f32],
        sequences: usize,
        space: &mut GruSpace,
        grad: &mut [f32],
    ) {
        let (h, rows) = (self.width(), x.len() / self.input.inputs.max(1));
        let [of_input, of_hidden] = &mut space.products;
        for from in (0..rows).step_by(sequences.max(1)).rev() {
            let step = from * h..(from + sequences) * h;
            let wide = 3 * step.start..3 * step.end;
            let (earlier, d) = space.d.split_at_mut(step.start);
            let d = &mut d[..sequences * h];
            let y = &mut of_hidden[wide.clone()];
            let both = [&mut of_input[wide], &mut *y, &mut *d];
            vectors.gru_backward(both, &space.before[step.clone()], h);
            if from > 0 {
                self.hidden.input_gradient(theta, y, d, true);
                clear(d, &space.keep[from..from + sequences]);
                vectors.add(&mut earlier[step.start - sequences * h..], d);
            }
        }
        let of_input = &of_input[..3 * h * rows];
        let of_hidden = &of_hidden[..3 * h * rows];
        let before = &space.before[..h * rows];
        for (dense, x, d) in [(&self.input, x, of_input), (&self.hidden, before, of_hidden)] {
            dense.weight_gradient(x, d, grad);
            vectors.sum_rows(d, &mut grad[dense.bias.clone()]);
        }
    }
}

/// Zeros in rows `[B,H]` whose `keep` is 0, whatever they hold.
fn clear(rows: &mut [f32], keep: &[f32]) {
    let width = (rows.len() / keep.len().max(1)).max(1);
    for (row, keep) in rows.chunks_exact_mut(width).zip(keep) {
        if *keep == 0.0 {
            row.fill(0.0);
        }
    }
}
