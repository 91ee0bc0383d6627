//! A reward for moving as a reference motion does: `[amp]`.
//!
//! Source: Peng et al., "AMP: Adversarial motion priors for stylized physics-based character
//! control", 2021, with the formulas of amp-rsl-rl 2.2.3 (`networks/discriminator.py`,
//! `algorithms/amp_ppo.py`): cross-entropy, a penalty on the gradient at the reference's
//! transitions, observations normalised by the statistics of both sides, and the reward
//! `softplus` of the output. Gradients are written by hand, as operations of tensors, on a host by
//! one thread, so that bits do not depend on how many there are.

mod config;
mod discriminator;
mod windows;

pub use config::AmpConfig;
use config::AmpRecipe;

use super::Ppo;
use crate::learner::State;
use crate::learner::error::LearnError;
use crate::learner::nn::Adam;
use crate::learner::nn::device::LearnKernels;
use crate::learner::nn::host::Vectors;
use crate::learner::normalizer::Normalizer;
use crate::learner::off_policy::section::{Section, Tally};
use crate::learner::state::{Count, Holds};
use crate::learner::tensors::zeros;
use discriminator::Discriminator;
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use ostler_sim::config::ConfigError;
use ostler_sim::env::{Demonstrations, EnvSpec};
use ostler_sim::memory;
use ostler_sim::rng::{Purpose, philox};
use tch::{Device, Kind, TchError, Tensor};
use windows::Windows;

/// Most transitions of the policy that are remembered, amp-rsl-rl's, and of how many rollouts at
/// most: a checkpoint holds them.
const REMEMBERED: i64 = 100_000;
const ROLLOUTS: i64 = 8;
/// Most transitions of either side in a step: more take time and tell nothing new.
const MOST_ROWS: i64 = 1024;
/// Transitions that are judged at a time.
const CHUNK: i64 = 8192;

impl AmpConfig {
    /// Memory beside the policy's for rollouts of so many samples (bytes): of buffers, and of what
    /// checkpoints hold. Nothing where a term is not one of the task's.
    pub fn bytes(&self, spec: &EnvSpec, samples: u64) -> [u64; 2] {
        let width = self.columns(spec).map_or(0, |columns| columns.len() as u64);
        let row = self.steps as u64 * width + 1;
        let ring = (REMEMBERED as u64).min((ROLLOUTS as u64).saturating_mul(samples));
        // The transitions of a rollout, and copies on the way to them.
        let passing = samples.saturating_mul(3 * row);
        let widths = [row as i64 - 1].into_iter().chain(self.hidden_dims.iter().copied());
        let pairs = widths.zip(self.hidden_dims.iter().copied().chain([1]));
        let weights: i64 =
            pairs.map(|(inputs, outputs)| (inputs + 1).saturating_mul(outputs)).sum();
        // Weights, gradient and moments.
        let weights = 4 * weights.unsigned_abs();
        match width {
            0 => [0, 0],
            _ => [4 * passing, 4 * ring.saturating_mul(row).saturating_add(weights)],
        }
    }
}

/// The discriminator, its optimiser, and what it learns from.
#[derive(Debug)]
pub(super) struct Amp {
    config: AmpConfig,
    windows: Windows,
    discriminator: Discriminator,
    adam: Adam,
    section: Section,
    /// Of single observations.
    norm: Normalizer,
    /// The reference's compared columns `[F,W]`.
    reference: Tensor,
    /// First rows of its transitions, int64 `[S]`, and of the rows of one `[k]`.
    starts: [Tensor; 2],
    /// Transitions of the policy, the weight of each behind it `[C,k W + 1]`, a ring.
    remembered: Tensor,
    /// Transitions that were ever put there.
    inserted: Count,
    /// The last rollout's `[T N,k W]` and their weights `[T N,1]`.
    seen: [Tensor; 2],
    /// Their rewards `[T,N]`.
    reward: Tensor,
    /// Room for an order of them.
    order: Vec<i64>,
    /// Steps of an update, and transitions of either side in each.
    passes: [i64; 2],
    /// Those that learn together, and which rows of a step are this one's.
    group: Group,
    place: Place,
    seed: u64,
}

impl Ppo {
    /// Rewards transitions that resemble those of `demonstrations`, too.
    ///
    /// # Errors
    /// A term that the task does not have, motions that do not fit the task or are too short, or
    /// memory does not suffice.
    pub fn with_demonstrations(
        mut self,
        config: &AmpConfig,
        spec: &EnvSpec,
        demonstrations: &Demonstrations,
    ) -> Result<Self, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let ppo = [self.config.num_learning_epochs, self.config.num_mini_batches];
        let sizes = [self.steps, self.envs];
        let mut amp =
            Amp::new(config, (spec, demonstrations), sizes, ppo, self.seed, self.policy.device)?;
        if let Some(kernels) = LearnKernels::of(self.policy.device)? {
            amp.with_kernels(&kernels)?;
        }
        self.amp = Some(amp);
        self.declare()?;
        Ok(self)
    }
}

impl Amp {
    /// For rollouts of `steps` steps of `envs` environments.
    fn new(
        config: &AmpConfig,
        (spec, demonstrations): (&EnvSpec, &Demonstrations),
        [steps, envs]: [i64; 2],
        [epochs, minibatches]: [usize; 2],
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        if let Some(error) = config.errors().into_iter().next() {
            return Err(error.into());
        }
        let columns = config.columns(spec)?;
        let (reference, starts) = reference(config, (spec, demonstrations), &columns)?;
        let (width, k) = (columns.len() as i64, config.steps as i64);
        let total = steps * envs;
        let room = REMEMBERED.min(ROLLOUTS * total);
        let discriminator = Discriminator::new(k * width, &config.hidden_dims, seed, device)?;
        let mut counts = State::default();
        let float = |what: &str, size: &[i64]| zeros(what, size, Kind::Float, device);
        let minibatches = minibatches as i64;
        Ok(Self {
            windows: Windows::new(&columns, k, envs, device)?,
            adam: Adam::new(discriminator.params.len(), config.learning_rate, device)?,
            discriminator,
            section: Section::new(3, 0.0, device)?,
            norm: Normalizer::new("observations", width, device)?,
            reference: reference.f_to_device(device)?,
            starts: [starts.f_to_device(device)?, Tensor::f_arange(k, (Kind::Int64, device))?],
            remembered: float("the policy's transitions", &[room, k * width + 1])?,
            inserted: counts.count("inserted"),
            seen: [Tensor::new(), Tensor::new()],
            reward: float("rewards of style", &[steps, envs])?,
            order: memory::zeroed("an order of transitions", total as usize)?,
            passes: [epochs as i64 * minibatches, (total / minibatches).clamp(1, MOST_ROWS)],
            group: Group::default(),
            place: Place { first: 0, all: envs },
            config: config.clone(),
            seed,
        })
    }

    /// From now on with other processes: all remember the transitions of all, and each takes its
    /// part of a step's. Comes before [`declare`](Self::declare).
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn join(
        &mut self,
        group: &Group,
        place: Place,
        minibatches: usize,
    ) -> Result<(), LearnError> {
        let total = self.reward.size2()?.0 * place.all;
        let rows = (total / minibatches as i64).clamp(1, MOST_ROWS);
        self.passes[1] = (rows / group.size() as i64).max(1);
        let room = REMEMBERED.min(ROLLOUTS * total);
        let size = [room, self.remembered.size2()?.1];
        let device = self.remembered.device();
        self.remembered = zeros("the policy's transitions", &size, Kind::Float, device)?;
        self.order = memory::zeroed("an order of transitions", total as usize)?;
        self.windows.join(group, place)?;
        self.section.join(group);
        self.norm.join(group);
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

    /// Enters everything that an update changes into a learner's state. None of it is of the
    /// policy: a run that starts from another's weights starts with its own.
    pub(super) fn declare(&mut self, state: &mut State) -> Result<(), TchError> {
        let mut own = State::default();
        self.discriminator.params.declare(&mut own)?;
        self.adam.declare(&mut own);
        self.norm.declare(&mut own, false);
        self.inserted = own.count("inserted");
        // Another number of environments has another ring; what is too much of it has no weight.
        own.rows("transitions", &self.remembered, Holds::Progress);
        if let Some(before) = self.windows.before() {
            own.rows("before", before, Holds::Progress);
        }
        state.add_progress("amp", &own);
        Ok(())
    }

    /// Adam forgets all gradients.
    pub(super) fn restart(&mut self) -> Result<(), TchError> {
        self.adam.restart()
    }

    /// After a checkpoint was loaded.
    pub(super) fn derive(&mut self) -> Result<(), TchError> {
        self.norm.derive()
    }

    /// Rewards of a rollout for style `[T,N]`, with their weight: 0 where a step's transition was
    /// not seen as a whole.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn reward(&mut self, rollout: &Rollout) -> Result<Tensor, TchError> {
        let [x, weight] = self.windows.of(rollout)?;
        let total = weight.size2()?.0;
        let flat = self.reward.f_view([total, 1])?;
        for at in (0..total).step_by(CHUNK as usize) {
            let rows = CHUNK.min(total - at);
            let x = self.normalized(&x.f_narrow(0, at, rows)?)?;
            let style = self.discriminator.reward(&x, self.config.recipe)?;
            flat.f_narrow(0, at, rows)?.f_copy_(&style)?;
        }
        let _ = flat.shallow_clone().f_mul_(&weight)?.f_mul_scalar_(self.config.weight)?;
        self.seen = [x, weight];
        Ok(self.reward.shallow_clone())
    }

    /// Transitions `[B,k W]` with every observation normalised.
    fn normalized(&self, x: &Tensor) -> Result<Tensor, TchError> {
        let x = x.f_contiguous()?;
        let single = x.f_view([-1, self.windows.width()])?;
        let out = single.f_empty_like()?;
        self.norm.apply(&single, &out)?;
        out.f_view_as(&x)
    }

    /// The mean reward for style of the last rollout, and sums of the discriminator's steps, to be
    /// read back; the reverse is [`said`](Self::said).
    pub(super) fn sums(&self) -> Result<Tensor, TchError> {
        self.section.sums_behind(&self.reward)
    }

    /// The mean reward for style and the discriminator's steps from numbers of
    /// [`sums`](Self::sums). The steps' own numbers: the gradient's penalty, and the mean
    /// probability that the policy's transitions and the reference's have of being the reference's.
    pub(super) fn said(&self, numbers: &[f64]) -> (f64, Tally) {
        self.section.said(numbers)
    }

    /// Learns to tell the policy's transitions, the last rollout's among them, from the
    /// reference's.
    ///
    /// # Errors
    /// libtorch or the device refuses.
    pub(super) fn learn(&mut self, update: u64) -> Result<(), LearnError> {
        self.remember(update)?;
        self.section.begin()?;
        let [passes, rows] = self.passes;
        let room = self.remembered.size2()?.0;
        let filled = room.min(i64::try_from(self.inserted.get()).unwrap_or(room));
        let places = [filled, self.starts[0].size1()?];
        let drawn = self.drawn(update, places)?;
        for pass in 0..passes {
            let [own, other] = [0, 1].map(|side| drawn.f_get(2 * pass + side));
            let own = self.remembered.f_index_select(0, &own?)?;
            let inputs = own.size2()?.1 - 1;
            let (x, weight) = (own.f_narrow(1, 0, inputs)?, own.f_narrow(1, inputs, 1)?);
            let [starts, offsets] = &self.starts;
            let from = starts.f_index_select(0, &other?)?.f_view([rows, 1])?;
            let rows_of = from.f_add(offsets)?.f_view([-1])?;
            let other = self.reference.f_index_select(0, &rows_of)?.f_view([rows, inputs])?;
            self.step(&x, &weight, &other)?;
        }
        Ok(())
    }

    /// Puts the last rollout's transitions into the ring: where there are more than it has room
    /// for, some of them.
    fn remember(&mut self, update: u64) -> Result<(), TchError> {
        let rows = Tensor::f_cat(&self.seen, 1)?;
        let (steps, envs) = self.reward.size2()?;
        let rows = self.group.among(&rows.f_view([steps, envs, -1])?, 1, self.place)?;
        let rows = rows.f_view([steps * self.place.all, -1])?;
        let (total, room) = (rows.size2()?.0, self.remembered.size2()?.0);
        let rows = match total > room {
            true => {
                Vectors::widest().order(self.seed, update, u32::MAX, &mut self.order);
                let some = Tensor::f_from_slice(&self.order[..room as usize])?;
                rows.f_index_select(0, &some.f_to_device(rows.device())?)?
            }
            false => rows,
        };
        let count = total.min(room);
        let at = i64::try_from(self.inserted.get() % room.max(1) as u64).unwrap_or(0);
        let first = count.min(room - at);
        for (to, from, len) in [(at, 0, first), (0, first, count - first)] {
            self.remembered.f_narrow(0, to, len)?.f_copy_(&rows.f_narrow(0, from, len)?)?;
        }
        self.inserted.add(count as u64);
        Ok(())
    }

    /// Places of all steps' transitions, evenly among so many of the policy's and of the
    /// reference's, int64 `[2 P,B]`.
    fn drawn(&self, update: u64, places: [i64; 2]) -> Result<Tensor, TchError> {
        let [passes, own] = self.passes;
        let rows = own * self.group.size() as i64;
        let mut all = Vec::with_capacity((2 * passes * rows) as usize);
        for pass in 0..passes {
            for (side, &count) in places.iter().enumerate() {
                let step = update.wrapping_mul(passes as u64).wrapping_add(pass as u64);
                let words = (0..(rows as u32).div_ceil(4)).flat_map(|block| {
                    philox(self.seed, side as u32, Purpose::ReplayDraw, step, block)
                });
                let place = |word| ((u64::from(word) * count as u64) >> 32) as i64;
                all.extend(words.take(rows as usize).map(place));
            }
        }
        let all = Tensor::f_from_slice(&all)?.f_view([2 * passes, rows])?;
        let all = all.f_narrow(1, own * self.group.rank() as i64, own)?;
        all.f_to_device(self.remembered.device())
    }

    /// One step along the gradient of the policy's transitions `x [B,k W]` with their weights and
    /// the reference's; then both sides' observations enter the statistics.
    fn step(&mut self, x: &Tensor, weight: &Tensor, other: &Tensor) -> Result<(), LearnError> {
        let both = Tensor::f_cat(&[x, other], 0)?;
        self.gradient(&both, weight)?;
        self.section.step(&mut self.adam, &mut self.discriminator.params)?;
        let weights = Tensor::f_cat(&[weight, &weight.f_ones_like()?], 0)?;
        let each = weights.f_expand([-1, self.config.steps as i64], false)?.f_reshape([-1, 1])?;
        self.norm.merge(&both.f_view([-1, self.windows.width()])?, &each)?;
        Ok(())
    }

    fn gradient(&mut self, both: &Tensor, weight: &Tensor) -> Result<(), TchError> {
        let x = self.normalized(both)?;
        let tamed = (self.config.gradient_penalty, self.config.recipe);
        let said = self.discriminator.gradient(&x, weight, tamed)?;
        // One over it is not finite where no transition has weight.
        self.section.losses(&weight.f_sum(Kind::Float)?.f_reciprocal()?, &said.loss)?;
        self.section.own(0, &said.penalty)?;
        let [own, other] = &said.scores;
        self.section.own(1, own)?;
        self.section.own(2, other)
    }
}

/// The compared columns of all motions `[F,W]`, and where their transitions begin, int64 `[S]`.
fn reference(
    config: &AmpConfig,
    (spec, all): (&EnvSpec, &Demonstrations),
    columns: &[i64],
) -> Result<(Tensor, Tensor), LearnError> {
    let refuse = |why: String, help: &str| ConfigError::new("amp.observations", why).help(help);
    let width = spec.obs.critic.unwrap_or(spec.obs.policy);
    if all.width != width {
        let why = format!("rows of the reference motions have {} columns, not {width}", all.width);
        return Err(refuse(why, "motions of this task, as it is now").into());
    }
    let starts: Vec<i64> = all.starts(config.steps).into_iter().map(|row| row as i64).collect();
    if starts.is_empty() {
        let why = format!("no reference motion has {} control steps", config.steps);
        return Err(refuse(why, "longer motions, or smaller amp.steps").into());
    }
    let mut rows = Vec::new();
    for (frame, row) in all.rows.chunks_exact(width).enumerate() {
        for (&column, at) in columns.iter().zip(0..) {
            let number = row.get(column as usize).copied().unwrap_or(f32::NAN);
            if !number.is_finite() {
                let why =
                    format!("compared column {at} of step {frame} of the motions is {number}");
                return Err(refuse(why, "motions of finite numbers").into());
            }
            rows.push(number);
        }
    }
    let rows = Tensor::f_from_slice(&rows)?.f_view([-1, columns.len() as i64])?;
    Ok((rows, Tensor::f_from_slice(&starts)?))
}

#[cfg(test)]
mod tests;
