//! The networks of an actor and a critic, forward and backward.

use super::block::{BlockNet, BlockStd};
use super::{ActorConfig, CriticConfig, StdType};
use crate::learner::error::LearnError;
use crate::learner::network::{self, Head, Layer, Network};
use crate::learner::nn::host::ActorPass;
use crate::learner::nn::{Gru, Layout, Linear, Params, Trunk, TrunkSpace, init};
use crate::learner::normalizer::Normalizer;
use crate::learner::tensors::zeros;
use ostler_collector::Hidden;
use ostler_sim::config::ConfigError;
use ostler_sim::env::{ActionSpace, EnvSpec};
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// Actor: a GRU if it is recurrent, trunk, head for mean or logits, and what gives the
/// standard deviation. Critic: a trunk of its own or the actor's, and a head for the value.
///
/// The actor's trunk, and the critic's own, see a recurrent actor's hidden state after a step
/// beside the observations.
#[derive(Debug)]
pub struct Net {
    gru: Option<Gru>,
    actor: Trunk,
    head: Linear,
    std: Std,
    critic: Option<Trunk>,
    value: Linear,
    dist_width: i64,
    /// Bounds of the standard deviation's logarithm.
    log_std_bounds: (f64, f64),
}

#[derive(Debug)]
enum Std {
    Categorical,
    Scalar {
        log_std: Tensor,
        d_log_std: Tensor,
        /// Where it lies among all parameters.
        place: Range<usize>,
    },
    Head(Linear),
}

/// Buffers of one pass over `B` rows. Gradients are there only if asked for.
#[derive(Debug)]
pub struct NetSpace {
    /// Input of a recurrent actor's trunk: inputs and hidden states after the step `[B,O+H]`.
    pub seen: Tensor,
    actor: TrunkSpace,
    critic: Option<TrunkSpace>,
    /// Mean or logits `[B,D]`.
    pub dist: Tensor,
    /// Logarithm of the standard deviation, `[A]` or (state-dependent) `[B,A]`; empty for a
    /// categorical policy.
    pub log_std: Tensor,
    raw_log_std: Tensor,
    /// Value `[B,1]`.
    pub value: Tensor,
    /// Gradient of `dist`.
    pub d_dist: Tensor,
    /// Gradient of the standard deviation's logarithm, `[B,A]`.
    pub d_log_std: Tensor,
    /// Gradient of `value`.
    pub d_value: Tensor,
}

impl Net {
    /// Declares and initialises the networks for a task's sizes.
    pub fn new(
        actor: &ActorConfig,
        critic: &CriticConfig,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
    ) -> Result<(Self, Params), LearnError> {
        if critic.shared && spec.critic.is_some() {
            return Err(ConfigError::new(
                "critic.shared",
                "the task has observations for the critic alone",
            )
            .help("set critic.shared = false, or give those terms group = \"policy\"")
            .into());
        }
        let mut layout = Layout::default();
        let obs = spec.obs.policy as i64;
        let hidden = actor.hidden_width();
        let gru_at = match hidden {
            0 => None,
            h => Some(Gru::declare(&mut layout, "actor.gru", obs, h)),
        };
        let (actor_at, width) = Trunk::declare(&mut layout, "actor", obs + hidden, actor.trunk());
        let (dist_width, discrete) = match spec.action {
            ActionSpace::Continuous(n) => (n as i64, false),
            ActionSpace::Discrete(n) => (n as i64, true),
        };
        let head_at = Linear::declare(&mut layout, "actor.head", width, dist_width);
        let std_at = match (discrete, actor.std_type) {
            (true, _) => None,
            (false, StdType::Scalar) => Some(Err(layout.add("actor.log_std", &[dist_width]))),
            (false, StdType::StateDependent) => {
                Some(Ok(Linear::declare(&mut layout, "actor.log_std_head", width, dist_width)))
            }
        };
        let (critic_at, value_width) = if critic.shared {
            (Vec::new(), width)
        } else {
            let obs = spec.critic.unwrap_or(spec.obs.policy) as i64;
            Trunk::declare(&mut layout, "critic", obs + hidden, critic.trunk())
        };
        let value_at = Linear::declare(&mut layout, "critic.head", value_width, 1);

        let params = Params::new(layout, device)?;
        let std = match std_at {
            None => Std::Categorical,
            Some(Err(at)) => Std::Scalar {
                log_std: params.view(at)?,
                d_log_std: params.grad_view(at)?,
                place: params.range(at),
            },
            Some(Ok(at)) => Std::Head(Linear::new(&params, at)?),
        };
        let net = Self {
            gru: gru_at.map(|at| Gru::new(&params, at)).transpose()?,
            actor: Trunk::new(&params, &actor_at, actor.trunk())?,
            head: Linear::new(&params, head_at)?,
            std,
            critic: if critic.shared {
                None
            } else {
                Some(Trunk::new(&params, &critic_at, critic.trunk())?)
            },
            value: Linear::new(&params, value_at)?,
            dist_width,
            log_std_bounds: (actor.min_std.ln(), actor.max_std.ln()),
        };
        net.init(actor.init_std, seed)?;
        Ok((net, params))
    }

    /// Orthogonal weights: gain sqrt(2) in hidden layers, 0.01 in the policy's head
    /// (so that it starts near 0 everywhere), 1 in the value's and in a GRU. Biases are 0.
    fn init(&self, init_std: f64, seed: u64) -> Result<(), TchError> {
        let hidden = self.actor.layers().iter();
        let hidden = hidden.chain(self.critic.iter().flat_map(|c| c.layers()));
        let gains = hidden
            .map(|layer| (layer, std::f64::consts::SQRT_2))
            .chain([(&self.head, 0.01), (&self.value, 1.0)]);
        for (stream, (layer, gain)) in gains.enumerate() {
            init::orthogonal_layer(layer, gain, seed, stream as u32)?;
        }
        if let Some(gru) = &self.gru {
            let layers = self.actor.layers().len() + 2;
            let critic = self.critic.as_ref().map_or(0, |c| c.layers().len());
            gru.init(seed, (layers + critic) as u32)?;
        }
        let norms = self.actor.norms().iter();
        let mut norms = norms.chain(self.critic.iter().flat_map(|c| c.norms()));
        norms.try_for_each(|n| n.init())?;
        let start = match &self.std {
            Std::Categorical => return Ok(()),
            Std::Scalar { log_std, .. } => log_std,
            Std::Head(head) => head.bias(),
        };
        let _ = start.shallow_clone().f_fill_(init_std.ln())?;
        Ok(())
    }

    /// The same networks for passes over blocks of rows: of `inputs` numbers for the actor and
    /// the critic.
    pub fn blocks(&self, inputs: [usize; 2]) -> BlockNet {
        let gru = self.gru.as_ref().map(Gru::place);
        BlockNet {
            actor: self.actor.stack(inputs[0] + self.hidden_width() as usize),
            gru,
            head: self.head.dense().clone(),
            std: match &self.std {
                Std::Categorical => BlockStd::Categorical,
                Std::Scalar { place, .. } => BlockStd::Scalar(place.clone()),
                Std::Head(head) => BlockStd::Head(head.dense().clone()),
            },
            critic: self.critic.as_ref().map(|c| c.stack(inputs[1])),
            value: self.value.dense().clone(),
            log_std_bounds: self.log_std_bounds,
        }
    }

    /// Width of [`NetSpace::dist`].
    pub fn dist_width(&self) -> i64 {
        self.dist_width
    }

    /// Width of the hidden state; 0 where the actor is not recurrent.
    pub fn hidden_width(&self) -> i64 {
        self.gru.as_ref().map_or(0, |g| g.width() as i64)
    }

    /// Layers of a recurrent actor's GRU.
    #[cfg(test)]
    pub fn gru_layers(&self) -> Option<[&Linear; 2]> {
        self.gru.as_ref().map(Gru::layers)
    }

    /// The actor as plain numbers, behind a normaliser.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn export(&self, norm: Option<&Normalizer>) -> Result<Network, TchError> {
        let gru = |gru: &Gru| -> Result<_, TchError> {
            let [input, hidden] = gru.layers();
            Ok(network::Gru { input: Layer::of(input)?, hidden: Layer::of(hidden)? })
        };
        Ok(Network {
            norm: Network::norm_of(norm)?,
            gru: self.gru.as_ref().map(gru).transpose()?,
            hidden: network::Hidden::of(&self.actor)?,
            activation: self.actor.activation(),
            last: Layer::of(&self.head)?,
            head: match self.is_categorical() {
                true => Head::Largest,
                false => Head::Mean,
            },
        })
    }

    /// The critic's output layer.
    pub fn value_head(&self) -> &Linear {
        &self.value
    }

    /// Whether the policy is categorical.
    pub fn is_categorical(&self) -> bool {
        matches!(self.std, Std::Categorical)
    }

    /// Allocates for `rows` rows.
    pub fn space(&self, rows: i64, backward: bool, device: Device) -> Result<NetSpace, LearnError> {
        let matrix = |wanted: bool, width: i64| {
            let size: &[i64] = if wanted { &[rows, width] } else { &[0] };
            zeros("network outputs", size, Kind::Float, device)
        };
        let (d, head) = (self.dist_width, matches!(self.std, Std::Head(_)));
        Ok(NetSpace {
            seen: match &self.gru {
                Some(gru) => matrix(true, (gru.inputs() + gru.width()) as i64)?,
                None => matrix(false, 0)?,
            },
            actor: self.actor.space(rows, backward, device)?,
            critic: self.critic.as_ref().map(|c| c.space(rows, backward, device)).transpose()?,
            dist: matrix(true, d)?,
            log_std: match &self.std {
                Std::Scalar { log_std, .. } => log_std.shallow_clone(),
                _ => matrix(head, d)?,
            },
            raw_log_std: matrix(head, d)?,
            value: matrix(true, 1)?,
            d_dist: matrix(backward, d)?,
            d_log_std: matrix(backward && !self.is_categorical(), d)?,
            d_value: matrix(backward, 1)?,
        })
    }

    /// Inputs of the actor's trunk for observations `x [B,O]`: of a recurrent one, into
    /// [`NetSpace::seen`], inputs and hidden states after a step from `before [B,H]`.
    pub fn see<'a>(
        &self,
        x: &'a Tensor,
        before: Option<&Tensor>,
        space: &'a NetSpace,
    ) -> Result<&'a Tensor, TchError> {
        let Some(gru) = &self.gru else {
            return Ok(x);
        };
        let next = gru.step(x, before.ok_or_else(no_hidden)?)?;
        let _ = Tensor::f_cat_out(&space.seen, &[x, &next], 1)?;
        Ok(&space.seen)
    }

    /// The hidden states `[B,H]` in what the actor's trunk sees, `[B,O+H]`.
    pub fn hidden_of(&self, seen: &Tensor) -> Result<Tensor, TchError> {
        let width = self.hidden_width();
        seen.f_narrow(1, seen.size2()?.1 - width, width)
    }

    /// Parameters of the distribution for the inputs of the actor's trunk ([`see`](Self::see)),
    /// `x [B,O]`.
    pub fn forward_actor(&self, x: &Tensor, space: &NetSpace) -> Result<(), TchError> {
        self.actor.forward(x, &space.actor)?;
        let features = space.actor.output(x);
        self.head.forward(features, &space.dist)?;
        if let Some(head) = self.std_head() {
            let (low, high) = self.log_std_bounds;
            head.forward(features, &space.raw_log_std)?;
            let _ = space.raw_log_std.f_clamp_out(&space.log_std, low, high)?;
        }
        Ok(())
    }

    /// Buffers for [`forward_on_host`](Self::forward_on_host); none if parameters are on a device.
    pub fn actor_pass(&self) -> Result<Option<ActorPass>, LearnError> {
        let heads = std::iter::once(&self.head).chain(self.std_head());
        let gates = self.gru.iter().flat_map(Gru::layers);
        ActorPass::new(&self.actor, heads.chain(gates))
    }

    /// The head for a standard deviation that depends on the state.
    fn std_head(&self) -> Option<&Linear> {
        match &self.std {
            Std::Head(head) => Some(head),
            Std::Categorical | Std::Scalar { .. } => None,
        }
    }

    /// [`forward_actor`](Self::forward_actor) for raw observations, which `norm` shifts
    /// and scales, without what a backward pass would need. `false`, and nothing is done,
    /// where a tensor is not the host's.
    pub fn forward_on_host(
        &self,
        pass: &mut ActorPass,
        obs: &Tensor,
        norm: Option<[&Tensor; 2]>,
        hidden: Option<Hidden<'_>>,
        space: &NetSpace,
    ) -> Result<bool, TchError> {
        let heads = (&self.head, self.std_head());
        let out = [&space.dist, &space.raw_log_std, &space.log_std];
        let gru = match &self.gru {
            Some(gru) => Some((gru, hidden.ok_or_else(no_hidden)?)),
            None => None,
        };
        let trunk = (gru, &self.actor);
        pass.actor((obs, norm), trunk, heads, self.log_std_bounds, out)
    }

    /// Values for the critic's inputs `x [B,O]`, into [`NetSpace::value`]. With a shared trunk,
    /// after [`forward_actor`](Self::forward_actor) on the same inputs.
    pub fn forward_critic(&self, x: &Tensor, space: &NetSpace) -> Result<(), TchError> {
        let features = match (&self.critic, &space.critic) {
            (Some(trunk), Some(hidden)) => {
                trunk.forward(x, hidden)?;
                hidden.output(x)
            }
            _ => space.actor.output(x),
        };
        self.value.forward(features, &space.value)
    }

    /// Values alone, whether the trunk is shared or not, for the critic's inputs.
    pub fn forward_value(&self, x: &Tensor, space: &NetSpace) -> Result<(), TchError> {
        if self.critic.is_none() {
            self.actor.forward(x, &space.actor)?;
        }
        self.forward_critic(x, space)
    }

    /// Whether actor and critic share a trunk.
    pub fn is_shared(&self) -> bool {
        self.critic.is_none()
    }

    /// Gradients of all parameters from `d_dist`, `d_log_std` and `d_value`.
    pub fn backward(
        &self,
        x_actor: &Tensor,
        x_critic: &Tensor,
        space: &NetSpace,
    ) -> Result<(), TchError> {
        self.backward_heads(x_actor, space)?;
        self.backward_critic(x_actor, x_critic, space)?;
        self.actor.backward(x_actor, &space.actor)
    }

    /// Those of the policy's heads, and what its trunk's output needs.
    fn backward_heads(&self, x_actor: &Tensor, space: &NetSpace) -> Result<(), TchError> {
        let features = space.actor.output(x_actor);
        let d_features = space.actor.d_output();
        self.head.backward(features, &space.d_dist)?;
        if let Some(d) = d_features {
            self.head.backward_input(&space.d_dist, d)?;
        }
        match &self.std {
            Std::Categorical => {}
            Std::Scalar { d_log_std, .. } => {
                let _ = space.d_log_std.f_sum_intlist_out(
                    d_log_std,
                    &[0i64][..],
                    false,
                    Kind::Float,
                )?;
            }
            Std::Head(head) => {
                let d = &space.d_log_std;
                stop_at_bounds(&space.raw_log_std, d, self.log_std_bounds)?;
                head.backward(features, &space.d_log_std)?;
                if let Some(d) = d_features {
                    head.add_backward_input(&space.d_log_std, d)?;
                }
            }
        }
        Ok(())
    }

    /// Those of the critic; of a shared trunk, the parameters of its output.
    pub fn backward_critic(
        &self,
        x_actor: &Tensor,
        x_critic: &Tensor,
        space: &NetSpace,
    ) -> Result<(), TchError> {
        match (&self.critic, &space.critic) {
            (Some(trunk), Some(hidden)) => {
                self.value.backward(hidden.output(x_critic), &space.d_value)?;
                if let Some(d) = hidden.d_output() {
                    self.value.backward_input(&space.d_value, d)?;
                }
                trunk.backward(x_critic, hidden)?;
            }
            _ => {
                let features = space.actor.output(x_actor);
                self.value.backward(features, &space.d_value)?;
                if let Some(d) = space.actor.d_output() {
                    self.value.add_backward_input(&space.d_value, d)?;
                }
            }
        }
        Ok(())
    }

    /// Brings a learnt standard deviation back within its bounds after a step.
    pub fn project(&self) -> Result<(), TchError> {
        if let Std::Scalar { log_std, .. } = &self.std {
            let (low, high) = self.log_std_bounds;
            let _ = log_std.f_clamp_out(log_std, low, high)?;
        }
        Ok(())
    }
}

fn no_hidden() -> TchError {
    TchError::Torch("a recurrent policy has to be given its hidden state".into())
}

/// Drops the parts of the gradient `d` that would move a number `raw` beyond its bounds
/// farther out. A gradient that leads back inside passes: a standard deviation at its bound
/// neither drifts nor gets stuck there, as it would behind the derivative of a clamp.
///
/// # Errors
/// libtorch refuses.
pub fn stop_at_bounds(raw: &Tensor, d: &Tensor, (low, high): (f64, f64)) -> Result<(), TchError> {
    let below = raw.f_le(low)?.f_logical_and(&d.f_gt(0.0)?)?;
    let above = raw.f_ge(high)?.f_logical_and(&d.f_lt(0.0)?)?;
    let stop = below.f_logical_or(&above)?;
    let _ = d.shallow_clone().f_masked_fill_(&stop, 0.0)?;
    Ok(())
}

impl NetSpace {
    /// The first `rows` rows, sharing memory.
    pub fn narrow(&self, rows: i64) -> Result<Self, TchError> {
        let cut = |t: &Tensor| {
            if t.dim() == 2 { t.f_narrow(0, 0, rows) } else { Ok(t.shallow_clone()) }
        };
        Ok(Self {
            seen: cut(&self.seen)?,
            actor: self.actor.narrow(rows)?,
            critic: self.critic.as_ref().map(|c| c.narrow(rows)).transpose()?,
            dist: cut(&self.dist)?,
            log_std: cut(&self.log_std)?,
            raw_log_std: cut(&self.raw_log_std)?,
            value: cut(&self.value)?,
            d_dist: cut(&self.d_dist)?,
            d_log_std: cut(&self.d_log_std)?,
            d_value: cut(&self.d_value)?,
        })
    }
}
