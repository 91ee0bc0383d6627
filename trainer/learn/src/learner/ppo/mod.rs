//! Proximal policy optimisation (Schulman et al. 2017) as robotics practises it.
//!
//! [`Ppo::update`](crate::learner::Learner::update) reads top to bottom: inputs,
//! values, advantages, then minibatch after minibatch forward, loss, backward, step.
//! On a device all of it is tensor operations; numbers come back once, at the end. On a
//! host minibatches go through networks and loss in blocks (`blocks.rs`), on several threads.

mod amp;
mod batch;
mod blocks;
mod config;
mod finish;
mod gae;
mod imitation;
mod kernel;
mod loss;
mod method;
mod mirrored;
mod orders;
mod prepare;
mod priority;
mod range;
mod reference;
mod reflect;
mod rnd;
mod sequences;
mod share;
mod stale;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod values;

pub use amp::AmpConfig;
pub use config::{AdvantageNorm, ImitationConfig, PpoConfig, Schedule, Staleness, ValueLoss};
pub use method::PpoMethod;
pub use rnd::RndConfig;

use super::fault::{FaultTime, Faults};
use super::nn::Adam;
use super::nn::device::{LearnKernels, not_loaded};
use super::nn::host::half::Half;
use super::nn::host::kernels::MOST_IN_ORDER;
use super::policy::CriticNorm;
use super::policy::block::BlockNet;
use super::state::{Count, RateShare};
use super::{
    ActorConfig, ActorCritic, CriticConfig, Learner, State, TrainedPolicy, UpdateStats,
    error::LearnError,
};
use amp::Amp;
use batch::{Columns, MiniBatch, Samples};
use blocks::Blocks;
use finish::Host;
use imitation::Teacher;
use kernel::LossKernel;
use mirrored::Mirrored;
use orders::Orders;
use ostler_collector::Rollout;
use ostler_collector::peers::Group;
use ostler_collector::transfer::host_doubles;
use ostler_sim::config::ConfigError;
use ostler_sim::device::Counts;
use ostler_sim::env::{ActionSpace, EnvSpec};
use priority::Priorities;
use range::RewardRange;
use rnd::Rnd;
use sequences::{Part, Sequences};
use stats::Accumulator;
use std::ops::Range;
use std::time::Instant;
use tch::{Device, Tensor};

/// The learner: a policy, its optimiser and every buffer an update needs.
#[derive(Debug)]
pub struct Ppo {
    config: PpoConfig,
    policy: ActorCritic,
    adam: Adam,
    columns: Columns,
    samples: Samples,
    path: Path,
    /// Units that minibatches are drawn from.
    sequences: Sequences,
    /// Which of all processes' they are.
    part: Part,
    /// Those that learn together.
    group: Group,
    teacher: Option<Teacher>,
    /// Reflections of samples, where they are learnt from.
    mirrored: Option<Mirrored>,
    /// A reward for what is new, if there is one.
    rnd: Option<Rnd>,
    /// A reward for moving as a reference does, if there is one.
    amp: Option<Amp>,
    /// How often, where not all once.
    priorities: Option<Priorities>,
    values: values::Values,
    /// Bounds of values that rewards allow.
    range: RewardRange,
    accumulator: Accumulator,
    /// How far a value may move in an update, without dimensions; the same on a host.
    value_clip: Tensor,
    host_value_clip: f32,
    /// How large advantages are beside what they are taken for at least, 0..1, without
    /// dimensions: the policy's steps are shorter by it.
    signal: Tensor,
    /// The divergence at which the policy stops in this update, without dimensions.
    stop: Tensor,
    /// All epochs' orders at once, where minibatches are tensors.
    orders: Option<Orders>,
    state: State,
    /// Updates done; keys the permutations.
    updates: Count,
    rate_share: RateShare,
    /// How much of the run is left, 0..1.
    left: f64,
    faults: Faults,
    /// Traffic between host and device.
    crossed: Counts,
    seed: u64,
    steps: i64,
    envs: i64,
    /// Whether the critic sees exactly the actor's observations.
    same_inputs: bool,
    /// Widths of the actor's and the critic's inputs.
    widths: [i64; 2],
}

/// How a minibatch becomes a gradient.
#[derive(Debug)]
enum Path {
    /// Not chosen yet.
    None,
    /// In the host's memory, block by block; the rest of an update is then passes over that
    /// memory, too.
    Blocks(Box<Blocks>),
    /// On a device: products and activations as operations of tensors, the rest as kernels.
    Tensors {
        /// Of the larger and, where sizes differ, the smaller size.
        minibatches: Vec<MiniBatch>,
        /// The loss.
        kernel: Box<LossKernel>,
    },
    /// The same by automatic differentiation.
    Reference {
        /// As above.
        minibatches: Vec<MiniBatch>,
        /// Where the networks' parameters lie.
        places: Box<BlockNet>,
    },
}

impl Ppo {
    /// Builds the networks and allocates for rollouts of `steps` steps. `seed` keys
    /// every draw (initialisation, permutations).
    pub fn new(
        config: &PpoConfig,
        actor: &ActorConfig,
        critic: &CriticConfig,
        spec: &EnvSpec,
        steps: usize,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        Self::among(config, (actor, critic), spec, [steps, spec.rows()], (seed, device))
    }

    /// The same for a process whose minibatches are of `rows` rows a step, those of other processes
    /// among them: its own part of one may be empty.
    fn among(
        config: &PpoConfig,
        (actor, critic): (&ActorConfig, &CriticConfig),
        spec: &EnvSpec,
        [steps, rows]: [usize; 2],
        (seed, device): (u64, Device),
    ) -> Result<Self, LearnError> {
        let total = spec.rows().saturating_mul(steps);
        let fits = config.validate_rollout(steps, rows.saturating_mul(steps), actor.is_recurrent());
        // A process draws what the predictor learns from out of its own samples.
        let own = match config.rnd.is_on() {
            true => config.validate_rollout(steps, total, false),
            false => Vec::new(),
        };
        let errors = [config.validate(), fits, own].concat();
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        if total > MOST_IN_ORDER {
            let why = format!("{total} samples in a rollout; at most {MOST_IN_ORDER} can be drawn");
            return Err(ConfigError::new("env.num_envs", why).into());
        }
        let (steps, envs, total) = match (i64::try_from(steps), i64::try_from(total)) {
            (Ok(t), Ok(m)) if m > 0 => (t, spec.rows() as i64, m),
            _ => return Err(ConfigError::new("env.num_envs", "no samples to learn from").into()),
        };
        let _no_grad = tch::no_grad_guard();
        let mut policy = ActorCritic::new(actor, critic, spec, seed, device)?;
        if config.normalize_returns {
            policy.normalize_returns()?;
        }
        let action = spec.action.width() as i64;
        let columns = Columns {
            action,
            dist: policy.net.dist_width(),
            std: if matches!(spec.action, ActionSpace::Discrete(_)) { 0 } else { action },
            target: match config.imitation.is_on() {
                true => policy.net.dist_width(),
                false => 0,
            },
        };
        let obs = spec.obs.policy as i64;
        // The critic sees a recurrent actor's hidden state, unless they share layers.
        let seen = match policy.net.is_shared() {
            true => 0,
            false => policy.net.hidden_width(),
        };
        let critic_obs = spec.critic.unwrap_or(spec.obs.policy) as i64 + seen;
        let alike = spec.critic.is_none() && matches!(policy.norm.critic, CriticNorm::AsActor);
        let same = alike && seen == 0;
        let sequences = match actor.is_recurrent() {
            false => 1,
            true => config.sequence_steps(steps as usize),
        };
        let sequences = Sequences::new(sequences, envs as usize, total as usize);

        let all = policy.num_parameters();
        let rate = config.learning_rate;
        let adam = match policy.net.is_shared() {
            true => Adam::new(all, rate, device)?,
            false => {
                let actor = policy.params.front("actor");
                let critic = config.critic_rate();
                Adam::in_parts(&[(actor, rate), (all - actor, critic)], device)?
            }
        };
        let adam = adam.decaying(config.weight_decay);
        let range = RewardRange::new(device)?;
        let accumulator = Accumulator::new(device)?;
        let rnd = match config.rnd.is_on() {
            true => Some(Rnd::new(config, obs, [steps, envs], seed, device)?),
            false => None,
        };
        let mut counts = State::default();
        let mut ppo = Self {
            updates: counts.count("ppo.updates"),
            rate_share: counts.rate_share("ppo.lr_scale"),
            state: State::default(),
            adam,
            range,
            samples: Samples::new(columns, total, device)?,
            values: values::Values::new(&policy, spec, steps, alike)?,
            accumulator,
            value_clip: Tensor::f_zeros([0i64; 0], (tch::Kind::Float, device))?,
            host_value_clip: 0.0,
            signal: Tensor::f_ones([0i64; 0], (tch::Kind::Double, device))?,
            stop: Tensor::f_zeros([0i64; 0], (tch::Kind::Double, device))?,
            orders: None,
            config: config.clone(),
            policy,
            columns,
            path: Path::None,
            sequences,
            part: Part::whole(sequences),
            group: Group::default(),
            teacher: None,
            mirrored: None,
            rnd,
            amp: None,
            priorities: None,
            left: 1.0,
            faults: Faults::default(),
            crossed: Counts::default(),
            seed,
            steps,
            envs,
            same_inputs: same,
            widths: [obs, critic_obs],
        };
        ppo.declare()?;
        match LearnKernels::of(device)? {
            Some(kernels) => ppo.learn_with(&kernels)?,
            None => ppo.path = ppo.in_blocks(1, None)?,
        }
        Ok(ppo)
    }

    /// Enters all parts into a state of their own, which has not been captured yet.
    fn declare(&mut self) -> Result<(), LearnError> {
        let mut state = State::default();
        self.policy.declare(&mut state)?;
        self.adam.declare(&mut state);
        if let Some(rnd) = &self.rnd {
            rnd.declare(&mut state)?;
        }
        state.optional("critic.reward_range", self.range.seen(), 0.0);
        state.mark("gradient", &self.policy.params.grad);
        state.mark("parameters", &self.policy.params.theta);
        state.mark("loss", &self.accumulator.losses().f_get(loss::VALUE as i64)?);
        self.updates = state.count("ppo.updates");
        self.rate_share = state.rate_share("ppo.lr_scale");
        if let Some(mirrored) = &self.mirrored {
            mirrored.declare(&mut state);
        }
        if let Some(amp) = &mut self.amp {
            amp.declare(&mut state)?;
        }
        self.state = state.ready()?;
        Ok(())
    }

    fn in_blocks(&self, threads: usize, half: Option<Half>) -> Result<Path, LearnError> {
        let params = &self.policy.params;
        let actor = match self.policy.net.is_shared() {
            true => 0,
            false => params.front("actor") as usize,
        };
        let parameters = (params.len() as usize, actor);
        let parts = self.config.num_mini_batches;
        let drawn = (self.part, parts, self.same_inputs);
        let net = self.places();
        let mut blocks = Blocks::new(
            net,
            &self.config,
            self.columns,
            (drawn, self.sides()),
            parameters,
            (threads, half),
        )?;
        blocks.targets = self.mirrored.as_ref().and_then(|m| m.targets(self.columns));
        Ok(Path::Blocks(Box::new(blocks)))
    }

    /// Epochs, and samples or sequences of each.
    fn size_of_orders(&self) -> [i64; 2] {
        let epochs = self.config.num_learning_epochs;
        [epochs, self.sequences.count()].map(|n| n as i64)
    }

    fn automatic(&self) -> Result<Path, LearnError> {
        Ok(Path::Reference { minibatches: self.tensors()?, places: Box::new(self.places()) })
    }

    /// On a host: learns with so many threads, which change nothing but the time, and with
    /// products of hidden layers in bfloat16 where there is a `half`.
    ///
    /// # Errors
    /// Memory does not suffice, or the system refuses a thread.
    pub fn on_processor(mut self, threads: usize, half: Option<Half>) -> Result<Self, LearnError> {
        if self.on_host() {
            self.path = self.in_blocks(threads, half)?;
        }
        Ok(self)
    }

    /// Learns with these kernels: on a GPU it does already.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn with_kernels(mut self, kernels: &LearnKernels) -> Result<Self, LearnError> {
        self.learn_with(kernels)?;
        Ok(self)
    }

    fn learn_with(&mut self, kernels: &LearnKernels) -> Result<(), LearnError> {
        self.adam.with_kernels(kernels)?;
        if let Some(rnd) = &mut self.rnd {
            rnd.with_kernels(kernels)?;
        }
        if let Some(amp) = &mut self.amp {
            amp.with_kernels(kernels)?;
        }
        let size = self.size_of_orders();
        self.orders = Some(Orders::on_device(size, kernels, self.policy.device)?);
        self.path = match self.policy.net.hidden_width() {
            0 => {
                let shape = self.columns.shape(&self.config);
                let minibatches = self.tensors()?;
                let rows = minibatches.first().map_or(0, |mb| mb.rows);
                let kernel = LossKernel::new(kernels, shape, rows, self.policy.device)?;
                Path::Tensors { minibatches, kernel: Box::new(kernel) }
            }
            // A recurrent policy has no other backward pass on a device.
            _ => self.automatic()?,
        };
        Ok(())
    }

    /// Takes gradients by libtorch's automatic differentiation: what tests compare with.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn by_reference(mut self) -> Result<Self, LearnError> {
        self.path = self.automatic()?;
        if self.orders.is_none() {
            let size = self.size_of_orders();
            self.orders = Some(Orders::on_host(size, self.policy.device)?);
        }
        Ok(self)
    }

    /// Whether minibatches are computed in the host's memory.
    fn on_host(&self) -> bool {
        matches!(self.path, Path::Blocks(_))
    }

    /// Where the networks' parameters lie.
    fn places(&self) -> BlockNet {
        self.policy.net.blocks(self.widths.map(|w| w as usize))
    }

    /// Minibatches as tensors.
    fn tensors(&self) -> Result<Vec<MiniBatch>, LearnError> {
        let parts = self.config.num_mini_batches as i64;
        let (total, steps) = (self.sequences.count() as i64, self.sequences.steps as i64);
        let largest = (total + parts - 1) / parts;
        let steps = steps * self.sides() as i64;
        let [obs, critic_obs] = self.widths;
        let own = (!self.same_inputs).then_some(critic_obs);
        let (net, device) = (&self.policy.net, self.policy.device);
        let full = MiniBatch::new(net, self.columns, largest * steps, obs, own, device)?;
        let smaller = match total % parts {
            0 => None,
            _ => Some(full.narrow(self.columns, (largest - 1) * steps)?),
        };
        Ok(std::iter::once(full).chain(smaller).collect())
    }

    /// The policy as it is now.
    pub fn policy(&self) -> &ActorCritic {
        &self.policy
    }

    /// The policy, to act with.
    pub fn policy_mut(&mut self) -> &mut ActorCritic {
        &mut self.policy
    }

    /// Whether observations are normalised, so that [`warm_up`](Self::warm_up) is
    /// worth its steps before the first iteration of a fresh run.
    pub fn wants_warm_up(&self) -> bool {
        self.policy.norm.actor.is_some() || matches!(self.policy.norm.critic, CriticNorm::Own(_))
    }

    /// Takes only the statistics of observations from a rollout: before the first
    /// iteration of a fresh run, so that it does not start unnormalised.
    pub fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        self.check_shape(rollout)?;
        let _no_grad = tch::no_grad_guard();
        let device = self.policy.device;
        self.policy.norm.merge(rollout, device, &self.crossed)
    }

    /// How much of the run is done, 0..1, for `schedule = "linear"`.
    pub fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        self.left = (1.0 - done).clamp(0.0, 1.0);
        if self.config.schedule == Schedule::Linear {
            self.set_rates(self.start_rate())?;
        }
        Ok(())
    }

    /// Sets the policy's learning rate, and the critic's to what it is at this time.
    fn set_rates(&self, rate: f64) -> Result<(), LearnError> {
        self.adam.set_rate(0, rate)?;
        if self.adam.parts() > 1 {
            let share = self.config.critic_rate() / self.config.learning_rate;
            self.adam.set_rate(1, share * self.start_rate())?;
        }
        Ok(())
    }

    /// The learning rate as the configuration has it at this time of the run, lowered
    /// by what roll-backs have lowered it.
    fn start_rate(&self) -> f64 {
        let left = match self.config.schedule {
            Schedule::Linear => self.left,
            _ => 1.0,
        };
        self.config.learning_rate * self.rate_share.get() * left
    }

    fn check_shape(&self, rollout: &Rollout) -> Result<(), LearnError> {
        let got = (rollout.steps, rollout.envs);
        if got == (self.steps, self.envs) {
            return Ok(());
        }
        let words = |(t, n): (i64, i64)| format!("{t} steps of {n} environments");
        Err(LearnError::Shape { expected: words((self.steps, self.envs)), got: words(got) })
    }

    /// Puts faults that are due here into the update.
    fn poison(&mut self, place: FaultTime) -> Result<(), LearnError> {
        if self.faults.poison(&self.state, place, self.updates.get())? {
            self.policy.norm.derive()?;
        }
        Ok(())
    }

    /// One minibatch in the host's memory: `range` of the present order.
    fn learn_on_host(&mut self, range: Range<usize>, host: &mut Host) -> Result<(), LearnError> {
        self.poison(FaultTime::Begin)?;
        let policy = host.policy_learns()? || self.policy.net.is_shared();
        let target = self.target_coef();
        if let Path::Blocks(blocks) = &mut self.path {
            blocks.take(range);
            let limits = [self.host_value_clip, target as f32];
            let counted = host.run(blocks, &self.config, policy, limits, &self.group)?;
            self.pool(counted.0, counted.1)?;
        }
        let policy = host.policy_goes_on()?;
        self.poison(FaultTime::Judged)?;
        self.finish_on_host(host, policy)?;
        self.policy.net.project()?;
        self.faults.minibatch += 1;
        Ok(())
    }

    /// One minibatch as tensors: forward, loss, backward, step.
    fn learn(&mut self, which: usize, index: &Tensor) -> Result<(), LearnError> {
        self.poison(FaultTime::Begin)?;
        let ActorCritic { net, params, .. } = &self.policy;
        let (config, stats) = (&self.config, self.accumulator.losses());
        let terms = (&self.value_clip, self.target_coef());
        let steps = self.sequences.steps as i64;
        let index = &match self.sides() {
            1 => index.shallow_clone(),
            // The sequences of the reflections stand behind all of them.
            _ => Tensor::f_cat(&[index, &index.f_add_scalar(self.sequences.count() as i64)?], 0)?,
        };
        let mirrored = self.mirrored.as_ref().filter(|m| m.loss > 0.0);
        match &self.path {
            Path::None | Path::Blocks(_) => {}
            Path::Reference { minibatches, places } => {
                let mb = &minibatches[which];
                let index = self.sequences.index(index)?;
                mb.gather(&self.samples, &index)?;
                let memory = self.samples.memory.as_ref();
                let memory = memory.map(|m| m.gather(&index, steps)).transpose()?;
                let aim = mirrored.map(|m| (m, steps));
                reference::gradient(config, (places, params), mb, (memory, aim), terms, stats)?;
            }
            Path::Tensors { minibatches, kernel } => {
                let mb = &minibatches[which];
                mb.gather(&self.samples, index)?;
                mb.forward(net)?;
                if let (Some(mirrored), Some(target)) = (mirrored, &mb.target) {
                    mirrored.aim(&mb.space.dist, target, steps)?;
                }
                kernel.run(config, mb, terms, stats)?;
                mb.backward(net)?;
            }
        }
        self.poison(FaultTime::Judged)?;
        self.finish()?;
        self.policy.net.project()?;
        self.faults.minibatch += 1;
        Ok(())
    }

    /// All epochs' minibatches, in the host's memory.
    fn learn_all_on_host(&mut self) -> Result<(), LearnError> {
        let mut host = self.host()?;
        for epoch in 0..self.config.num_learning_epochs {
            let drawn = self.drawn_on_host(epoch)?;
            if let Path::Blocks(blocks) = &mut self.path {
                blocks.draw_order(self.seed, self.updates.get(), epoch as u32);
                blocks.replace(drawn.as_deref());
            }
            for (from, len) in self.parts() {
                ostler_collector::go_on()?;
                self.learn_on_host(from as usize..(from + len) as usize, &mut host)?;
            }
        }
        Ok(())
    }

    /// All epochs' minibatches, as tensors.
    fn learn_all(&mut self) -> Result<(), LearnError> {
        let orders = self.orders.as_mut().ok_or_else(not_loaded)?;
        let orders = orders.draw(self.seed, self.updates.get())?;
        let largest = self.parts().map(|(_, len)| len).max();
        for epoch in 0..self.config.num_learning_epochs {
            let mut order = orders.f_get(epoch as i64)?;
            if let Some(drawn) = self.drawn(epoch)? {
                order = drawn.f_index_select(0, &order)?;
            }
            for (from, len) in self.parts() {
                ostler_collector::go_on()?;
                let which = usize::from(Some(len) != largest);
                self.learn(which, &order.f_narrow(0, from, len)?)?;
            }
        }
        Ok(())
    }

    /// The predictor of `ppo.rnd`, if there is one, learns the rollout's observations.
    fn learn_what_is_new(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        let Some(rnd) = &mut self.rnd else {
            return Ok(());
        };
        let total = self.steps * self.envs;
        let x = self.values.actor_inputs().f_narrow(0, 0, total)?;
        let valid = rollout.valid.f_view([total, 1])?;
        let passes = [self.config.num_learning_epochs, self.config.num_mini_batches];
        let update = self.updates.get();
        alone(|| rnd.learn((&x, &valid), passes, update))
    }

    /// The discriminator of `[amp]`, if there is one, learns from the rollout's transitions.
    fn learn_the_style(&mut self) -> Result<(), LearnError> {
        let update = self.updates.get();
        self.amp.as_mut().map_or(Ok(()), |amp| alone(|| amp.learn(update)))
    }

    /// First sample or sequence of an epoch's minibatches, and how many each has.
    fn parts(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let parts = self.config.num_mini_batches as i64;
        let total = self.part.all.count() as i64;
        (0..parts).map(move |i| batch::part(total, parts, i))
    }
}

/// On one thread: sums of products over rows depend on how many share them.
fn alone<T>(work: impl FnOnce() -> T) -> T {
    let threads = tch::get_num_threads();
    tch::set_num_threads(1);
    let done = work();
    tch::set_num_threads(threads);
    done
}

impl Learner for Ppo {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        let start = Instant::now();
        self.check_shape(rollout)?;
        let _no_grad = tch::no_grad_guard();
        let before = self.crossed.traffic();
        self.faults.minibatch = 0;
        // From threads that collect it may come to the host's memory.
        let brought = rollout.brought(self.policy.device, &self.crossed)?;
        let rollout = brought.as_ref().unwrap_or(rollout);
        self.prepare(rollout)?;
        let gae_s = start.elapsed().as_secs_f64();

        self.stop = self.desired()?.f_mul_scalar(self.config.stop())?;
        let rate = self.adam.rate(0).f_add_scalar(0.0)?;
        let _ = self.adam.rate(0).shallow_clone().f_mul_(&self.signal)?;
        match self.on_host() {
            true => self.learn_all_on_host()?,
            false => self.learn_all()?,
        }
        self.adam.rate(0).shallow_clone().f_copy_(&rate)?;
        self.adapt()?;
        self.learn_what_is_new(rollout)?;
        self.learn_the_style()?;
        self.policy.norm.merge(rollout, self.policy.device, &self.crossed)?;
        self.updates.add(1);
        self.policy.version = self.updates.version();

        let minibatches = self.config.num_learning_epochs * self.config.num_mini_batches;
        let size = self.state.magnitude()?;
        let mut stats =
            self.accumulator.read(self.adam.rate(0), &size, minibatches as u64, &self.crossed)?;
        if !self.on_host() {
            stats.traffic = self.crossed.traffic().since(before);
        }
        // Of the mean over both sides, of which one is at its target.
        let mirrors = self.mirrored.as_ref().is_some_and(|m| m.loss > 0.0);
        stats.mirror = stats.imitation.filter(|_| mirrors).map(|x| 2.0 * x);
        if !self.config.imitation.is_on() {
            stats.imitation = None;
        }
        if let Some(rnd) = &self.rnd {
            let sums = rnd.sums()?;
            self.crossed.fetched();
            let (reward, steps) = rnd.said(&host_doubles(&sums)?);
            (stats.rnd, stats.rnd_reward) = (Some(steps.loss), Some(reward));
            stats.skip(&steps);
        }
        if let Some(amp) = &self.amp {
            let sums = amp.sums()?;
            self.crossed.fetched();
            let (reward, steps) = amp.said(&host_doubles(&sums)?);
            (stats.amp, stats.amp_reward) = (Some(steps.loss), Some(reward));
            let [penalty, own, other] = steps.own.map(Some);
            (stats.amp_penalty, stats.amp_policy, stats.amp_reference) = (penalty, own, other);
            stats.skip(&steps);
        }
        stats.gae_s = gae_s;
        stats.update_s = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        Self::policy(self)
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        Self::policy_mut(self)
    }

    fn wants_warm_up(&self) -> bool {
        Self::wants_warm_up(self)
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        Self::warm_up(self, rollout)
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        Self::set_progress(self, done)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        self.policy.version = self.updates.version();
        if let Some(amp) = &mut self.amp {
            amp.derive()?;
        }
        match loaded {
            Some(loaded) => self.policy.renew(loaded),
            None => Ok(()),
        }
    }

    fn restart(&mut self, factor: f64) -> Result<(), LearnError> {
        Self::restart(self, factor)
    }

    fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    fn set_teacher(&mut self, teacher: Box<dyn TrainedPolicy>) -> Result<(), LearnError> {
        self.teacher = Some(Teacher::new(teacher));
        Ok(())
    }
}
