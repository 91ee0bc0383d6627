//! Actor and critic over a block of rows in the host's memory, forward and backward.
//!
//! The networks' outputs for a sample are kept in columns, samples side by side, as the loss
//! takes them in vectors; hidden layers are in rows.

use crate::learner::nn::host::Vectors;
use crate::learner::nn::host::half::{Half, HalfWeights};
use crate::learner::nn::host::recurrent::{GruAt, GruSpace};
use crate::learner::nn::host::stack::{Dense, Stack, StackSpace};
use ostler_sim::memory::{MemoryError, zeroed};
use std::ops::Range;

/// The networks, as places among all parameters.
#[derive(Debug)]
pub struct BlockNet {
    /// Unit of a recurrent actor: its hidden layers see the state beside the
    /// inputs.
    pub gru: Option<GruAt>,
    /// The actor's hidden layers.
    pub actor: Stack,
    /// Means or logits.
    pub head: Dense,
    /// Source of the standard deviation.
    pub std: BlockStd,
    /// The critic's hidden layers, if it has some of its own.
    pub critic: Option<Stack>,
    /// The value.
    pub value: Dense,
    /// Bounds of the standard deviation's logarithm.
    pub log_std_bounds: (f64, f64),
}

/// Source of the standard deviation.
#[derive(Debug)]
pub enum BlockStd {
    /// There is none.
    Categorical,
    /// A number for each entry of an action.
    Scalar(Range<usize>),
    /// A layer behind the actor's hidden ones.
    Head(Dense),
}

/// Buffers for a block of up to `stride` rows. Columns are that long each.
#[derive(Debug)]
pub struct BlockSpace {
    stride: usize,
    /// Inputs of the actor `[B,O]`.
    pub x_actor: Vec<f32>,
    /// Of a recurrent one.
    pub gru: Option<GruSpace>,
    /// Inputs of its hidden layers `[B,O+H]`, and their gradient.
    seen: [Vec<f32>; 2],
    /// Inputs of the critic `[B,O']`, where they differ.
    pub x_critic: Option<Vec<f32>>,
    /// Columns from the rollout `[F]`.
    pub packed: Vec<f32>,
    actor: StackSpace,
    critic: Option<StackSpace>,
    /// Means or logits: columns `[D]`.
    pub dist: Vec<f32>,
    raw_log_std: Vec<f32>,
    /// Logarithms of standard deviations: columns `[A]`, or a number for each.
    pub log_std: Vec<f32>,
    /// Values: one column.
    pub value: Vec<f32>,
    /// Gradient of `dist`.
    pub d_dist: Vec<f32>,
    /// Gradient of the logarithms, columns `[A]`.
    pub d_log_std: Vec<f32>,
    /// Gradient of `value`.
    pub d_value: Vec<f32>,
}

/// Weights of both networks' hidden layers for products in bfloat16. Those of the output
/// layers, a hundredth of all, are in float32, as is a recurrent unit.
#[derive(Debug)]
pub struct HalfNet {
    actor: HalfWeights,
    critic: Option<HalfWeights>,
}

/// Arguments of a pass.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// How to compute.
    pub vectors: Vectors,
    /// All parameters.
    pub theta: &'a [f32],
    /// The same for products in bfloat16, where it is to be these.
    pub half: Option<&'a HalfNet>,
    /// Rows of the block that are there.
    pub rows: usize,
    /// Sequences that they belong to, if the actor is recurrent: rows are step by step.
    pub sequences: usize,
    /// Whether the actor takes part; with a trunk that both share it always does.
    pub policy: bool,
}

impl BlockNet {
    /// Standard deviations of an action.
    fn stds(&self) -> usize {
        match self.std {
            BlockStd::Categorical => 0,
            _ => self.head.outputs,
        }
    }

    /// Numbers of an input of the actor.
    pub fn actor_inputs(&self) -> usize {
        let gru = self.gru.as_ref();
        gru.map_or(self.actor.inputs, |g| g.input.inputs)
    }

    /// Numbers of an input of the critic.
    pub fn critic_inputs(&self) -> usize {
        let critic = self.critic.as_ref();
        critic.map_or(self.actor_inputs(), |c| c.inputs)
    }

    /// Buffers for blocks of up to `stride` rows; `same`: the critic sees the actor's observations;
    /// `packed`: further columns of a sample; `half`: for products in bfloat16, too.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn space(
        &self,
        stride: usize,
        same: bool,
        packed: usize,
        half: bool,
    ) -> Result<BlockSpace, MemoryError> {
        let columns = |width: usize| zeroed("a block of samples", width.saturating_mul(stride));
        let (dists, stds) = (self.head.outputs, self.stds());
        Ok(BlockSpace {
            stride,
            x_actor: columns(self.actor_inputs())?,
            gru: self.gru.as_ref().map(|g| g.space(stride)).transpose()?,
            seen: match self.gru {
                Some(_) => [columns(self.actor.inputs)?, columns(self.actor.inputs)?],
                None => [Vec::new(), Vec::new()],
            },
            x_critic: match same {
                true => None,
                false => Some(columns(self.critic_inputs())?),
            },
            packed: columns(packed)?,
            actor: self.actor.space(stride, half)?,
            critic: match &self.critic {
                Some(critic) => Some(critic.space(stride, half)?),
                None => None,
            },
            dist: columns(dists)?,
            raw_log_std: match self.std {
                BlockStd::Head(_) => columns(stds)?,
                _ => Vec::new(),
            },
            log_std: match self.std {
                BlockStd::Head(_) => columns(stds)?,
                _ => zeroed("standard deviations", stds)?,
            },
            value: columns(1)?,
            d_dist: columns(dists)?,
            d_log_std: columns(stds)?,
            d_value: columns(1)?,
        })
    }

    /// Room for weights in bfloat16.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn half(&self, half: Half) -> Result<HalfNet, MemoryError> {
        let of = |stack: &Stack| HalfWeights::new(half, &stack.layers);
        Ok(HalfNet { actor: of(&self.actor)?, critic: self.critic.as_ref().map(of).transpose()? })
    }

    /// Takes the present weights in.
    pub fn pack(&self, theta: &[f32], half: &mut HalfNet) {
        half.actor.pack(&self.actor.layers, theta);
        if let (Some(critic), Some(half)) = (&self.critic, &mut half.critic) {
            half.pack(&critic.layers, theta);
        }
    }

    /// Both networks on the block's inputs.
    pub fn forward(&self, pass: Pass<'_>, space: &mut BlockSpace) {
        let Pass { vectors, theta, half, rows, sequences, policy } = pass;
        let stride = space.stride;
        let mut x = &space.x_actor[..rows * self.actor_inputs()];
        if let (Some(gru), Some(own)) = (&self.gru, &mut space.gru) {
            if policy || self.critic.is_none() {
                gru.forward(vectors, theta, x, sequences, own);
                let halves = (x, self.actor_inputs(), &own.after[..], gru.width());
                join(&mut space.seen[0], halves);
            }
            x = &space.seen[0][..rows * self.actor.inputs];
        }
        if policy || self.critic.is_none() {
            let params = (theta, half.map(|h| &h.actor));
            self.actor.forward(vectors, params, x, &mut space.actor);
            let features = space.actor.output(x, rows, self.actor.outputs());
            let dist = &mut space.dist;
            self.head.columns(theta, features, rows, dist, stride);
            match &self.std {
                BlockStd::Categorical => {}
                BlockStd::Scalar(place) => space.log_std.copy_from_slice(&theta[place.clone()]),
                BlockStd::Head(head) => {
                    let raw = &mut space.raw_log_std;
                    head.columns(theta, features, rows, raw, stride);
                    let (low, high) = self.log_std_bounds;
                    for (log_std, raw) in space.log_std.iter_mut().zip(&*raw) {
                        *log_std = raw.clamp(low as f32, high as f32);
                    }
                }
            }
        }
        let features = match (&self.critic, &mut space.critic) {
            (Some(critic), Some(hidden)) => {
                let x = space.x_critic.as_ref().unwrap_or(&space.x_actor);
                let x_critic = &x[..rows * critic.inputs];
                let params = (theta, half.and_then(|h| h.critic.as_ref()));
                critic.forward(vectors, params, x_critic, hidden);
                hidden.output(x_critic, rows, critic.outputs())
            }
            _ => space.actor.output(x, rows, self.actor.outputs()),
        };
        let value = &mut space.value;
        self.value.columns(theta, features, rows, value, stride);
    }

    /// Gradients of all parameters are added to `grad`, from `d_dist`, `d_log_std` and
    /// `d_value`, after [`forward`](Self::forward).
    pub fn backward(&self, pass: Pass<'_>, space: &mut BlockSpace, grad: &mut [f32]) {
        let Pass { vectors, theta, half, rows, sequences, policy } = pass;
        let inputs = &space.x_actor[..rows * self.actor_inputs()];
        let len = rows * self.actor.inputs;
        let [seen, d_seen] = &mut space.seen;
        let (x, mut d_x) = match &self.gru {
            Some(_) => (&seen[..len], Some(&mut d_seen[..len])),
            None => (inputs, None),
        };
        let d_value = (&space.d_value[..], space.stride);
        if policy || self.critic.is_none() {
            let (features, mut d) = space.actor.ends(x, rows, self.actor.outputs());
            // Without hidden layers the heads see it themselves.
            if d.is_none() {
                d = d_x.as_deref_mut();
            }
            let d_dist = (&space.d_dist[..], space.stride);
            self.head.columns_backward(vectors, features, d_dist, grad);
            if let Some(d) = &mut d {
                self.head.columns_input(theta, d_dist, d, false);
            }
            match &self.std {
                BlockStd::Categorical => {}
                BlockStd::Scalar(place) => {
                    let columns = space.d_log_std.chunks_exact(space.stride);
                    for (grad, column) in grad[place.clone()].iter_mut().zip(columns) {
                        *grad += vectors.sum(&column[..rows]);
                    }
                }
                BlockStd::Head(head) => {
                    stop_at_bounds(&space.raw_log_std, &mut space.d_log_std, self.log_std_bounds);
                    let d_log_std = (&space.d_log_std[..], space.stride);
                    head.columns_backward(vectors, features, d_log_std, grad);
                    if let Some(d) = &mut d {
                        head.columns_input(theta, d_log_std, d, true);
                    }
                }
            }
            if self.critic.is_none() {
                self.value.columns_backward(vectors, features, d_value, grad);
                if let Some(d) = &mut d {
                    self.value.columns_input(theta, d_value, d, true);
                }
            }
            let params = (theta, half.map(|h| &h.actor));
            self.actor.backward(vectors, params, x, &mut space.actor, grad, d_x);
            if let (Some(gru), Some(own)) = (&self.gru, &mut space.gru) {
                let d = d_seen[..len].chunks_exact(self.actor.inputs);
                for (to, d) in own.d.chunks_exact_mut(gru.width()).zip(d) {
                    to.copy_from_slice(&d[gru.input.inputs..]);
                }
                gru.backward(vectors, theta, inputs, sequences, own, grad);
            }
        }
        if let (Some(critic), Some(hidden)) = (&self.critic, &mut space.critic) {
            let x = space.x_critic.as_ref().unwrap_or(&space.x_actor);
            let x = &x[..rows * critic.inputs];
            let (features, d) = hidden.ends(x, rows, critic.outputs());
            self.value.columns_backward(vectors, features, d_value, grad);
            if let Some(d) = d {
                self.value.columns_input(theta, d_value, d, false);
            }
            let params = (theta, half.and_then(|h| h.critic.as_ref()));
            critic.backward(vectors, params, x, hidden, grad, None);
        }
    }
}

/// Rows of `a` and of `b`, so wide, side by side.
fn join(to: &mut [f32], (a, width_a, b, width_b): (&[f32], usize, &[f32], usize)) {
    let rows = a.chunks_exact(width_a).zip(b.chunks_exact(width_b));
    for (to, (a, b)) in to.chunks_exact_mut(width_a + width_b).zip(rows) {
        to[..width_a].copy_from_slice(a);
        to[width_a..].copy_from_slice(b);
    }
}

/// [`stop_at_bounds`](super::net::stop_at_bounds) in the host's memory.
fn stop_at_bounds(raw: &[f32], d: &mut [f32], (low, high): (f64, f64)) {
    for (raw, d) in raw.iter().zip(d) {
        let (raw, down) = (f64::from(*raw), *d > 0.0);
        if (raw <= low && down) || (raw >= high && *d < 0.0) {
            *d = 0.0;
        }
    }
}

impl BlockSpace {
    /// Length of a column.
    pub fn stride(&self) -> usize {
        self.stride
    }
}
