//! Two critics of observation and action, and the slow copies that targets come from.

use crate::learner::nn::layer::{LayerAt, LinearAt};
use crate::learner::nn::{Layout, Linear, Params, Trunk, TrunkSpace, init};
use crate::learner::tensors::zeros;
use crate::learner::{CriticConfig, State, error::LearnError};
use tch::{Device, Kind, TchError, Tensor};

/// Starts the names of the two critics in a checkpoint.
const NAMES: [&str; 2] = ["critic.1", "critic.2"];
/// The same for their slow copies.
const TARGETS: [&str; 2] = ["target_critic.1", "target_critic.2"];

/// Twin critics (Fujimoto et al. 2018). Inputs are `[B,C+A]`: the observation as the
/// critics see it and the action; outputs `[B,K]`.
#[derive(Debug)]
pub(crate) struct Critics {
    /// All parameters of both, flat.
    pub params: Params,
    /// Those of the slow copies.
    pub target: Params,
    online: [Critic; 2],
    slow: [Critic; 2],
    outputs: i64,
}

#[derive(Debug)]
struct Critic {
    trunk: Trunk,
    head: Linear,
}

/// Buffers of one pass of both critics over `B` rows.
#[derive(Debug)]
pub(crate) struct CriticSpace {
    trunks: [TrunkSpace; 2],
    /// Outputs `[B,K]`.
    pub out: [Tensor; 2],
    /// Their gradients; empty where no backward pass is wanted.
    pub d_out: [Tensor; 2],
}

/// Where one network's parameters lie.
struct Declared {
    hidden: Vec<LayerAt>,
    head: LinearAt,
}

impl Critics {
    /// Freshly initialised for `inputs` numbers; the slow copies are equal to them.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(
        config: &CriticConfig,
        inputs: i64,
        outputs: i64,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let build = |names: [&str; 2]| -> Result<(Params, [Critic; 2]), LearnError> {
            let mut layout = Layout::default();
            let at = names.map(|name| {
                let (hidden, features) = Trunk::declare(&mut layout, name, inputs, config.trunk());
                let head = format!("{name}.head");
                let head = Linear::declare(&mut layout, &head, features, outputs);
                Declared { hidden, head }
            });
            let params = Params::new(layout, device)?;
            let [a, b] = &at;
            let critics = [Critic::new(&params, a, config)?, Critic::new(&params, b, config)?];
            Ok((params, critics))
        };
        let (params, online) = build(NAMES)?;
        let (mut target, slow) = build(TARGETS)?;
        // Streams apart from the actor's.
        let layers = online.iter().flat_map(Critic::layers);
        for (stream, layer) in (0x1000..).zip(layers) {
            init::fan_in(layer, seed, stream)?;
        }
        let mut norms = online.iter().flat_map(|c| c.trunk.norms());
        norms.try_for_each(|n| n.init())?;
        target.theta.f_copy_(&params.theta)?;
        Ok(Self { params, target, online, slow, outputs })
    }

    /// Allocates for `rows` rows.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn space(
        &self,
        rows: i64,
        backward: bool,
        device: Device,
    ) -> Result<CriticSpace, LearnError> {
        let trunk = |c: &Critic| c.trunk.space(rows, backward, device);
        let matrix = |wanted: bool| {
            let size: &[i64] = if wanted { &[rows, self.outputs] } else { &[0] };
            zeros("critic outputs", size, Kind::Float, device)
        };
        Ok(CriticSpace {
            trunks: [trunk(&self.online[0])?, trunk(&self.online[1])?],
            out: [matrix(true)?, matrix(true)?],
            d_out: [matrix(backward)?, matrix(backward)?],
        })
    }

    /// Both critics on `x [B,C+A]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward(&self, x: &Tensor, space: &CriticSpace) -> Result<(), TchError> {
        forward(&self.online, x, space)
    }

    /// Both slow copies on `x [B,C+A]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward_slow(&self, x: &Tensor, space: &CriticSpace) -> Result<(), TchError> {
        forward(&self.slow, x, space)
    }

    /// Gradients of all parameters from those of the outputs.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn backward(&self, x: &Tensor, space: &CriticSpace) -> Result<(), TchError> {
        for (i, critic) in self.online.iter().enumerate() {
            let (trunk, d_out) = (&space.trunks[i], &space.d_out[i]);
            critic.head.backward(trunk.output(x), d_out)?;
            if let Some(d) = trunk.d_output() {
                critic.head.backward_input(d_out, d)?;
            }
            critic.trunk.backward(x, trunk)?;
        }
        Ok(())
    }

    /// Gradient of the action (the last of the inputs) from those of the outputs of both
    /// critics, into `d_action [B,A]`; `scratch` is of the same shape. Gradients of
    /// parameters stay as they are.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn backward_action(
        &self,
        space: &CriticSpace,
        d_action: &Tensor,
        scratch: &Tensor,
    ) -> Result<(), TchError> {
        let width = d_action.size2()?.1;
        for (i, critic) in self.online.iter().enumerate() {
            let (trunk, d_out) = (&space.trunks[i], &space.d_out[i]);
            let into = if i == 0 { d_action } else { scratch };
            let inputs = critic.inputs()?;
            match trunk.d_output() {
                Some(d) => {
                    critic.head.backward_input(d_out, d)?;
                    critic.trunk.backward_inputs(trunk, inputs - width, width, into)?;
                }
                None => critic.head.backward_inputs(d_out, inputs - width, width, into)?,
            }
        }
        let _ = d_action.shallow_clone().f_add_(scratch)?;
        Ok(())
    }

    /// Moves the slow copies by the share `tau` of the way.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn follow(&mut self, tau: f64) -> Result<(), TchError> {
        let _ = self.target.theta.f_lerp_(&self.params.theta, tau)?;
        Ok(())
    }

    /// Enters all weights into a state.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn declare(&self, state: &mut State) -> Result<(), TchError> {
        self.params.declare(state)?;
        self.target.declare(state)
    }
}

impl Critic {
    fn new(params: &Params, at: &Declared, config: &CriticConfig) -> Result<Self, TchError> {
        Ok(Self {
            trunk: Trunk::new(params, &at.hidden, config.trunk())?,
            head: Linear::new(params, at.head)?,
        })
    }

    fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.trunk.layers().iter().chain([&self.head])
    }

    /// Numbers per input row.
    fn inputs(&self) -> Result<i64, TchError> {
        let first = self.trunk.layers().first().unwrap_or(&self.head);
        Ok(first.weight().size2()?.1)
    }
}

fn forward(critics: &[Critic; 2], x: &Tensor, space: &CriticSpace) -> Result<(), TchError> {
    for (i, critic) in critics.iter().enumerate() {
        critic.trunk.forward(x, &space.trunks[i])?;
        critic.head.forward(space.trunks[i].output(x), &space.out[i])?;
    }
    Ok(())
}
