//! A whole network over a few rows at a time, which stay in the processor's nearest cache
//! from observation to action.
//!
//! Rows are the lanes of vectors: 32 rows lie side by side, one column of them after the
//! other, so that weights are read as they lie, each once per block and output, and sums
//! run over a layer's inputs in their order.

use super::lanes::{Eight, Lanes, Sixteen};
use super::{Vectors, activation};
use crate::learner::LearnError;
use crate::learner::nn::{LayerNorm, Linear, Trunk, norm};
use crate::learner::normalizer::FARTHEST;
use ostler_collector::memory::{HostRows, with_floats};
use ostler_sim::memory::zeroed;
use tch::{TchError, Tensor};

/// Rows of a block: two vectors of sixteen, or twice two of eight.
const ROWS: usize = 32;

/// A layer's parameters in the host's memory, to read.
#[derive(Debug)]
pub struct Weights {
    weight: HostRows<f32>,
    bias: HostRows<f32>,
}

impl Weights {
    /// Of weight `[H,I]` and bias `[H]`; none where they lie on a device.
    pub fn new(weight: &Tensor, bias: &Tensor) -> Option<Self> {
        // SAFETY: parameters have initial values. They are read here alone, in passes that call
        // nothing of libtorch's but for addresses, so that no step of the optimiser and no
        // load is under way in this thread; another thread has parameters of its own.
        unsafe {
            Some(Self {
                weight: HostRows::new(weight).ok()?,
                bias: HostRows::new(bias).ok()?,
            })
        }
    }

    fn get(&self) -> Result<(&[f32], &[f32]), TchError> {
        let moved = |e: ostler_collector::CollectError| TchError::Torch(e.to_string());
        Ok((
            self.weight.all().map_err(moved)?,
            self.bias.all().map_err(moved)?,
        ))
    }
}

/// Room for passes of one actor over any number of rows.
#[derive(Debug)]
pub struct ActorPass {
    pub(super) vectors: Vectors,
    /// Columns of a block: a layer's inputs and its outputs in turn.
    columns: [Vec<f32>; 2],
}

impl ActorPass {
    /// For an actor of these layers; none where libtorch has to do it: parameters are on
    /// a device, or the processor is too old.
    ///
    /// # Errors
    /// No memory.
    pub fn new<'a>(
        trunk: &'a Trunk,
        heads: impl IntoIterator<Item = &'a Linear>,
    ) -> Result<Option<Self>, LearnError> {
        let mut widest = 1;
        for layer in trunk.layers().iter().chain(heads) {
            if layer.weights().is_none() {
                return Ok(None);
            }
            widest = widest.max(layer.inputs()).max(layer.outputs());
        }
        let Some(vectors) = Vectors::widest() else {
            return Ok(None);
        };
        let columns = || zeroed("a block of rows", widest.saturating_mul(ROWS));
        Ok(Some(Self {
            vectors,
            columns: [columns()?, columns()?],
        }))
    }

    /// Raw observations `x [B,O]`, shifted by the first and scaled by the second of `norm
    /// [O]`, through the trunk, then through each of the heads into its tensor `[B,H]`.
    /// `false`, and nothing is done, where one of them is not on the host, has gaps or
    /// another size.
    ///
    /// # Errors
    /// Parameters lie elsewhere than they did.
    pub fn tensors<const HEADS: usize>(
        &mut self,
        x: &Tensor,
        norm: Option<[&Tensor; 2]>,
        trunk: &Trunk,
        heads: [&Linear; HEADS],
        out: [&Tensor; HEADS],
    ) -> Result<bool, TchError> {
        let [shift, scale] = norm.unwrap_or([x; 2]);
        let pass = |[x, shift, scale]: [&[f32]; 3], out: [&mut [f32]; HEADS]| {
            let norm = norm.map(|_| (shift, scale));
            self.run(x, norm, trunk, heads, out)
        };
        // SAFETY: observations, statistics and results are written before they come here. The
        // pass reads numbers and parameters, which are no results; it calls nothing of
        // libtorch's but for the parameters' addresses.
        let done = unsafe { with_floats([x, shift, scale], out, pass) };
        done.unwrap_or(Ok(false))
    }

    /// [`tensors`](Self::tensors) into the first of `out` and, with a second head, the
    /// deviation's logarithm into the second and, held within `bounds`, into the third.
    ///
    /// # Errors
    /// Parameters lie elsewhere than they did.
    pub fn actor(
        &mut self,
        (x, norm): (&Tensor, Option<[&Tensor; 2]>),
        trunk: &Trunk,
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

    /// Rows `x [B,I]`, shifted by `norm.0 [I]` and scaled by `norm.1 [I]`, through the hidden
    /// layers, then through each of `heads` into its
    /// `out [B,H]`.
    fn run<const HEADS: usize>(
        &mut self,
        x: &[f32],
        norm: Option<(&[f32], &[f32])>,
        trunk: &Trunk,
        heads: [&Linear; HEADS],
        mut out: [&mut [f32]; HEADS],
    ) -> Result<bool, TchError> {
        let (hidden, function) = (trunk.layers(), trunk.activation());
        let Some(first) = hidden.first().or(heads.first().copied()) else {
            return Ok(false);
        };
        let inputs = first.inputs();
        let count = x.len() / inputs.max(1);
        let fits = |(head, out): (&&Linear, &&mut [f32])| out.len() == count * head.outputs();
        if x.len() != count * inputs || !heads.iter().zip(&out).all(fits) {
            return Ok(false);
        }
        for (block, rows) in x.chunks(ROWS * inputs.max(1)).enumerate() {
            let [from, to] = &mut self.columns;
            load(rows, norm, inputs, from);
            let (mut from, mut to) = (from, to);
            for (i, linear) in hidden.iter().enumerate() {
                layer(self.vectors, linear, from, to)?;
                let filled = linear.outputs() * ROWS;
                if let Some(norm) = trunk.norms().get(i) {
                    layer_norm(norm, &mut to[..filled])?;
                }
                activation::forward(self.vectors, function, &mut to[..filled]);
                std::mem::swap(&mut from, &mut to);
            }
            let count = rows.len() / inputs.max(1);
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

/// Rows into columns, normalised. Columns of rows that are not there keep numbers of
/// earlier ones, which nobody reads.
fn load(rows: &[f32], norm: Option<(&[f32], &[f32])>, inputs: usize, columns: &mut [f32]) {
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

/// Each row of columns `x [H]` of [`ROWS`] normalised, with the norm's gain and bias.
fn layer_norm(norm: &LayerNorm, x: &mut [f32]) -> Result<(), TchError> {
    let Some([gain, bias]) = norm.on_host()? else {
        return Err(not_here());
    };
    let share = 1.0 / gain.len().max(1) as f32;
    let mut mean = [0.0_f32; ROWS];
    for column in x.chunks_exact(ROWS) {
        mean.iter_mut()
            .zip(column)
            .for_each(|(m, x)| *m += x * share);
    }
    let mut scale = [0.0_f32; ROWS];
    for column in x.chunks_exact(ROWS) {
        let centred = column.iter().zip(&mean).map(|(x, m)| x - m);
        scale
            .iter_mut()
            .zip(centred)
            .for_each(|(s, x)| *s += x * x * share);
    }
    for s in &mut scale {
        *s = 1.0 / (*s + norm::EPS as f32).sqrt();
    }
    for (column, (gain, bias)) in x.chunks_exact_mut(ROWS).zip(gain.iter().zip(bias)) {
        for (x, (m, s)) in column.iter_mut().zip(mean.iter().zip(&scale)) {
            *x = (*x - m) * s * gain + bias;
        }
    }
    Ok(())
}

fn not_here() -> TchError {
    TchError::Torch("parameters of a layer that are not in the host's memory".into())
}

/// Columns `x [I]` into columns `y [H]` of [`ROWS`] each.
fn layer(vectors: Vectors, linear: &Linear, x: &[f32], y: &mut [f32]) -> Result<(), TchError> {
    let weights = linear.weights().ok_or_else(not_here)?;
    let (weight, bias) = weights.get()?;
    let inputs = linear.inputs();
    assert!(weight.len() == bias.len() * inputs);
    assert!(x.len() >= inputs.max(1) * ROWS && y.len() >= bias.len() * ROWS);
    match vectors {
        // SAFETY: a value of `Vectors` says what the processor has; the lengths are right.
        Vectors::Eight => unsafe { layer_8((weight, bias), inputs, x, y) },
        // SAFETY: as above.
        Vectors::Sixteen => unsafe { layer_16((weight, bias), inputs, x, y) },
    }
    Ok(())
}

/// # Safety
/// `x` has `inputs` columns and at least one, `y` as many as there are biases, and each bias has `inputs`
/// weights.
#[target_feature(enable = "avx2,fma")]
unsafe fn layer_8(weights: (&[f32], &[f32]), inputs: usize, x: &[f32], y: &mut [f32]) {
    // SAFETY: enabled here; the rest is the caller's.
    unsafe { outputs::<Eight, { Eight::OUTPUTS }>(weights, inputs, x, y) }
}

/// # Safety
/// As for [`layer_8`].
#[target_feature(enable = "avx512f")]
unsafe fn layer_16(weights: (&[f32], &[f32]), inputs: usize, x: &[f32], y: &mut [f32]) {
    // SAFETY: enabled here; the rest is the caller's.
    unsafe { outputs::<Sixteen, { Sixteen::OUTPUTS }>(weights, inputs, x, y) }
}

/// `OUTPUTS` outputs at a time, then one at a time.
///
/// # Safety
/// As for [`layer_8`]; the processor has the instructions of `V`.
#[inline(always)]
unsafe fn outputs<V: Lanes, const OUTPUTS: usize>(
    (weight, bias): (&[f32], &[f32]),
    inputs: usize,
    x: &[f32],
    y: &mut [f32],
) {
    for part in (0..ROWS).step_by(2 * V::N) {
        let mut at = 0;
        while at < bias.len() {
            // SAFETY: of outputs there are still as many as are computed; two vectors of
            // rows from `part` on lie within a column.
            unsafe {
                let w = weight.as_ptr().add(at * inputs);
                let b = bias.as_ptr().add(at);
                let x = x.as_ptr().add(part);
                let y = y.as_mut_ptr().add(at * ROWS + part);
                if at + OUTPUTS <= bias.len() {
                    tile::<V, OUTPUTS>(w, b, inputs, x, y);
                    at += OUTPUTS;
                } else {
                    tile::<V, 1>(w, b, inputs, x, y);
                    at += 1;
                }
            }
        }
    }
}

/// Outputs `0..OUTPUTS` for two vectors of rows: `y = b + w x`.
///
/// # Safety
/// From the pointers on lie `OUTPUTS` rows of `inputs` weights, `OUTPUTS` biases, `inputs`
/// columns `x` and `OUTPUTS` columns `y`, which do not overlap; the processor has the
/// instructions of `V`.
#[allow(
    clippy::needless_range_loop,
    reason = "loops that are unrolled without full optimisation, too"
)]
#[inline(always)]
unsafe fn tile<V: Lanes, const OUTPUTS: usize>(
    w: *const f32,
    b: *const f32,
    inputs: usize,
    x: *const f32,
    y: *mut f32,
) {
    // SAFETY: all offsets are within what the caller promises; a column is ROWS long.
    unsafe {
        let some = V::load(x);
        let mut sums = [[some; 2]; OUTPUTS];
        for o in 0..OUTPUTS {
            sums[o] = [some.all(*b.add(o)); 2];
        }
        for i in 0..inputs {
            let low = V::load(x.add(i * ROWS));
            let high = V::load(x.add(i * ROWS + V::N));
            for o in 0..OUTPUTS {
                let w = some.all(*w.add(o * inputs + i));
                sums[o] = [w.fma(low, sums[o][0]), w.fma(high, sums[o][1])];
            }
        }
        for o in 0..OUTPUTS {
            sums[o][0].store(y.add(o * ROWS));
            sums[o][1].store(y.add(o * ROWS + V::N));
        }
    }
}
