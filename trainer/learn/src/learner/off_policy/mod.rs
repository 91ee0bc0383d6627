//! Learning from a replay buffer: soft actor-critic, and TD3 for many environments.
//!
//! Reading order: [`OffPolicy::update`](crate::learner::Learner::update): a rollout goes
//! into the replay buffer, then gradient step after gradient step on batches drawn from it ->
//! `Method` (the losses: `sac`, `td3`, and what critics learn, `values`) -> `actor`, `critics`
//! (networks; `body`, `blocks`: their hidden layers) -> `section` (is a step good, the step, the sums)
//! -> `state`.

mod actor;
mod blocks;
mod body;
mod config;
mod critics;
mod inputs;
mod learner;
mod method;
mod mirror;
mod noise;
mod registered;
mod replica;
mod sac;
mod sample;
pub(in crate::learner) mod section;
mod state;
mod td3;
#[cfg(test)]
mod tests;
mod values;

pub use actor::{ContinuousPolicy, Explore};
pub use config::{SacConfig, Td3Config};
pub use registered::{SacMethod, Td3Method};

use super::fault::FaultTime;
use super::fault::Faults;
use super::nn::Adam;
use super::nn::device::LearnKernels;
use super::{
    ActorConfig, CriticConfig, Family, State, TrainedPolicy, UpdateStats, error::LearnError,
};
use config::Common;
use critics::Critics;
use inputs::Inputs;
use method::{Method, Nets};
use mirror::Mirror;
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use ostler_collector::replay::{Layout, Mark, ReplayBuffer, ReplayConfig, SamplerKind, Transform};
use ostler_collector::transfer::{brought, host_doubles};
use ostler_sim::config::ConfigError;
use ostler_sim::device::{self, Traffic};
use ostler_sim::env::EnvSpec;
use sac::Sac;
use section::{Section, Tally};
use state::Counts;
use tch::{Device, Kind, Tensor};
use td3::Td3;

/// Which one.
#[derive(Debug, Clone, Copy)]
pub enum Algorithm<'a> {
    /// Soft actor-critic.
    Sac(&'a SacConfig),
    /// TD3 with distributional critics.
    Td3(&'a Td3Config),
}

/// A learner with a replay buffer.
#[derive(Debug)]
pub struct OffPolicy {
    common: Common,
    nets: Nets,
    method: Box<dyn Method>,
    actor_adam: Adam,
    critic_adam: Adam,
    actor: Section,
    critic: Section,
    mirror: Option<Mirror>,
    inputs: Inputs,
    replay: ReplayConfig,
    layout: Layout,
    /// Settings of the replay buffer beyond `[[replay.transform]]`.
    transforms: Vec<Box<dyn Transform>>,
    /// There once its folder is known.
    buffer: Option<Box<ReplayBuffer>>,
    /// Transitions that stay for a while after they fell out of the buffer.
    margin: usize,
    state: State,
    counts: Counts,
    /// The position of the buffer when the state was captured.
    captured_mark: Option<Mark>,
    faults: Faults,
    fresh_episodes: bool,
    /// Share of the run that is done.
    progress: f64,
    seed: u64,
    /// Of a step, of all processes.
    rows: u64,
    /// Those that learn together.
    group: Group,
    device: Device,
    /// Traffic between host and device but for the buffer's.
    crossed: device::Counts,
}

/// The policy of such a learner alone, to act with.
///
/// # Errors
/// A key that cannot be used with this task, or memory does not suffice.
pub fn policy(
    algorithm: Algorithm<'_>,
    actor: &ActorConfig,
    critic: &CriticConfig,
    spec: &EnvSpec,
    seed: u64,
    device: Device,
) -> Result<ContinuousPolicy, LearnError> {
    let (explore, bounds) = match algorithm {
        Algorithm::Sac(c) => {
            let reach = c.joint_limits.then(|| reach(spec)).transpose()?;
            let reach = reach.unwrap_or_else(|| vec![1.0; spec.action.width()]);
            let bounds = reach.iter().map(|r| r * c.action_bound as f32).collect();
            (Explore::Squashed { tanh_std: c.tanh_std }, bounds)
        }
        Algorithm::Td3(c) => {
            let (min, max) = (c.std_min, c.std_max);
            (Explore::Added { min, max }, vec![c.action_bound as f32; spec.action.width()])
        }
    };
    ContinuousPolicy::new(actor, critic, spec, explore, &bounds, seed, device)
}

/// Sizes of actions that reach the joints' limits.
fn reach(spec: &EnvSpec) -> Result<Vec<f32>, ConfigError> {
    let refused = |why: String| {
        ConfigError::new("sac.joint_limits", why)
            .help("sac.joint_limits = false, and sac.action_bound")
    };
    if spec.reach.is_empty() {
        let why = "it is for robots with one agent and [[task.action]] of kind = \"position\"";
        return Err(refused(why.into()));
    }
    let all = spec.reach.iter().enumerate().map(|(i, reach)| {
        let name = spec.output_names().nth(i).map_or_else(|| i.to_string(), |n| format!("\"{n}\""));
        reach.ok_or_else(|| refused(format!("action {name} is no position of a joint with limits")))
    });
    all.collect()
}

/// Arguments for a learner with a replay buffer.
#[derive(Debug, Clone, Copy)]
pub struct OffPolicyArgs<'a> {
    /// Which one.
    pub algorithm: Algorithm<'a>,
    /// `[actor]`.
    pub actor: &'a ActorConfig,
    /// `[critic]`.
    pub critic: &'a CriticConfig,
    /// `[replay]`.
    pub replay: &'a ReplayConfig,
    /// Control steps per rollout.
    pub steps: usize,
    /// Every rollout begins with new episodes.
    pub fresh_episodes: bool,
    /// Iterations between two checkpoints.
    pub save_interval: u64,
    /// Keys the first weights.
    pub seed: u64,
    /// Keys every draw: of several processes each has its own.
    pub draws: u64,
}

impl OffPolicy {
    /// Builds the networks and allocates for batches; the replay buffer comes with
    /// [`open`](crate::learner::Remembers::open).
    ///
    /// # Errors
    /// A key that cannot be used with this task, or memory does not suffice.
    pub fn new(
        plan: &OffPolicyArgs<'_>,
        spec: &EnvSpec,
        device: Device,
    ) -> Result<Self, LearnError> {
        let (common, outputs, errors) = match plan.algorithm {
            Algorithm::Sac(c) => (c.common(), c.num_atoms as i64, c.validate()),
            Algorithm::Td3(c) => (c.common(), c.num_atoms as i64, c.validate()),
        };
        let errors = [errors, plan.critic.validate(), plan.replay.validate()].concat();
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        let _no_grad = tch::no_grad_guard();
        let (actor, critic, seed) = (plan.actor, plan.critic, plan.seed);
        let seen = spec.critic.unwrap_or(spec.obs.policy) + spec.action.width();
        let nets = Nets {
            policy: policy(plan.algorithm, actor, critic, spec, seed, device)?,
            critics: Critics::new(critic, seen as i64, outputs, seed, device)?,
        };
        let method: Box<dyn Method> = match plan.algorithm {
            Algorithm::Sac(c) => Box::new(Sac::new(c, &nets, device)?),
            Algorithm::Td3(c) => Box::new(Td3::new(c, &nets, device)?),
        };
        let adam = |len: i64, rate: f64, name: &'static str| {
            let adam = Adam::new(len, rate, device)?;
            let adam = adam.named(name).decaying(common.weight_decay);
            Ok::<_, LearnError>(adam.with_betas(common.betas))
        };
        let (of_actor, of_critics) = (nets.policy.params.len(), nets.critics.params.len());
        let actor_adam = adam(of_actor, common.actor_learning_rate, "actor.adam")?;
        let critic_adam = adam(of_critics, common.critic_learning_rate, "critic.adam")?;
        let limit = common.max_grad_norm;
        let own = match plan.algorithm {
            Algorithm::Sac(_) => 2,
            Algorithm::Td3(_) => 0,
        };
        let samples = spec.rows().saturating_mul(plan.steps);
        let critic_section = Section::new(1, limit, device)?;
        let mut state = State::default();
        nets.policy.declare(&mut state)?;
        nets.critics.declare(&mut state)?;
        method.declare(&mut state)?;
        actor_adam.declare(&mut state);
        critic_adam.declare(&mut state);
        let counts = Counts::new(&mut state);
        state.mark("gradient", &nets.critics.params.grad);
        state.mark("parameters", &nets.policy.params.theta);
        state.mark("loss", critic_section.loss());
        let learner = Self {
            inputs: Inputs::new(common.batch_size, spec, plan.draws, device)?,
            crossed: device::Counts::default(),
            actor: Section::new(own, limit, device)?,
            critic: critic_section,
            mirror: None,
            common,
            nets,
            method,
            actor_adam,
            critic_adam,
            replay: plan.replay.clone(),
            layout: plan.replay.layout(spec)?,
            transforms: Vec::new(),
            buffer: None,
            margin: margin(samples, plan.save_interval, plan.replay.capacity),
            state: state.ready()?,
            counts,
            captured_mark: None,
            faults: Faults::default(),
            fresh_episodes: plan.fresh_episodes,
            progress: 0.0,
            seed: plan.draws,
            rows: spec.rows() as u64,
            group: Group::default(),
            device,
        };
        match LearnKernels::of(device)? {
            Some(kernels) => learner.with_kernels(&kernels),
            None => Ok(learner),
        }
    }

    /// Learns from now on with other processes, of whose rows its own are at `place`; each has
    /// transitions of its own and an equal part of every batch. Comes before any update.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn with_group(mut self, group: &Group, place: Place) -> Result<Self, LearnError> {
        if group.is_alone() {
            return Ok(self);
        }
        self.rows = place.all as u64;
        // Every row explores as it would in one process.
        self.nets.policy.begin_at(place.first as usize)?;
        self.critic.join(group);
        self.actor.join(group);
        self.method.join(group);
        self.nets.policy.norm.join(group);
        self.group = group.clone();
        Ok(self)
    }

    /// Learns with these kernels: on a GPU it does already.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn with_kernels(mut self, kernels: &LearnKernels) -> Result<Self, LearnError> {
        self.actor_adam.with_kernels(kernels)?;
        self.critic_adam.with_kernels(kernels)?;
        self.method.with_kernels(kernels)?;
        self.inputs.with_kernels(kernels);
        Ok(self)
    }

    /// Adds one behind those of `[[replay.transform]]`. It acts on batches `[B, width]` of raw
    /// observations, on the learner's device, and has to leave them on that device with the
    /// fields and widths that the learner reads.
    fn add_transform(&mut self, transform: Box<dyn Transform>) {
        self.transforms.push(transform);
    }

    /// Transitions in the replay buffer.
    pub fn remembered(&self) -> usize {
        self.buffer.as_ref().map_or(0, |m| m.len())
    }

    /// Traffic that there would have been since it was made, were its device not the host.
    fn traffic(&self) -> Traffic {
        let buffer = self.buffer.as_ref().map(|m| m.traffic());
        self.crossed.traffic() + buffer.unwrap_or_default()
    }

    fn remember(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        let buffer = opened(&mut self.buffer)?;
        if self.fresh_episodes {
            buffer.cut();
        }
        buffer.set_version(self.counts.updates.version());
        buffer.extend(rollout)?;
        let transitions = rollout.steps as u64 * self.rows;
        self.counts.transitions.add(transitions);
        Ok(())
    }

    /// One gradient step: of the critics, at times of the actor, of the slow copies.
    fn learn(&mut self) -> Result<(), LearnError> {
        let prioritised = self.replay.sampler == SamplerKind::Prioritized;
        let buffer = opened(&mut self.buffer)?;
        let batch = buffer.next()?;
        let norm = &self.nets.policy.norm;
        self.inputs.fill(batch, norm, self.counts.steps.get())?;
        self.take_step()?;
        if prioritised {
            // What has no part in the loss would keep its error, and be drawn for ever.
            let ignored = self.inputs.weight.f_view_as(self.method.td_error())?.f_le(0.0)?;
            let errors = self.method.td_error().f_masked_fill(&ignored, 0.0)?;
            opened(&mut self.buffer)?.update_priorities(&errors)?;
        }
        Ok(())
    }

    /// The same on inputs that are in place.
    fn take_step(&mut self) -> Result<(), LearnError> {
        self.poison(FaultTime::Begin)?;
        let x = &self.inputs;
        self.method.critic_loss(&self.nets, x, &mut self.critic)?;
        self.poison(FaultTime::Judged)?;
        let critics = &mut self.nets.critics;
        self.critic.step(&mut self.critic_adam, &mut critics.params)?;
        critics.project()?;
        self.method.after_critics(&self.inputs)?;
        let every = self.common.policy_frequency as u64;
        // The first actor's step comes after so many of the critics.
        if (self.counts.steps.get() + 1).is_multiple_of(every) {
            let x = &self.inputs;
            self.method.actor_loss(&self.nets, x, &mut self.actor)?;
            if let Some(mirror) = &self.mirror {
                mirror.add(&self.nets.policy, (x, self.method.mean()), &mut self.actor)?;
            }
            let policy = &mut self.nets.policy;
            self.actor.step(&mut self.actor_adam, &mut policy.params)?;
            policy.net.project()?;
            self.method.after_actor(x)?;
        }
        self.nets.critics.follow(self.common.tau)?;
        self.counts.steps.add(1);
        self.faults.minibatch += 1;
        Ok(())
    }

    /// Reads the sums of an update back, all at once. `valid`: of the rollout.
    fn read(&self, valid: &Tensor) -> Result<UpdateStats, LearnError> {
        let mut parts: Vec<Tensor> = Vec::new();
        for section in [&self.critic, &self.actor] {
            parts.extend(section.sums().map(Tensor::shallow_clone));
        }
        parts.push(self.state.magnitude()?);
        let count = valid.f_sum(Kind::Double)?.f_view([1])?;
        parts.push(brought(&count, self.device, &self.crossed)?);
        parts.push(self.critic_adam.rate(0).f_view([1])?);
        let log_alpha = self.method.log_alpha();
        if let Some(log_alpha) = log_alpha {
            parts.push(log_alpha.f_to_kind(Kind::Double)?);
        }
        self.crossed.fetched();
        let numbers = host_doubles(&Tensor::f_cat(&parts, 0)?)?;
        let mut rest = numbers.as_slice();
        let critic = self.critic.tally(&mut rest);
        let actor = self.actor.tally(&mut rest);
        let at = |i: usize| rest.get(i).copied().unwrap_or(f64::NAN);
        let drawn = log_alpha.is_some();
        let bad = |of: fn(&Tally) -> u64| of(&critic) + of(&actor);
        Ok(UpdateStats {
            value_function: critic.loss,
            entropy: if drawn { actor.own[0] } else { f64::NAN },
            mean_std: if drawn { actor.own[1] } else { f64::NAN },
            learning_rate: at(2),
            grad_norm: critic.norm,
            grad_clipped: critic.clipped,
            minibatches: critic.tried + actor.tried,
            skipped: critic.tried - critic.taken + actor.tried - actor.taken,
            skipped_no_valid: bad(|t| t.no_valid),
            skipped_loss: bad(|t| t.bad_loss),
            skipped_gradient: bad(|t| t.bad_gradient),
            non_finite_params: !at(0).is_finite(),
            invalid: (valid.numel() as f64 - at(1)) as u64,
            of: Family::OffPolicy,
            actor_loss: actor.loss,
            q_mean: critic.own[0],
            alpha: if drawn { at(3).exp() } else { f64::NAN },
            actor_grad_norm: actor.norm,
            mirror: self.mirrored(&actor.own),
            remembered: self.remembered() as u64,
            gradient_steps: self.counts.steps.get(),
            ..UpdateStats::none()
        })
    }
}

/// The replay buffer, which [`crate::learner::Remembers::open`] has to come before.
fn opened(buffer: &mut Option<Box<ReplayBuffer>>) -> Result<&mut ReplayBuffer, LearnError> {
    buffer.as_deref_mut().ok_or(LearnError::NoMemory)
}

/// Transitions that may fall out of the replay buffer between two checkpoints, of which an
/// earlier one has to be there again after a resume; at most a quarter of the capacity.
fn margin(samples: usize, save_interval: u64, capacity: usize) -> usize {
    let iterations = usize::try_from(save_interval.clamp(1, 100)).unwrap_or(100);
    let most = (capacity / 4).max(samples);
    samples.saturating_mul(iterations).min(most)
}
