//! The hidden layers of an actor or a critic: a trunk as PPO's, or FlashSAC's blocks, forward
//! and backward.

use super::blocks::{Blocks, BlocksAt, BlocksSpace};
use crate::learner::error::LearnError;
use crate::learner::nn::layer::LayerAt;
use crate::learner::nn::{Layout, Linear, Params, Trunk, TrunkConfig, TrunkSpace, init};
use tch::{Device, TchError, Tensor};

/// Where the parameters of a body lie.
pub(super) enum BodyAt {
    Trunk(Vec<LayerAt>),
    Blocks(BlocksAt),
}

/// Hidden layers.
#[derive(Debug)]
pub(super) enum Body {
    Trunk(Trunk),
    Blocks(Blocks),
}

/// Buffers of one pass.
#[derive(Debug)]
pub(super) enum BodySpace {
    Trunk(TrunkSpace),
    Blocks(BlocksSpace),
}

impl Body {
    /// Adds the parameters to a layout; where they lie, and the width of the last layer.
    pub(super) fn declare(
        layout: &mut Layout,
        name: &str,
        inputs: i64,
        (config, flash): (TrunkConfig<'_>, bool),
    ) -> (BodyAt, i64) {
        if flash && !config.widths.is_empty() {
            let (at, width) = Blocks::declare(layout, name, inputs, config.widths);
            return (BodyAt::Blocks(at), width);
        }
        let (at, width) = Trunk::declare(layout, name, inputs, config);
        (BodyAt::Trunk(at), width)
    }

    pub(super) fn new(
        params: &Params,
        at: &BodyAt,
        config: TrunkConfig<'_>,
    ) -> Result<Self, TchError> {
        Ok(match at {
            BodyAt::Trunk(at) => Self::Trunk(Trunk::new(params, at, config)?),
            BodyAt::Blocks(at) => Self::Blocks(Blocks::new(params, at)?),
        })
    }

    /// Initial weights, with streams from `first` on. How many layers that were.
    pub(super) fn init(&self, seed: u64, first: u32) -> Result<u32, TchError> {
        match self {
            Self::Trunk(trunk) => {
                for (stream, layer) in (first..).zip(trunk.layers()) {
                    init::fan_in(layer, seed, stream)?;
                }
                trunk.norms().iter().try_for_each(|n| n.init())?;
                Ok(trunk.layers().len() as u32)
            }
            Self::Blocks(blocks) => blocks.init(seed, first),
        }
    }

    /// Weights are brought back to their lengths, with those of the `heads` behind them.
    pub(super) fn project(&self, heads: &[&Linear]) -> Result<(), TchError> {
        match self {
            Self::Trunk(_) => Ok(()),
            Self::Blocks(blocks) => blocks.project(heads),
        }
    }

    /// Whether batches of now and of next observations pass together.
    pub(super) fn joint(&self) -> bool {
        matches!(self, Self::Blocks(_))
    }

    /// The trunk, where there is one.
    pub(super) fn trunk(&self) -> Option<&Trunk> {
        match self {
            Self::Trunk(trunk) => Some(trunk),
            Self::Blocks(_) => None,
        }
    }

    pub(super) fn space(
        &self,
        rows: i64,
        backward: bool,
        device: Device,
    ) -> Result<BodySpace, LearnError> {
        Ok(match self {
            Self::Trunk(trunk) => BodySpace::Trunk(trunk.space(rows, backward, device)?),
            Self::Blocks(b) => BodySpace::Blocks(b.space(rows, backward, device)?),
        })
    }

    /// `x [B,I]` through all layers. `learning`: batch normalisation has the batch's
    /// statistics, which the running ones follow; else the running ones.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        space: &BodySpace,
        learning: bool,
    ) -> Result<(), TchError> {
        match (self, space) {
            (Self::Trunk(trunk), BodySpace::Trunk(space)) => trunk.forward(x, space),
            (Self::Blocks(blocks), BodySpace::Blocks(space)) => blocks.forward(x, space, learning),
            _ => Err(other_space()),
        }
    }

    /// Gradients of all parameters from that of the output, which lies in
    /// [`BodySpace::d_output`], after a pass that learns.
    pub(super) fn backward(&self, x: &Tensor, space: &BodySpace) -> Result<(), TchError> {
        match (self, space) {
            (Self::Trunk(trunk), BodySpace::Trunk(space)) => trunk.backward(x, space),
            (Self::Blocks(blocks), BodySpace::Blocks(space)) => blocks.backward(space),
            _ => Err(other_space()),
        }
    }

    /// Gradient of `len` inputs from the `from`th on, into `dx [B,len]`, after a pass that
    /// did not learn; those of parameters stay as they are.
    pub(super) fn backward_inputs(
        &self,
        space: &BodySpace,
        (from, len): (i64, i64),
        dx: &Tensor,
    ) -> Result<(), TchError> {
        match (self, space) {
            (Self::Trunk(trunk), BodySpace::Trunk(space)) => {
                trunk.backward_inputs(space, from, len, dx)
            }
            (Self::Blocks(blocks), BodySpace::Blocks(space)) => {
                let all = blocks.backward_through(space, false)?;
                dx.shallow_clone().f_copy_(&all.f_narrow(1, from, len)?)
            }
            _ => Err(other_space()),
        }
    }
}

impl BodySpace {
    /// The result for `x`.
    pub(super) fn output<'a>(&'a self, x: &'a Tensor) -> &'a Tensor {
        match self {
            Self::Trunk(space) => space.output(x),
            Self::Blocks(space) => &space.out,
        }
    }

    /// Where its gradient goes; none without layers.
    pub(super) fn d_output(&self) -> Option<&Tensor> {
        match self {
            Self::Trunk(space) => space.d_output(),
            Self::Blocks(space) => Some(&space.d_out),
        }
    }
}

fn other_space() -> TchError {
    TchError::Torch("buffers of another network".into())
}
