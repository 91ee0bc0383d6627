//! A reward for states that were rarely seen: `ppo.rnd`.
//!
//! Source: Burda et al., "Exploration by random network distillation", 2018, with the formulas
//! of rsl_rl 5 (`rsl_rl/extensions/rnd.py`): a predictor learns what a random network, the
//! target, makes of observations; its error is the reward. Networks and steps are operations
//! of tensors, on a host by one thread, so that bits do not depend on how many there are.

use super::{PpoConfig, batch};
use crate::learner::State;
use crate::learner::error::LearnError;
use crate::learner::nn::device::LearnKernels;
use crate::learner::nn::host::Vectors;
use crate::learner::nn::{Adam, Layout, Linear, Params, Trunk, TrunkConfig, TrunkSpace, init};
use crate::learner::normalizer::Normalizer;
use crate::learner::off_policy::section::{Section, Tally};
use crate::learner::policy::Activation;
use crate::learner::state::Holds;
use crate::learner::tensors::zeros;
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use ostler_sim::config::ConfigError;
use ostler_sim::memory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, TchError, Tensor};

/// Discount of the sums whose standard deviation rewards are divided by: rsl_rl's.
const DISCOUNT: f64 = 0.99;
/// First stream of the initial weights: those of actor and critic are below.
const STREAM: u32 = 1 << 16;

/// `[ppo.rnd]`: a reward for states that were rarely seen (random network distillation; Burda
/// et al. 2018): the distance of what a network predicts of an observation from what a random
/// one makes of it. Both see what the actor sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RndConfig {
    /// What a step's distance is multiplied by before it is added to the reward. 0: no such
    /// reward; above 0 otherwise.
    pub weight: f64,
    /// Learning rate of the predictor's Adam, above 0.
    pub learning_rate: f64,
    /// Numbers that are predicted. This and the following have no keys: nobody has needed others.
    #[serde(skip)]
    pub num_outputs: i64,
    /// Hidden layers of the predictor.
    #[serde(skip)]
    pub predictor_hidden_dims: Vec<i64>,
    /// Hidden layers of the random network.
    #[serde(skip)]
    pub target_hidden_dims: Vec<i64>,
    /// Divide distances by the running standard deviation of their discounted sums.
    #[serde(skip)]
    pub reward_normalization: bool,
}

impl Default for RndConfig {
    fn default() -> Self {
        Self {
            weight: 0.0,
            num_outputs: 16,
            predictor_hidden_dims: vec![64, 64],
            target_hidden_dims: vec![64, 64],
            learning_rate: 1e-3,
            reward_normalization: true,
        }
    }
}

impl RndConfig {
    /// Whether there is such a reward.
    pub fn is_on(&self) -> bool {
        self.weight != 0.0
    }

    /// Values that cannot be used, with paths such as `ppo.rnd.weight`.
    pub(super) fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: String, allowed: &str| {
            if !ok {
                let path = format!("ppo.rnd.{key}");
                let error = ConfigError::new(path, format!("{value} cannot be used"));
                errors.push(error.help(format!("allowed: {allowed}")));
            }
        };
        let (weight, rate) = (self.weight, self.learning_rate);
        let at_least_0 = weight.is_finite() && weight >= 0.0;
        check(at_least_0, "weight", weight.to_string(), "a number of 0 or more");
        let positive = rate.is_finite() && rate > 0.0;
        check(positive, "learning_rate", rate.to_string(), "a number above 0");
        errors
    }
}

/// A network, and buffers for one pass.
#[derive(Debug)]
struct Embedding {
    params: Params,
    trunk: Trunk,
    head: Linear,
    space: TrunkSpace,
    /// Its result `[B,K]`.
    out: Tensor,
}

/// Both networks, the optimiser and the statistics.
#[derive(Debug)]
pub(super) struct Rnd {
    config: RndConfig,
    predictor: Embedding,
    target: Embedding,
    adam: Adam,
    section: Section,
    /// Discounted sums of distances so far, of all processes' rows `[N,1]`.
    sums: Tensor,
    /// Those that learn together, and which rows are this one's.
    group: Group,
    place: Place,
    /// Their statistics.
    stats: Normalizer,
    /// Distances of a rollout, and then rewards `[T,N]`.
    reward: Tensor,
    /// Rows of a pass.
    chunk: i64,
    order: Vec<i64>,
    seed: u64,
}

impl Embedding {
    fn new(
        name: &str,
        [inputs, outputs, rows]: [i64; 3],
        widths: &[i64],
        (seed, stream): (u64, u32),
        device: Device,
    ) -> Result<Self, LearnError> {
        let activation = Activation::Elu;
        let config = TrunkConfig { widths, activation, layer_norm: false, residual: false };
        let mut layout = Layout::default();
        let (at, width) = Trunk::declare(&mut layout, name, inputs, config);
        let head = Linear::declare(&mut layout, &format!("{name}.out"), width, outputs);
        let params = Params::new(layout, device)?;
        let trunk = Trunk::new(&params, &at, config)?;
        let head = Linear::new(&params, head)?;
        let layers = trunk.layers().iter().chain([&head]);
        for (layer, stream) in layers.zip(stream..) {
            init::fan_in(layer, seed, stream)?;
        }
        Ok(Self {
            space: trunk.space(rows, true, device)?,
            out: zeros("embeddings", &[rows, outputs], Kind::Float, device)?,
            params,
            trunk,
            head,
        })
    }

    /// What it makes of `x [B,O]`, `[B,K]`.
    fn see(&self, x: &Tensor) -> Result<(Tensor, TrunkSpace), TchError> {
        let rows = x.size2()?.0;
        let space = self.space.narrow(rows)?;
        self.trunk.forward(x, &space)?;
        let out = self.out.f_narrow(0, 0, rows)?;
        self.head.forward(space.output(x), &out)?;
        Ok((out, space))
    }
}

impl Rnd {
    /// For rollouts of `steps` steps of `envs` environments and inputs of `width` numbers.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn new(
        ppo: &PpoConfig,
        width: i64,
        [steps, envs]: [i64; 2],
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let config = ppo.rnd.clone();
        let chunk = (steps * envs + ppo.num_mini_batches as i64 - 1) / ppo.num_mini_batches as i64;
        let sizes = [width, config.num_outputs, chunk];
        let network = |name: &str, widths: &[i64], stream: u32| {
            Embedding::new(name, sizes, widths, (seed, stream), device)
        };
        let predictor = network("predictor", &config.predictor_hidden_dims, STREAM)?;
        let target = network("target", &config.target_hidden_dims, 2 * STREAM)?;
        let adam = Adam::new(predictor.params.len(), config.learning_rate, device)?.named("adam");
        Ok(Self {
            adam,
            section: Section::new(0, 0.0, device)?,
            sums: zeros("discounted sums", &[envs, 1], Kind::Float, device)?,
            stats: Normalizer::new("return", 1, device)?,
            reward: zeros("rewards of novelty", &[steps, envs], Kind::Float, device)?,
            order: memory::zeroed("an order of samples", (steps * envs) as usize)?,
            group: Group::default(),
            place: Place { first: 0, all: envs },
            config,
            predictor,
            target,
            chunk,
            seed,
        })
    }

    /// From now on with other processes. Comes before [`declare`](Self::declare).
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn join(&mut self, group: &Group, place: Place) -> Result<(), LearnError> {
        let device = self.sums.device();
        self.sums = zeros("discounted sums", &[place.all, 1], Kind::Float, device)?;
        self.section.join(group);
        (self.group, self.place) = (group.clone(), place);
        Ok(())
    }

    /// On a device: its kernels.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn with_kernels(&mut self, kernels: &LearnKernels) -> Result<(), LearnError> {
        self.adam.with_kernels(kernels)
    }

    /// Enters everything that an update changes, and the target, into a learner's state. None of
    /// it is of the policy: a run that starts from another's weights starts with its own.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn declare(&self, state: &mut State) -> Result<(), TchError> {
        let mut own = State::default();
        self.predictor.params.declare(&mut own)?;
        self.target.params.declare(&mut own)?;
        self.adam.declare(&mut own);
        self.stats.declare(&mut own, false);
        own.rows("sums", &self.sums, Holds::Progress);
        state.add_progress("rnd", &own);
        Ok(())
    }

    /// Adam forgets all gradients.
    pub(super) fn restart(&mut self) -> Result<(), TchError> {
        self.adam.restart()
    }

    /// The rollout's rewards with those for novelty, `[T,N]`: of a step the distance in the
    /// observation behind it, from the actor's inputs `x [(T+1) N,O]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn reward(&mut self, x: &Tensor, rollout: &Rollout) -> Result<Tensor, TchError> {
        let (steps, envs) = self.reward.size2()?;
        let flat = self.reward.f_view([steps * envs])?;
        for at in (0..steps * envs).step_by(self.chunk.max(1) as usize) {
            let rows = self.chunk.min(steps * envs - at);
            let x = x.f_narrow(0, envs + at, rows)?;
            let off = self.target.see(&x)?.0.f_sub(&self.predictor.see(&x)?.0)?;
            let squares = off.f_mul(&off)?.f_sum_dim_intlist(&[1i64][..], false, Kind::Float)?;
            flat.f_narrow(0, at, rows)?.f_copy_(&squares.f_sqrt()?)?;
        }
        let _ = self.reward.f_mul_(&rollout.valid)?;
        if self.config.reward_normalization {
            let Place { first, all } = self.place;
            let among = |own: &Tensor| self.group.among(own, 1, self.place);
            let (distances, valid) = (among(&self.reward)?, among(&rollout.valid)?);
            for t in 0..steps {
                let now = distances.f_get(t)?;
                let _ = self.sums.f_mul_scalar_(DISCOUNT)?;
                let _ = self.sums.f_add_(&now.f_view([all, 1])?)?;
                self.stats.merge(&self.sums, &valid.f_get(t)?.f_view([all, 1])?)?;
                let deviation = self.stats.var()?.f_sqrt()?.f_to_kind(Kind::Float)?;
                let one = deviation.f_ones_like()?;
                let divisor = deviation.f_where_self(&deviation.f_gt(0.0)?, &one)?;
                let own = now.f_narrow(0, first, envs)?;
                self.reward.f_get(t)?.f_copy_(&own.f_div(&divisor)?)?;
            }
        }
        let _ = self.reward.f_mul_scalar_(self.config.weight)?;
        rollout.reward.f_add(&self.reward)
    }

    /// The mean reward for novelty of the last rollout, and sums of the predictor's steps, to be
    /// read back; the reverse is [`said`](Self::said).
    pub(super) fn sums(&self) -> Result<Tensor, TchError> {
        self.section.sums_behind(&self.reward)
    }

    /// The mean reward for novelty and the predictor's steps from numbers of
    /// [`sums`](Self::sums).
    pub(super) fn said(&self, numbers: &[f64]) -> (f64, Tally) {
        self.section.said(numbers)
    }

    /// The predictor learns from the samples `x [M,O]`, of which those with 1 in `valid [M,1]`
    /// count: as many epochs and minibatches as the policy has. Of several processes a step is
    /// along the mean of all gradients.
    ///
    /// # Errors
    /// libtorch or the device refuses.
    pub(super) fn learn(
        &mut self,
        (x, valid): (&Tensor, &Tensor),
        [epochs, minibatches]: [usize; 2],
        update: u64,
    ) -> Result<(), LearnError> {
        let total = self.order.len() as i64;
        self.section.begin()?;
        for epoch in 0..epochs {
            // The policy's order of these samples, but for a recurrent one, which has sequences.
            Vectors::widest().order(self.seed, update, epoch as u32, &mut self.order);
            let order = Tensor::f_from_slice(&self.order)?.f_to_device(x.device())?;
            for i in 0..minibatches as i64 {
                let (from, len) = batch::part(total, minibatches as i64, i);
                let index = order.f_narrow(0, from, len)?;
                let x = x.f_index_select(0, &index)?;
                self.step(&x, &valid.f_index_select(0, &index)?)?;
            }
        }
        Ok(())
    }

    /// One step along the gradient of the mean square error of samples `x [B,O]`.
    fn step(&mut self, x: &Tensor, valid: &Tensor) -> Result<(), LearnError> {
        self.gradient(x, valid)?;
        self.section.step(&mut self.adam, &mut self.predictor.params)
    }

    fn gradient(&mut self, x: &Tensor, valid: &Tensor) -> Result<(), TchError> {
        let wanted = self.target.see(x)?.0;
        let (out, space) = self.predictor.see(x)?;
        let count = valid.f_sum(Kind::Float)?;
        let share = valid.f_div(&count.f_mul_scalar(self.config.num_outputs as f64)?)?;
        let off = out.f_sub(&wanted)?;
        let weighed = off.f_mul(&share)?;
        let loss = weighed.f_mul(&off)?.f_sum(Kind::Float)?;
        // One over it is not finite where no sample is valid.
        self.section.losses(&count.f_reciprocal()?, &loss)?;
        let d = weighed.f_mul_scalar(2.0)?;
        let Embedding { head, trunk, .. } = &self.predictor;
        head.backward(space.output(x), &d)?;
        if let Some(d_output) = space.d_output() {
            head.backward_input(&d, d_output)?;
        }
        trunk.backward(x, &space)
    }

    /// Gradient and parameters of the predictor.
    #[cfg(test)]
    pub(super) fn predictor(&self) -> &Params {
        &self.predictor.params
    }
}

#[cfg(test)]
mod tests;
