//! The network that decides, and the policy that it makes.

use super::body::{Body, BodySpace};
use super::inputs::Inputs;
use super::sample;
use crate::learner::network::{self, Head, Layer, Network};
use crate::learner::nn::host::ActorPass;
use crate::learner::nn::layer::LinearAt;
use crate::learner::nn::{Layout, Linear, Params, init};
use crate::learner::normalizer::Normalizer;
use crate::learner::policy::net::stop_at_bounds;
use crate::learner::policy::{Norms, own_memory};
use crate::learner::tensors::zeros;
use crate::learner::{ActorConfig, CriticConfig, State, TrainedPolicy, error::LearnError};
use ostler_collector::policy::{Hidden, Noise};
use ostler_collector::{Act, Policy, Replicate};
use ostler_sim::config::ConfigError;
use ostler_sim::env::{ActionSpace, EnvSpec};
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// How actions differ from the network's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Explore {
    /// Drawn from a Gaussian whose mean and standard deviation are the network's, then squashed by
    /// a hyperbolic tangent (Haarnoja et al. 2018, appendix C).
    Squashed {
        /// A hyperbolic tangent holds the deviation's logarithm between its bounds, too; else
        /// it is clipped.
        tanh_std: bool,
    },
    /// The squashed output with Gaussian noise added; each environment has a standard deviation of
    /// its own between these two, in units of the bound (Li et al., "Parallel
    /// Q-Learning", 2023, section 3.3: mixed exploration).
    Added {
        /// Smallest standard deviation.
        min: f64,
        /// Largest standard deviation.
        max: f64,
    },
}

/// Hidden layers, head for the mean and, for [`Explore::Squashed`], one for the logarithm of the
/// standard deviation.
#[derive(Debug)]
pub(crate) struct ActorNet {
    body: Body,
    mean: Linear,
    log_std: Option<Linear>,
    bounds: (f64, f64),
    /// [`Explore::Squashed`]'s.
    tanh_std: bool,
    width: i64,
}

/// Buffers of one pass over `B` rows, or over `2B` of which the first `B` count.
#[derive(Debug)]
pub(crate) struct ActorSpace {
    body: BodySpace,
    /// Before squashing `[B,A]`.
    pub mean: Tensor,
    /// Logarithm of the standard deviation, within its bounds `[B,A]`; empty without one.
    pub log_std: Tensor,
    /// Gradient of `mean`.
    pub d_mean: Tensor,
    /// Gradient of `log_std`.
    pub d_log_std: Tensor,
    all: Outputs,
}

/// The same of all rows.
#[derive(Debug)]
struct Outputs {
    mean: Tensor,
    log_std: Tensor,
    raw_log_std: Tensor,
    d_mean: Tensor,
    d_log_std: Tensor,
}

impl ActorNet {
    /// Declares and initialises the network.
    ///
    /// # Errors
    /// The task's actions are choices, or memory does not suffice.
    pub(crate) fn new(
        config: &ActorConfig,
        spec: &EnvSpec,
        explore: Explore,
        seed: u64,
        device: Device,
    ) -> Result<(Self, Params), LearnError> {
        let ActionSpace::Continuous(width) = spec.action else {
            return Err(ConfigError::new(
                "runner.algorithm",
                "it needs actions that are numbers, and this task's are choices",
            )
            .help("runner.algorithm = \"ppo\" learns both")
            .into());
        };
        let width = width as i64;
        let mut layout = Layout::default();
        let (at, features) =
            Body::declare(&mut layout, "actor", spec.obs.policy as i64, config.body());
        let mut head = |name: &str| Linear::declare(&mut layout, name, features, width);
        let mean_at: LinearAt = head("actor.head");
        let drawn = matches!(explore, Explore::Squashed { .. });
        let std_at = drawn.then(|| head("actor.log_std_head"));
        let params = Params::new(layout, device)?;
        let net = Self {
            body: Body::new(&params, &at, config.body().0)?,
            mean: Linear::new(&params, mean_at)?,
            log_std: std_at.map(|at| Linear::new(&params, at)).transpose()?,
            bounds: (config.min_std.ln(), config.max_std.ln()),
            tanh_std: matches!(explore, Explore::Squashed { tanh_std: true }),
            width,
        };
        net.init(config.init_std, seed)?;
        Ok((net, params))
    }

    /// Hidden layers as [`init::fan_in`] has them; the mean starts near 0 everywhere and
    /// the standard deviation at `init_std`.
    fn init(&self, init_std: f64, seed: u64) -> Result<(), TchError> {
        let stream = self.body.init(seed, 0)? * 2;
        init::orthogonal_layer(&self.mean, 0.01, seed, stream)?;
        if let Some(head) = &self.log_std {
            if self.body.joint() {
                init::orthogonal_layer(head, 1.0, seed, stream + 1)?;
            }
            let start = match self.tanh_std {
                // At the bounds themselves nothing would be learnt.
                true => {
                    ((init_std.ln() - self.middle()) / self.half()).clamp(-0.999, 0.999).atanh()
                }
                false => init_std.ln(),
            };
            let _ = head.bias().shallow_clone().f_fill_(start)?;
        }
        self.project()
    }

    /// Weights are brought back to their lengths, where they have such.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn project(&self) -> Result<(), TchError> {
        let heads: Vec<&Linear> = std::iter::once(&self.mean).chain(&self.log_std).collect();
        self.body.project(&heads)
    }

    /// Allocates to act with `rows` rows, or for passes that nothing is learnt from.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn space(&self, rows: i64, device: Device) -> Result<ActorSpace, LearnError> {
        self.space_of(rows, rows, false, device)
    }

    /// Allocates for gradient steps with `rows` transitions.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn learning_space(
        &self,
        rows: i64,
        device: Device,
    ) -> Result<ActorSpace, LearnError> {
        let all = if self.body.joint() { 2 * rows } else { rows };
        self.space_of(all, rows, true, device)
    }

    fn space_of(
        &self,
        rows: i64,
        count: i64,
        backward: bool,
        device: Device,
    ) -> Result<ActorSpace, LearnError> {
        let matrix = |wanted: bool| {
            let size: &[i64] = if wanted { &[rows, self.width] } else { &[0] };
            zeros("actor outputs", size, Kind::Float, device)
        };
        let drawn = self.log_std.is_some();
        let all = Outputs {
            mean: matrix(true)?,
            log_std: matrix(drawn)?,
            raw_log_std: matrix(drawn)?,
            d_mean: matrix(backward)?,
            d_log_std: matrix(backward && drawn)?,
        };
        let counted = |t: &Tensor| match t.dim() {
            2 => t.f_narrow(0, 0, count),
            _ => Ok(t.shallow_clone()),
        };
        Ok(ActorSpace {
            body: self.body.space(rows, backward, device)?,
            mean: counted(&all.mean)?,
            log_std: counted(&all.log_std)?,
            d_mean: counted(&all.d_mean)?,
            d_log_std: counted(&all.d_log_std)?,
            all,
        })
    }

    /// Mean and standard deviation for inputs `x [B,O]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward(&self, x: &Tensor, space: &ActorSpace) -> Result<(), TchError> {
        self.pass_over(x, space, false)
    }

    /// The same for a batch's observations, to learn from.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward_now(&self, x: &Inputs, space: &ActorSpace) -> Result<(), TchError> {
        self.forward_on(self.now(x), space)
    }

    /// The same for inputs as those of [`now`](Self::now).
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn forward_on(&self, x: &Tensor, space: &ActorSpace) -> Result<(), TchError> {
        self.pass_over(x, space, true)
    }

    /// The inputs of a batch that pass together.
    pub(super) fn now<'a>(&self, x: &'a Inputs) -> &'a Tensor {
        if self.body.joint() { &x.all_obs } else { &x.obs }
    }

    fn pass_over(&self, x: &Tensor, space: &ActorSpace, learning: bool) -> Result<(), TchError> {
        self.body.forward(x, &space.body, learning)?;
        let features = space.body.output(x);
        self.mean.forward(features, &space.all.mean)?;
        if let Some(head) = &self.log_std {
            head.forward(features, &space.all.raw_log_std)?;
            self.bound_std(space)?;
        }
        Ok(())
    }

    /// Middle of the bounds of the standard deviation's logarithm.
    fn middle(&self) -> f64 {
        (self.bounds.0 + self.bounds.1) / 2.0
    }

    /// Half of what lies between them.
    fn half(&self) -> f64 {
        (self.bounds.1 - self.bounds.0) / 2.0
    }

    /// The standard deviation's logarithm from what the head gives.
    fn bound_std(&self, space: &ActorSpace) -> Result<(), TchError> {
        let (low, high) = self.bounds;
        let (raw, out) = (&space.all.raw_log_std, &space.all.log_std);
        let _ = match self.tanh_std {
            true => {
                raw.f_tanh_out(out)?.f_mul_scalar_(self.half())?.f_add_scalar_(self.middle())?
            }
            false => raw.f_clamp_out(out, low, high)?,
        };
        Ok(())
    }

    fn pass(&self) -> Result<Option<ActorPass>, LearnError> {
        match self.body.trunk() {
            Some(trunk) => ActorPass::new(trunk, std::iter::once(&self.mean).chain(&self.log_std)),
            None => Ok(None),
        }
    }

    /// [`forward`](Self::forward) for raw observations, which `norm` shifts and scales,
    /// without what a backward pass would need. `false`, and nothing is done, where a
    /// tensor is not the host's.
    fn forward_on_host(
        &self,
        pass: &mut ActorPass,
        obs: &Tensor,
        norm: Option<[&Tensor; 2]>,
        space: &ActorSpace,
    ) -> Result<bool, TchError> {
        let Some(trunk) = self.body.trunk() else { return Ok(false) };
        let Some(head) = &self.log_std else {
            return pass.tensors(obs, norm, (None, trunk), [&self.mean], [&space.mean]);
        };
        let out = [&space.mean, &space.all.raw_log_std];
        let done = pass.tensors(obs, norm, (None, trunk), [&self.mean, head], out)?;
        if done {
            self.bound_std(space)?;
        }
        Ok(done)
    }

    /// Gradients of all parameters from `d_mean` and `d_log_std`, which may be changed, after
    /// [`forward_now`](Self::forward_now).
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn backward(&self, x: &Inputs, space: &ActorSpace) -> Result<(), TchError> {
        self.backward_on(self.now(x), space)
    }

    /// The same after [`forward_on`](Self::forward_on).
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn backward_on(&self, x: &Tensor, space: &ActorSpace) -> Result<(), TchError> {
        let all = &space.all;
        let (features, d_features) = (space.body.output(x), space.body.d_output());
        self.mean.backward(features, &all.d_mean)?;
        if let Some(d) = d_features {
            self.mean.backward_input(&all.d_mean, d)?;
        }
        if let Some(head) = &self.log_std {
            let d = &all.d_log_std;
            match self.tanh_std {
                true => {
                    let tanh = all.log_std.f_sub_scalar(self.middle())?;
                    let tanh = tanh.f_div_scalar(self.half())?;
                    let slope = tanh.f_mul(&tanh)?.f_neg()?.f_add_scalar(1.0)?;
                    let _ = d.shallow_clone().f_mul_(&slope.f_mul_scalar(self.half())?)?;
                }
                false => stop_at_bounds(&all.raw_log_std, d, self.bounds)?,
            }
            head.backward(features, &all.d_log_std)?;
            if let Some(d) = d_features {
                head.add_backward_input(&all.d_log_std, d)?;
            }
        }
        self.body.backward(x, &space.body)
    }
}

/// The policy of an off-policy learner: actions within `-bound..bound`, each its own.
#[derive(Debug)]
pub struct ContinuousPolicy {
    pub(super) net: ActorNet,
    pub(super) params: Params,
    pub(super) norm: Norms,
    pub(super) device: Device,
    /// `[1,A]`.
    pub(super) bound: Tensor,
    /// The same numbers.
    pub(super) bounds: Vec<f32>,
    pub(super) explore: Explore,
    pub(super) config: ActorConfig,
    pub(super) spec: EnvSpec,
    /// Number of updates behind it.
    pub(super) version: i32,
    /// Place of its first row in the whole batch.
    first_row: i64,
    act: ActBuffers,
}

#[derive(Debug)]
struct ActBuffers {
    rows: i64,
    input: Tensor,
    space: ActorSpace,
    /// Deviation `[N,1]` of [`Explore::Added`] in units of the bound.
    scale: Tensor,
    /// On a host, the network at once.
    pass: Option<ActorPass>,
}

impl ContinuousPolicy {
    /// Freshly initialised; `seed` keys every draw.
    ///
    /// # Errors
    /// A key that cannot be used, or memory does not suffice.
    pub fn new(
        actor: &ActorConfig,
        critic: &CriticConfig,
        spec: &EnvSpec,
        explore: Explore,
        bounds: &[f32],
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        if let Some(error) = actor.validate().into_iter().next() {
            return Err(error.into());
        }
        let _no_grad = tch::no_grad_guard();
        let (net, params) = ActorNet::new(actor, spec, explore, seed, device)?;
        let rows = spec.rows() as i64;
        let act = ActBuffers::new(&net, spec.obs.policy as i64, explore, 0..rows, device)?;
        Ok(Self {
            first_row: 0,
            net,
            params,
            norm: Norms::new(actor, critic, spec, device)?,
            device,
            bound: Tensor::f_from_slice(bounds)?.f_view([1, -1])?.f_to_device(device)?,
            bounds: bounds.to_vec(),
            explore,
            config: actor.clone(),
            spec: spec.clone(),
            version: 0,
            act,
        })
    }

    /// Numbers per action, `A`.
    pub(super) fn width(&self) -> i64 {
        self.net.width
    }

    /// Explores as rows from this one on of a larger batch do.
    pub(super) fn begin_at(&mut self, first_row: usize) -> Result<(), LearnError> {
        self.first_row = first_row as i64;
        let rows = self.first_row..self.first_row + self.act.rows;
        let width = self.act.input.size2()?.1;
        self.act = ActBuffers::new(&self.net, width, self.explore, rows, self.device)?;
        Ok(())
    }

    /// Runs the network on raw observations `[N,O]`.
    fn forward(&mut self, obs: &Tensor) -> Result<(), TchError> {
        let (rows, width) = obs.size2()?;
        if rows != self.act.rows {
            // Another number of environments than before: an evaluation, or a back-off.
            let rows = self.first_row..self.first_row + rows;
            self.act = ActBuffers::new(&self.net, width, self.explore, rows, self.device)
                .map_err(own_memory)?;
        }
        let norm = self.norm.actor.as_ref().map(Normalizer::applied);
        if let Some(pass) = &mut self.act.pass
            && self.net.forward_on_host(pass, obs, norm, &self.act.space)?
        {
            return Ok(());
        }
        let obs = obs.f_to_device(self.device)?;
        match &self.norm.actor {
            Some(normalizer) => {
                normalizer.apply(&obs, &self.act.input)?;
                self.net.forward(&self.act.input, &self.act.space)
            }
            None => self.net.forward(&obs, &self.act.space),
        }
    }

    /// `bound tanh(x)`.
    fn squash(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_tanh()?.f_mul(&self.bound)
    }
}

impl ActBuffers {
    fn new(
        net: &ActorNet,
        obs: i64,
        explore: Explore,
        rows: Range<i64>,
        device: Device,
    ) -> Result<Self, LearnError> {
        let scales: Vec<f32> = match explore {
            Explore::Squashed { .. } => Vec::new(),
            Explore::Added { min, max } => {
                let rows = rows.start as u32..rows.end as u32;
                rows.map(|e| noise_scale(e, min, max)).collect()
            }
        };
        let rows = rows.end - rows.start;
        Ok(Self {
            rows,
            input: zeros("observations", &[rows, obs], Kind::Float, device)?,
            space: net.space(rows, device)?,
            scale: Tensor::f_from_slice(&scales)?.f_view([-1, 1])?.f_to_device(device)?,
            pass: net.pass()?,
        })
    }
}

impl Policy for ContinuousPolicy {
    fn dist_width(&self) -> i64 {
        self.net.width
    }

    fn noise(&self) -> (i64, Noise) {
        (self.net.width, Noise::Normal)
    }

    fn bounds(&self) -> &[f32] {
        &self.bounds
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.forward(obs)?;
        let space = &self.act.space;
        let spread = match self.explore {
            Explore::Squashed { .. } => &space.log_std,
            Explore::Added { .. } => &self.act.scale,
        };
        if sample::explore(self.explore, &self.bounds, (&space.mean, spread), noise, out) {
            return Ok(());
        }
        let noise = noise.f_to_device(self.device)?;
        match self.explore {
            Explore::Squashed { .. } => {
                let std = space.log_std.f_exp()?;
                let action = self.squash(&space.mean.f_addcmul(&noise, &std)?)?;
                out.action.shallow_clone().f_copy_(&action)?;
                out.std.shallow_clone().f_copy_(&std)?;
            }
            Explore::Added { .. } => {
                let std = self.act.scale.f_mul(&self.bound)?;
                let unit = space.mean.f_tanh()?.f_addcmul(&noise, &self.act.scale)?;
                let action = unit.f_clamp(-1.0, 1.0)?.f_mul(&self.bound)?;
                out.action.shallow_clone().f_copy_(&action)?;
                out.std.shallow_clone().f_copy_(&std)?;
            }
        }
        out.dist.shallow_clone().f_copy_(&space.mean)
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        _: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.forward(obs)?;
        let mean = self.squash(&self.act.space.mean)?;
        action.shallow_clone().f_copy_(&mean)
    }

    fn version(&self) -> i32 {
        self.version
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}

impl TrainedPolicy for ContinuousPolicy {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        self.params.declare(state)?;
        self.norm.declare(state);
        Ok(())
    }

    fn renew(&mut self, _: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        Ok(self.norm.derive()?)
    }

    fn num_parameters(&self) -> i64 {
        self.params.len()
    }

    fn network(&self, _policy: usize) -> Result<Option<Network>, LearnError> {
        let Some(trunk) = self.net.body.trunk() else { return Ok(None) };
        Ok(Some(Network {
            norm: Network::norm_of(self.norm.actor.as_ref())?,
            gru: None,
            hidden: network::Hidden::of(trunk)?,
            activation: trunk.activation(),
            last: Layer::of(&self.net.mean)?,
            head: Head::Squashed { bound: self.bounds.clone() },
        }))
    }
}

/// Deviation of the noise that environment `env` explores with, between `min` and `max`:
/// spread evenly over any number of environments, the same in a back-off.
pub(super) fn noise_scale(env: u32, min: f64, max: f64) -> f32 {
    // Multiples of the golden ratio fill the unit interval evenly at every length.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let place = ((f64::from(env) + 0.5) * GOLDEN).fract();
    (min + place * (max - min)) as f32
}
