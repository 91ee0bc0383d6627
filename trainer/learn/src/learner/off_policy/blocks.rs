//! FlashSAC's layers (`uni_rl/algos/flash_sac` of unilab-rl 1.4.15), forward and backward.
//!
//! Batch normalisation (Ioffe and Szegedy 2015) of the inputs, an embedding, residual blocks of
//! two layers with batch normalisation behind each, root mean square normalisation (Zhang and
//! Sennrich 2019). Rows of weights have length 1 after every step, gains and biases together
//! the root of their number.

use crate::learner::error::LearnError;
use crate::learner::nn::{Layout, Linear, Params, init};
use crate::learner::tensors::zeros;
use tch::{Device, Kind, TchError, Tensor};

/// Added to variances, as in PyTorch.
const NORM_EPS: f64 = 1e-5;
/// Added to mean squares.
const RMS_EPS: f64 = 1e-6;
/// Added to squares of lengths.
const LENGTH_EPS: f64 = 1e-8;
/// Share by which running statistics follow those of a batch.
const MOMENTUM: f64 = 0.01;
/// Width of a block's inner layer, in that of the block.
const EXPANSION: i64 = 4;

/// Where the parameters lie.
pub(super) struct BlocksAt {
    embedding: (NormAt, usize),
    blocks: Vec<[(usize, NormAt); 2]>,
    gain: usize,
}

/// Where those of a batch normalisation lie: gain, bias, running mean and variance.
#[derive(Clone, Copy)]
struct NormAt([usize; 4]);

/// FlashSAC's layers, `H` wide.
#[derive(Debug)]
pub(super) struct Blocks {
    embedding: (BatchNorm, Dense),
    blocks: Vec<[(Dense, BatchNorm); 2]>,
    /// Of the last normalisation `[H]`.
    gain: Tensor,
    d_gain: Tensor,
}

/// A layer without a bias: weight `[H,I]` and its gradient.
#[derive(Debug)]
struct Dense {
    weight: Tensor,
    d_weight: Tensor,
}

#[derive(Debug)]
struct BatchNorm {
    gain: Tensor,
    bias: Tensor,
    d_gain: Tensor,
    d_bias: Tensor,
    /// Mean and variance. They lie among the parameters, for whom acts needs them, and have
    /// no gradient.
    running: [Tensor; 2],
    d_running: [Tensor; 2],
}

/// Buffers of [`Blocks`] for `B` rows.
#[derive(Debug)]
pub(super) struct BlocksSpace {
    inputs: NormSpace,
    /// Results of the embedding and of the blocks `[B,H]`.
    hidden: Vec<Tensor>,
    blocks: Vec<[NormSpace; 2]>,
    /// One over the root of the mean square of the last `[B,1]`.
    scale: Tensor,
    pub(super) out: Tensor,
    pub(super) d_out: Tensor,
}

/// Of a normalisation: numbers before it and then normalised, result, and one over the
/// standard deviation.
#[derive(Debug)]
struct NormSpace {
    x: Tensor,
    y: Tensor,
    scale: Tensor,
}

impl Dense {
    fn new(params: &Params, at: usize) -> Result<Self, TchError> {
        Ok(Self { weight: params.view(at)?, d_weight: params.grad_view(at)? })
    }

    fn forward(&self, x: &Tensor, y: &Tensor) -> Result<(), TchError> {
        x.f_mm_out(y, &self.weight.f_transpose(0, 1)?).map(|_| ())
    }

    fn backward(&self, x: &Tensor, dy: &Tensor, params: bool) -> Result<Tensor, TchError> {
        if params {
            let _ = dy.f_transpose(0, 1)?.f_mm_out(&self.d_weight, x)?;
        }
        dy.f_mm(&self.weight)
    }
}

impl BatchNorm {
    fn new(params: &Params, NormAt([gain, bias, mean, var]): NormAt) -> Result<Self, TchError> {
        Ok(Self {
            gain: params.view(gain)?,
            bias: params.view(bias)?,
            d_gain: params.grad_view(gain)?,
            d_bias: params.grad_view(bias)?,
            running: [params.view(mean)?, params.view(var)?],
            d_running: [params.grad_view(mean)?, params.grad_view(var)?],
        })
    }

    fn space(&self, rows: i64, device: Device) -> Result<NormSpace, LearnError> {
        let width = self.gain.size()[0];
        let float = |rows: i64| zeros("batch norm", &[rows, width], Kind::Float, device);
        Ok(NormSpace { x: float(rows)?, y: float(rows)?, scale: float(1)? })
    }

    /// Of `x` into `space.y`.
    fn forward(&self, x: &Tensor, space: &NormSpace, learning: bool) -> Result<(), TchError> {
        let centred = match learning {
            true => {
                let mean = over_rows(x)?;
                let centred = x.f_sub(&mean)?;
                let var = over_rows(&centred.f_mul(&centred)?)?;
                let _ = var.f_add_scalar(NORM_EPS)?.f_rsqrt_out(&space.scale)?;
                let rows = x.size()[0].max(2) as f64;
                let now = [mean, var.f_mul_scalar(rows / (rows - 1.0))?];
                for (running, now) in self.running.iter().zip(&now) {
                    // What is not finite never gets here.
                    let next = running.f_lerp(&now.f_view([-1])?, MOMENTUM)?;
                    let next = next.f_where_self(&next.f_isfinite()?, running)?;
                    running.shallow_clone().f_copy_(&next)?;
                }
                centred
            }
            false => {
                let [mean, var] = &self.running;
                let scale = var.f_add_scalar(NORM_EPS)?.f_rsqrt()?;
                space.scale.shallow_clone().f_copy_(&scale)?;
                x.f_sub(mean)?
            }
        };
        let _ = centred.f_mul_out(&space.x, &space.scale)?;
        self.bias.f_addcmul(&space.x, &self.gain).and_then(|y| space.y.shallow_clone().f_copy_(&y))
    }

    /// The gradient of the argument from that of the result; with those of the parameters if
    /// `learning`.
    fn backward(&self, d: &Tensor, space: &NormSpace, learning: bool) -> Result<Tensor, TchError> {
        let factor = space.scale.f_mul(&self.gain)?;
        if !learning {
            return d.f_mul(&factor);
        }
        let along = d.f_mul(&space.x)?;
        let _ = along.f_sum_intlist_out(&self.d_gain, &[0i64][..], false, Kind::Float)?;
        let _ = d.f_sum_intlist_out(&self.d_bias, &[0i64][..], false, Kind::Float)?;
        self.d_running.iter().try_for_each(|d| d.shallow_clone().f_zero_().map(|_| ()))?;
        let rest = d.f_sub(&over_rows(d)?)?.f_sub(&space.x.f_mul(&over_rows(&along)?)?)?;
        rest.f_mul(&factor)
    }
}

fn over_rows(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_mean_dim(&[0i64][..], true, Kind::Float)
}

impl Blocks {
    /// Adds the parameters of an embedding and blocks to a layout; where they lie, and their
    /// width.
    pub(super) fn declare(
        layout: &mut Layout,
        name: &str,
        inputs: i64,
        widths: &[i64],
    ) -> (BlocksAt, i64) {
        let width = widths[0];
        let mut layer = |name: String, inputs: i64, outputs: i64| {
            layout.add(format!("{name}.weight"), &[outputs, inputs])
        };
        let inner = EXPANSION * width;
        let weights: Vec<[usize; 2]> = (1..widths.len())
            .map(|i| {
                let name = |part: &str| format!("{name}.{i}.{part}");
                [layer(name("in"), width, inner), layer(name("out"), inner, width)]
            })
            .collect();
        let embedding = layer(format!("{name}.0"), inputs, width);
        let mut norm = |name: String, width: i64| {
            let parts = ["weight", "bias", "running_mean", "running_var"];
            NormAt(parts.map(|part| layout.add(format!("{name}.{part}"), &[width])))
        };
        let embedding = (norm(format!("{name}.0.norm"), inputs), embedding);
        let blocks = weights.iter().zip(1..).map(|(&[a, b], i)| {
            let inside = norm(format!("{name}.{i}.in.norm"), inner);
            [(a, inside), (b, norm(format!("{name}.{i}.out.norm"), width))]
        });
        let blocks = blocks.collect();
        let gain = layout.add(format!("{name}.norm.weight"), &[width]);
        (BlocksAt { embedding, blocks, gain }, width)
    }

    pub(super) fn new(params: &Params, at: &BlocksAt) -> Result<Self, TchError> {
        let BlocksAt { embedding, blocks, gain } = at;
        let dense = |at: usize| Dense::new(params, at);
        let norm = |at: NormAt| BatchNorm::new(params, at);
        let block = |[(a, na), (b, nb)]: &[(usize, NormAt); 2]| {
            Ok([(dense(*a)?, norm(*na)?), (dense(*b)?, norm(*nb)?)])
        };
        Ok(Self {
            embedding: (norm(embedding.0)?, dense(embedding.1)?),
            blocks: blocks.iter().map(block).collect::<Result<_, TchError>>()?,
            gain: params.view(*gain)?,
            d_gain: params.grad_view(*gain)?,
        })
    }

    /// Initial weights, with streams from `first` on. How many layers that were.
    pub(super) fn init(&self, seed: u64, first: u32) -> Result<u32, TchError> {
        let mut count = 0;
        for dense in self.dense() {
            let (rows, cols) = dense.weight.size2()?;
            let weight = init::orthogonal(rows, cols, 1.0, seed, 2 * (first + count))?;
            dense.weight.shallow_clone().f_copy_(&weight)?;
            count += 1;
        }
        for norm in self.norms() {
            let _ = norm.gain.shallow_clone().f_fill_(1.0)?;
            let _ = norm.running[1].shallow_clone().f_fill_(1.0)?;
        }
        let _ = self.gain.shallow_clone().f_fill_(1.0)?;
        self.project(&[])?;
        Ok(count)
    }

    /// Weights are brought back to their lengths, with those of the `heads` behind them.
    pub(super) fn project(&self, heads: &[&Linear]) -> Result<(), TchError> {
        for weight in self.dense().map(|d| &d.weight).chain(heads.iter().map(|h| h.weight())) {
            let length = weight.f_norm_scalaropt_dim(2.0, &[-1i64][..], true)?;
            let _ = weight.shallow_clone().f_div_(&length.f_clamp_min(LENGTH_EPS)?)?;
        }
        let even = |parts: &[&Tensor]| -> Result<(), TchError> {
            let mut squares = parts[0].f_mul(parts[0])?.f_sum(Kind::Float)?;
            for part in &parts[1..] {
                squares = squares.f_add(&part.f_mul(part)?.f_sum(Kind::Float)?)?;
            }
            let length = (parts[0].numel() as f64).sqrt();
            let factor = squares.f_add_scalar(LENGTH_EPS)?.f_rsqrt()?.f_mul_scalar(length)?;
            parts.iter().try_for_each(|part| part.shallow_clone().f_mul_(&factor).map(|_| ()))
        };
        self.norms().try_for_each(|n| even(&[&n.gain, &n.bias]))?;
        even(&[&self.gain])
    }

    fn dense(&self) -> impl Iterator<Item = &Dense> {
        [&self.embedding.1].into_iter().chain(self.blocks.iter().flatten().map(|(d, _)| d))
    }

    fn norms(&self) -> impl Iterator<Item = &BatchNorm> {
        [&self.embedding.0].into_iter().chain(self.blocks.iter().flatten().map(|(_, n)| n))
    }

    pub(super) fn space(
        &self,
        rows: i64,
        backward: bool,
        device: Device,
    ) -> Result<BlocksSpace, LearnError> {
        let width = self.gain.size()[0];
        let buffer =
            |rows: i64, width: i64| zeros("hidden layers", &[rows, width], Kind::Float, device);
        let of_block = |[(_, a), (_, b)]: &[(Dense, BatchNorm); 2]| {
            Ok([a.space(rows, device)?, b.space(rows, device)?])
        };
        Ok(BlocksSpace {
            inputs: self.embedding.0.space(rows, device)?,
            hidden: (0..=self.blocks.len())
                .map(|_| buffer(rows, width))
                .collect::<Result<_, LearnError>>()?,
            blocks: self.blocks.iter().map(of_block).collect::<Result<_, LearnError>>()?,
            scale: buffer(rows, 1)?,
            out: buffer(rows, width)?,
            d_out: buffer(if backward { rows } else { 0 }, width)?,
        })
    }

    pub(super) fn forward(
        &self,
        x: &Tensor,
        space: &BlocksSpace,
        learning: bool,
    ) -> Result<(), TchError> {
        let (norm, embedding) = &self.embedding;
        norm.forward(x, &space.inputs, learning)?;
        embedding.forward(&space.inputs.y, &space.hidden[0])?;
        for (i, (block, own)) in self.blocks.iter().zip(&space.blocks).enumerate() {
            let mut input = &space.hidden[i];
            for ((dense, norm), own) in block.iter().zip(own) {
                dense.forward(input, &own.x)?;
                norm.forward(&own.x, own, learning)?;
                let _ = own.y.shallow_clone().f_relu_()?;
                input = &own.y;
            }
            let _ = input.f_add_out(&space.hidden[i + 1], &space.hidden[i])?;
        }
        let last = &space.hidden[self.blocks.len()];
        let squares = last.f_mul(last)?.f_mean_dim(&[1i64][..], true, Kind::Float)?;
        let _ = squares.f_add_scalar(RMS_EPS)?.f_rsqrt_out(&space.scale)?;
        last.f_mul(&space.scale)?.f_mul_out(&space.out, &self.gain).map(|_| ())
    }

    pub(super) fn backward(&self, space: &BlocksSpace) -> Result<(), TchError> {
        self.backward_through(space, true).map(|_| ())
    }

    /// The gradient of `x`; with those of the parameters if `learning`.
    pub(super) fn backward_through(
        &self,
        space: &BlocksSpace,
        learning: bool,
    ) -> Result<Tensor, TchError> {
        let even = space.hidden[self.blocks.len()].f_mul(&space.scale)?;
        if learning {
            let d = space.d_out.f_mul(&even)?;
            let _ = d.f_sum_intlist_out(&self.d_gain, &[0i64][..], false, Kind::Float)?;
        }
        let d = space.d_out.f_mul(&self.gain)?;
        let along = d.f_mul(&even)?.f_mean_dim(&[1i64][..], true, Kind::Float)?;
        let mut d = d.f_sub(&even.f_mul(&along)?)?.f_mul(&space.scale)?;
        for (i, (block, own)) in self.blocks.iter().zip(&space.blocks).enumerate().rev() {
            let mut inner = d.shallow_clone();
            for k in [1, 0] {
                let ((dense, norm), own) = (&block[k], &own[k]);
                let of_norm = own.y.f_threshold_backward(&inner, 0.0)?;
                let of_dense = norm.backward(&of_norm, own, learning)?;
                let input = if k == 0 { &space.hidden[i] } else { &space.blocks[i][0].y };
                inner = dense.backward(input, &of_dense, learning)?;
            }
            d = d.f_add(&inner)?;
        }
        let (norm, embedding) = &self.embedding;
        let d = embedding.backward(&space.inputs.y, &d, learning)?;
        norm.backward(&d, &space.inputs, learning)
    }
}
