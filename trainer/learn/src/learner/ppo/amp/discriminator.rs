//! The discriminator: hidden layers with ReLU, one output, and its gradients by hand.
//!
//! Source: amp-rsl-rl 2.2.3, `amp_rsl_rl/networks/discriminator.py`; skrl 2.1.1,
//! `skrl/agents/torch/amp/amp.py`, with the scales of its `amp_cfg.py`.

use super::AmpRecipe;
use crate::learner::error::LearnError;
use crate::learner::nn::{Layout, Linear, Params, init};
use tch::{Device, Kind, TchError, Tensor};

/// Decay of all parameters but the last layer's, added to their gradient, and of the last's:
/// amp-rsl-rl's.
const DECAYS: [f64; 2] = [1e-3, 1e-1];
/// skrl's `discriminator_weight_decay_scale`, `discriminator_logit_regularization_scale` and
/// `discriminator_loss_scale`: squares of all weights, of the last layer's, and the whole.
const SKRL: [f64; 3] = [1e-4, 0.05, 5.0];
/// The least probability of being the policy's that skrl's reward knows.
const LEAST: f64 = 1e-4;
/// First stream of the initial weights: those of the other networks are below.
const STREAM: u32 = 3 << 16;

/// The network.
#[derive(Debug)]
pub(super) struct Discriminator {
    pub(super) params: Params,
    /// All layers, the last with one output.
    layers: Vec<Linear>,
    /// Gradients of their weights `[H,I]`.
    d_weights: Vec<Tensor>,
    /// Parameters in front of the last layer's.
    front: i64,
}

/// What a step says beside its gradient; without dimensions.
pub(super) struct Said {
    /// Cross-entropy, the mean of both sides'.
    pub(super) loss: Tensor,
    /// The gradient's penalty.
    pub(super) penalty: Tensor,
    /// Mean probability of being the reference's that it gives the policy's transitions and the
    /// reference's.
    pub(super) scores: [Tensor; 2],
}

impl Discriminator {
    /// For inputs of `inputs` numbers.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn new(
        inputs: i64,
        widths: &[i64],
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let mut layout = Layout::default();
        let (mut at, mut width) = (Vec::new(), inputs);
        for (i, &next) in widths.iter().enumerate() {
            at.push(Linear::declare(&mut layout, &format!("discriminator.{i}"), width, next));
            width = next;
        }
        at.push(Linear::declare(&mut layout, "discriminator.out", width, 1));
        let params = Params::new(layout, device)?;
        let layers = at.iter().map(|&at| Linear::new(&params, at));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        for (layer, stream) in layers.iter().zip(STREAM..) {
            init::fan_in(layer, seed, stream)?;
        }
        let d_weights = at.iter().map(|at| params.grad_view(at.weight));
        Ok(Self {
            d_weights: d_weights.collect::<Result<_, _>>()?,
            front: params.len() - width - 1,
            layers,
            params,
        })
    }

    /// What all layers see of `x [B,I]`, the first `x` itself, and the output `[B,1]`.
    fn pass(&self, x: &Tensor) -> Result<(Vec<Tensor>, Tensor), TchError> {
        let (mut inputs, mut x) = (Vec::with_capacity(self.layers.len()), x.shallow_clone());
        for (i, layer) in self.layers.iter().enumerate() {
            let z = x.f_linear(layer.weight(), Some(layer.bias()))?;
            let y = if i + 1 < self.layers.len() { z.f_relu()? } else { z };
            inputs.push(std::mem::replace(&mut x, y));
        }
        Ok((inputs, x))
    }

    /// The reward for `x [B,I]`, `[B,1]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn reward(&self, x: &Tensor, recipe: AmpRecipe) -> Result<Tensor, TchError> {
        let style = self.judge(x)?.f_softplus()?;
        match recipe {
            AmpRecipe::AmpRslRl => Ok(style),
            // -ln(max(1 - sigmoid(z), LEAST)).
            AmpRecipe::Skrl => style.f_clamp_max(-LEAST.ln()),
        }
    }

    /// Its output for `x [B,I]`, `[B,1]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn judge(&self, x: &Tensor) -> Result<Tensor, TchError> {
        Ok(self.pass(x)?.1)
    }

    /// The gradient of the loss of the policy's transitions and as many of the reference's behind
    /// them, `x [2 B,I]`, with `weight [B,1]` for each of the policy's: cross-entropy, and
    /// `penalty / 2` times the squared gradient of the output with respect to the reference's, and
    /// the decay.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn gradient(
        &self,
        x: &Tensor,
        weight: &Tensor,
        (penalty, recipe): (f64, AmpRecipe),
    ) -> Result<Said, TchError> {
        let rows = weight.size2()?.0;
        let (inputs, out) = self.pass(x)?;
        let own = weight.f_div(&weight.f_sum(Kind::Float)?)?;
        let even = weight.f_full_like(1.0 / rows as f64)?;
        let share = Tensor::f_cat(&[&own, &even], 0)?.f_mul_scalar(0.5)?;
        let target = Tensor::f_cat(&[weight.f_zeros_like()?, weight.f_ones_like()?], 0)?;
        let likely = out.f_sigmoid()?;
        let loss = out.f_softplus()?.f_sub(&target.f_mul(&out)?)?;
        let loss = loss.f_mul(&share)?.f_sum(Kind::Float)?;
        let score = |weight: &Tensor, from: i64| {
            likely.f_narrow(0, from, rows)?.f_mul(weight)?.f_sum(Kind::Float)
        };
        let scores = [score(&own, 0)?, score(&even, rows)?];

        let mut d = likely.f_sub(&target)?.f_mul(&share)?;
        for (i, (layer, x)) in self.layers.iter().zip(&inputs).enumerate().rev() {
            layer.backward(x, &d)?;
            if i > 0 {
                d = d.f_mm(layer.weight())?.f_mul(&slope(x)?)?;
            }
        }
        let penalty = self.add_penalty(&inputs[1..], rows, penalty)?;
        self.add_decay(recipe)?;
        Ok(Said { loss, penalty, scores })
    }

    fn add_decay(&self, recipe: AmpRecipe) -> Result<(), TchError> {
        let (theta, grad) = (&self.params.theta, &self.params.grad);
        match recipe {
            AmpRecipe::AmpRslRl => {
                let last = self.params.len() - self.front;
                for (from, len, decay) in
                    [(0, self.front, DECAYS[0]), (self.front, last, DECAYS[1])]
                {
                    let theta = theta.f_narrow(0, from, len)?.f_mul_scalar(decay)?;
                    let _ = grad.f_narrow(0, from, len)?.f_add_(&theta)?;
                }
            }
            AmpRecipe::Skrl => {
                let [all, of_last, scale] = SKRL;
                for (i, (layer, d)) in self.layers.iter().zip(&self.d_weights).enumerate() {
                    let last = if i + 1 == self.layers.len() { of_last } else { 0.0 };
                    let decay = layer.weight().f_mul_scalar(2.0 * (all + last))?;
                    let _ = d.shallow_clone().f_add_(&decay)?;
                }
                let _ = grad.shallow_clone().f_mul_scalar_(scale)?;
            }
        }
        Ok(())
    }

    /// Adds the gradient of the penalty. The output's gradient is a product of weights, of which
    /// every factor but the slopes, 0 or 1, is one of the parameters: its own gradient goes
    /// through the same products forwards.
    /// `results`: the hidden layers'.
    fn add_penalty(&self, results: &[Tensor], rows: i64, penalty: f64) -> Result<Tensor, TchError> {
        let hidden = results.len();
        let slopes = results.iter().map(|h| slope(&h.f_narrow(0, rows, rows)?));
        let slopes = slopes.collect::<Result<Vec<_>, _>>()?;
        let head = self.layers[hidden].weight();
        // Of what stands before each layer's function `[B,H]`, the last layer first.
        let mut g = vec![slopes[hidden - 1].f_mul(head)?];
        for i in (1..hidden).rev() {
            let before = g[g.len() - 1].f_mm(self.layers[i].weight())?;
            g.push(before.f_mul(&slopes[i - 1])?);
        }
        g.reverse();
        let at_input = g[0].f_mm(self.layers[0].weight())?;
        let mean = penalty / rows as f64;
        let said = at_input.f_mul(&at_input)?.f_sum(Kind::Float)?.f_mul_scalar(0.5 * mean)?;
        let mut q = at_input.f_mul_scalar(mean)?;
        for (i, g) in g.iter().enumerate() {
            let _ = self.d_weights[i].shallow_clone().f_addmm_(&g.f_transpose(0, 1)?, &q)?;
            q = q.f_mm(&self.layers[i].weight().f_transpose(0, 1)?)?.f_mul(&slopes[i])?;
        }
        let sum = q.f_sum_dim_intlist(&[0i64][..], true, Kind::Float)?;
        let _ = self.d_weights[hidden].shallow_clone().f_add_(&sum)?;
        Ok(said)
    }
}

/// Derivative of ReLU from its result.
fn slope(result: &Tensor) -> Result<Tensor, TchError> {
    result.f_gt(0.0)?.f_to_kind(Kind::Float)
}
