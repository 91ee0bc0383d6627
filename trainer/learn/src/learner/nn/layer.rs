//! Fully connected layers, forward and backward, into buffers that are there already.
//!
//! Shapes: `B` rows, `I` inputs, `H` outputs.

use super::host::stack::{Dense, Stack};
use super::host::{Vectors, Weights};
use super::norm::{LayerNormAt, LayerNormSpace};
use super::{LayerNorm, Layout, Params};
use crate::learner::error::LearnError;
use crate::learner::nn::activation::Activation;
use crate::learner::tensors::zeros;
use ostler_collector::memory::with_floats;
use tch::{Device, Kind, TchError, Tensor};

/// `y = x W' + b`, with views into the flat parameters and their gradient.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    weight_t: Tensor,
    bias: Tensor,
    d_weight: Tensor,
    d_bias: Tensor,
    /// The parameters again, where they lie on the host.
    host: Option<Weights>,
    dense: Dense,
}

/// Where a layer's parameters lie.
#[derive(Debug, Clone, Copy)]
pub struct LinearAt {
    /// Weight `[H,I]`.
    pub weight: usize,
    /// Bias `[H]`.
    pub bias: usize,
}

impl Linear {
    /// Adds a layer's parameters to a layout.
    pub fn declare(layout: &mut Layout, name: &str, inputs: i64, outputs: i64) -> LinearAt {
        LinearAt {
            weight: layout.add(format!("{name}.weight"), &[outputs, inputs]),
            bias: layout.add(format!("{name}.bias"), &[outputs]),
        }
    }

    /// The layer whose parameters lie there.
    pub fn new(params: &Params, at: LinearAt) -> Result<Self, TchError> {
        let (weight, bias) = (params.view(at.weight)?, params.view(at.bias)?);
        let (outputs, inputs) = weight.size2()?;
        Ok(Self {
            host: Weights::new(&weight, &bias),
            dense: Dense {
                weight: params.range(at.weight),
                bias: params.range(at.bias),
                inputs: inputs as usize,
                outputs: outputs as usize,
            },
            weight_t: weight.f_transpose(0, 1)?,
            weight,
            bias,
            d_weight: params.grad_view(at.weight)?,
            d_bias: params.grad_view(at.bias)?,
        })
    }

    /// Weight `[H,I]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// Bias `[H]`.
    pub fn bias(&self) -> &Tensor {
        &self.bias
    }

    /// Inputs `I`.
    pub fn inputs(&self) -> usize {
        self.dense.inputs
    }

    /// Outputs `H`.
    pub fn outputs(&self) -> usize {
        self.dense.outputs
    }

    /// Where its parameters lie among all.
    pub fn dense(&self) -> &Dense {
        &self.dense
    }

    /// The parameters as numbers, where they lie on the host.
    pub fn weights(&self) -> Option<&Weights> {
        self.host.as_ref()
    }

    /// `x [B,I]` into `y [B,H]`.
    pub fn forward(&self, x: &Tensor, y: &Tensor) -> Result<(), TchError> {
        let _ = self.bias.f_addmm_out(y, x, &self.weight_t)?;
        Ok(())
    }

    /// Gradients of the layer's parameters from its input `x [B,I]` and the gradient
    /// of its output, `dy [B,H]`.
    pub fn backward(&self, x: &Tensor, dy: &Tensor) -> Result<(), TchError> {
        let _ = dy.f_transpose(0, 1)?.f_mm_out(&self.d_weight, x)?;
        let _ = dy.f_sum_intlist_out(&self.d_bias, &[0i64][..], false, Kind::Float)?;
        Ok(())
    }

    /// Gradient of the layer's input, into `dx [B,I]`.
    pub fn backward_input(&self, dy: &Tensor, dx: &Tensor) -> Result<(), TchError> {
        let _ = dy.f_mm_out(dx, &self.weight)?;
        Ok(())
    }

    /// Gradient of `len` of the layer's inputs from the `from`th on, into `dx [B,len]`.
    pub fn backward_inputs(
        &self,
        dy: &Tensor,
        from: i64,
        len: i64,
        dx: &Tensor,
    ) -> Result<(), TchError> {
        let _ = dy.f_mm_out(dx, &self.weight.f_narrow(1, from, len)?)?;
        Ok(())
    }

    /// The same, added to `dx`.
    pub fn add_backward_input(&self, dy: &Tensor, dx: &Tensor) -> Result<(), TchError> {
        let _ = dx.f_addmm_out(dx, dy, &self.weight)?;
        Ok(())
    }
}

impl Activation {
    /// In place.
    fn forward(self, z: &Tensor) -> Result<(), TchError> {
        if let Some(vectors) = self.on_host(z) {
            let pass = |[]: [&[f32]; 0], [z]: [&mut [f32]; 1]| vectors.activate(self, z);
            // SAFETY: `z` was written by the layer before it; the pass is over plain numbers.
            if unsafe { with_floats([], [z], pass) }.is_some() {
                return Ok(());
            }
        }
        let _ = match self {
            Self::Elu => z.f_elu_out(z)?,
            Self::Relu => z.f_relu_out(z)?,
            Self::Tanh => z.f_tanh_out(z)?,
            Self::Silu => z.f_silu_out(z)?,
        };
        Ok(())
    }

    /// Vectors to pass over a tensor with, where that is quicker than libtorch.
    fn on_host(self, x: &Tensor) -> Option<Vectors> {
        // Where libtorch may use several threads, it does from 2^15 numbers on; its ELU
        // is so slow that two of them lose.
        let alone = match self {
            Self::Elu => 1 << 18,
            Self::Relu | Self::Tanh | Self::Silu => 1 << 15,
        };
        let small = || x.numel() <= alone || tch::get_num_threads() == 1;
        match x.device() {
            Device::Cpu if small() => Some(Vectors::widest()),
            _ => None,
        }
    }

    /// From the gradient `d` of the result `y` to that of the argument, in place. Derivatives
    /// are functions of the result, but SiLU's, whose `y` is the argument.
    fn backward(self, y: &Tensor, d: &Tensor) -> Result<(), TchError> {
        if let Some(vectors) = self.on_host(d) {
            let pass = |[y]: [&[f32]; 1], [d]: [&mut [f32]; 1]| vectors.slope(self, y, d);
            // SAFETY: results and their gradients were written by the passes before; this one
            // is over plain numbers.
            if unsafe { with_floats([y], [d], pass) }.is_some() {
                return Ok(());
            }
        }
        let _ = match self {
            Self::Elu => Tensor::f_elu_backward_grad_input(d, d, 1.0, 1.0, 1.0, true, y)?,
            Self::Relu => y.f_threshold_backward_grad_input(d, d, 0.0)?,
            Self::Tanh => Tensor::f_tanh_backward_grad_input(d, d, y)?,
            Self::Silu => y.f_silu_backward_grad_input(d, d)?,
        };
        Ok(())
    }
}

/// The hidden layers of a network, as a configuration has them.
#[derive(Debug, Clone, Copy)]
pub struct TrunkConfig<'a> {
    /// Widths of the layers.
    pub widths: &'a [i64],
    /// The function behind each.
    pub activation: Activation,
    /// Normalise the numbers of a layer before the function.
    pub layer_norm: bool,
    /// Add to a layer's result that of the one before, where both are as wide.
    pub residual: bool,
}

/// The hidden layers of a network.
#[derive(Debug)]
pub struct Trunk {
    layers: Vec<Linear>,
    /// One for each layer, or none at all.
    norms: Vec<LayerNorm>,
    widths: Vec<i64>,
    activation: Activation,
    residual: bool,
}

/// Where the parameters of a hidden layer lie.
#[derive(Debug, Clone, Copy)]
pub struct LayerAt {
    linear: LinearAt,
    norm: Option<LayerNormAt>,
}

/// Buffers for one pass of a [`Trunk`] over `B` rows.
#[derive(Debug)]
pub struct TrunkSpace {
    /// Results of the layers `[B,H]`.
    hidden: Vec<Tensor>,
    /// Gradients of them `[B,H]`; empty where no backward pass is wanted.
    d_hidden: Vec<Tensor>,
    /// Of layers that add what is before them: results without it, and gradients of these.
    own: Vec<Option<[Tensor; 2]>>,
    /// Of the layers' norms, where there are such.
    norms: Vec<LayerNormSpace>,
    /// Arguments of the function `[B,H]`, where its derivative needs them.
    arguments: Vec<Tensor>,
}

impl Trunk {
    /// Adds the parameters of these layers to a layout; returns where they lie and the width
    /// of the last.
    pub fn declare(
        layout: &mut Layout,
        name: &str,
        inputs: i64,
        config: TrunkConfig<'_>,
    ) -> (Vec<LayerAt>, i64) {
        let mut width = inputs;
        let at = config
            .widths
            .iter()
            .enumerate()
            .map(|(i, &w)| {
                let linear = Linear::declare(layout, &format!("{name}.{i}"), width, w);
                let norm = config
                    .layer_norm
                    .then(|| LayerNorm::declare(layout, &format!("{name}.{i}.norm"), w));
                width = w;
                LayerAt { linear, norm }
            })
            .collect();
        (at, width)
    }

    /// Layers whose parameters lie at `at`.
    pub fn new(params: &Params, at: &[LayerAt], config: TrunkConfig<'_>) -> Result<Self, TchError> {
        let norms = at.iter().filter_map(|a| a.norm);
        Ok(Self {
            layers: at.iter().map(|a| Linear::new(params, a.linear)).collect::<Result<_, _>>()?,
            norms: norms.map(|at| LayerNorm::new(params, at)).collect::<Result<_, _>>()?,
            widths: config.widths.to_vec(),
            activation: config.activation,
            residual: config.residual,
        })
    }

    /// The layers, first first.
    pub fn layers(&self) -> &[Linear] {
        &self.layers
    }

    /// Norms behind the layers: one for each, or none.
    pub fn norms(&self) -> &[LayerNorm] {
        &self.norms
    }

    /// The same layers for passes over blocks of rows of `inputs` numbers.
    pub fn stack(&self, inputs: usize) -> Stack {
        Stack {
            layers: self.layers.iter().map(|l| l.dense().clone()).collect(),
            norms: self.norms.iter().map(|n| n.place().clone()).collect(),
            activation: self.activation,
            residual: self.residual,
            inputs,
        }
    }

    /// Whether layer `i` adds the result of the one before to its own.
    pub fn adds(&self, i: usize) -> bool {
        self.residual && i > 0 && self.widths[i - 1] == self.widths[i]
    }

    /// The function behind each layer.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Allocates for `rows` rows.
    pub fn space(
        &self,
        rows: i64,
        backward: bool,
        device: Device,
    ) -> Result<TrunkSpace, LearnError> {
        let buffers = || {
            self.widths
                .iter()
                .map(|&w| zeros("hidden layers", &[rows, w], Kind::Float, device))
                .collect::<Result<Vec<_>, _>>()
        };
        let norms = self.norms.iter();
        let own = |(i, &w): (usize, &i64)| -> Result<_, LearnError> {
            let buffer = |rows: i64| zeros("hidden layers", &[rows, w], Kind::Float, device);
            Ok(match self.adds(i) {
                true => Some([buffer(rows)?, buffer(if backward { rows } else { 0 })?]),
                false => None,
            })
        };
        Ok(TrunkSpace {
            own: self.widths.iter().enumerate().map(own).collect::<Result<_, _>>()?,
            hidden: buffers()?,
            d_hidden: if backward { buffers()? } else { Vec::new() },
            arguments: match backward && self.activation == Activation::Silu {
                true => buffers()?,
                false => Vec::new(),
            },
            norms: norms.map(|n| n.space(rows, backward, device)).collect::<Result<_, _>>()?,
        })
    }

    /// `x [B,I]` through all layers; the result is [`TrunkSpace::output`].
    pub fn forward(&self, x: &Tensor, space: &TrunkSpace) -> Result<(), TchError> {
        let mut input = x;
        for (i, (layer, sum)) in self.layers.iter().zip(&space.hidden).enumerate() {
            let y = space.own[i].as_ref().map_or(sum, |[y, _]| y);
            match (self.norms.get(i), space.norms.get(i)) {
                (Some(norm), Some(own)) => {
                    layer.forward(input, &own.x)?;
                    norm.forward(own, y)?;
                }
                _ => layer.forward(input, y)?,
            }
            if let Some(z) = space.arguments.get(i) {
                z.shallow_clone().f_copy_(y)?;
            }
            self.activation.forward(y)?;
            if self.adds(i) {
                let _ = y.f_add_out(sum, input)?;
            }
            input = sum;
        }
        Ok(())
    }

    /// The gradient of layer `i`'s result before its norm and function, from that of its
    /// output; with those of the norm's parameters if `params`.
    fn through<'a>(
        &self,
        i: usize,
        space: &'a TrunkSpace,
        params: bool,
    ) -> Result<&'a Tensor, TchError> {
        let (y, d) = match &space.own[i] {
            Some([y, d]) => {
                d.shallow_clone().f_copy_(&space.d_hidden[i])?;
                (y, d)
            }
            None => (&space.hidden[i], &space.d_hidden[i]),
        };
        self.activation.backward(space.arguments.get(i).unwrap_or(y), d)?;
        match (self.norms.get(i), space.norms.get(i)) {
            (Some(norm), Some(own)) => {
                match params {
                    true => norm.backward(d, own)?,
                    false => norm.backward_input(d, own)?,
                }
                Ok(&own.d_x)
            }
            _ => Ok(d),
        }
    }

    /// Gradients of all parameters from that of the output, which lies in
    /// [`TrunkSpace::d_output`].
    pub fn backward(&self, x: &Tensor, space: &TrunkSpace) -> Result<(), TchError> {
        for i in (0..self.layers.len()).rev() {
            let d = self.through(i, space, true)?;
            if i > 0 {
                self.layers[i].backward(&space.hidden[i - 1], d)?;
                self.input_gradient(i, d, space)?;
            } else {
                self.layers[i].backward(x, d)?;
            }
        }
        Ok(())
    }

    /// Gradient of `len` inputs from the `from`th on, into `dx [B,len]`, from that of the
    /// output, which lies in [`TrunkSpace::d_output`]. Gradients of parameters stay as
    /// they are. There must be a layer.
    pub fn backward_inputs(
        &self,
        space: &TrunkSpace,
        from: i64,
        len: i64,
        dx: &Tensor,
    ) -> Result<(), TchError> {
        for i in (0..self.layers.len()).rev() {
            let d = self.through(i, space, false)?;
            match i {
                0 => self.layers[i].backward_inputs(d, from, len, dx)?,
                _ => self.input_gradient(i, d, space)?,
            }
        }
        Ok(())
    }

    /// The gradient of layer `i - 1`'s result, from that of layer `i` before its function.
    fn input_gradient(&self, i: usize, d: &Tensor, space: &TrunkSpace) -> Result<(), TchError> {
        let to = &space.d_hidden[i - 1];
        self.layers[i].backward_input(d, to)?;
        if self.adds(i) {
            let _ = to.shallow_clone().f_add_(&space.d_hidden[i])?;
        }
        Ok(())
    }
}

impl TrunkSpace {
    /// The trunk's result for `x`; without layers, `x` itself.
    pub fn output<'a>(&'a self, x: &'a Tensor) -> &'a Tensor {
        self.hidden.last().unwrap_or(x)
    }

    /// Where its gradient goes; none without layers.
    pub fn d_output(&self) -> Option<&Tensor> {
        self.d_hidden.last()
    }

    /// The first `rows` rows, sharing memory.
    pub fn narrow(&self, rows: i64) -> Result<Self, TchError> {
        let narrow =
            |v: &[Tensor]| v.iter().map(|t| t.f_narrow(0, 0, rows)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            hidden: narrow(&self.hidden)?,
            arguments: narrow(&self.arguments)?,
            d_hidden: narrow(&self.d_hidden)?,
            own: self
                .own
                .iter()
                .map(|own| match own {
                    Some([y, d]) => {
                        let d_rows = rows.min(d.size()[0]);
                        Ok(Some([y.f_narrow(0, 0, rows)?, d.f_narrow(0, 0, d_rows)?]))
                    }
                    None => Ok(None),
                })
                .collect::<Result<_, TchError>>()?,
            norms: self.norms.iter().map(|n| n.narrow(rows)).collect::<Result<_, _>>()?,
        })
    }
}
