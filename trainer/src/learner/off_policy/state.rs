//! The learner's state as a whole: saved and loaded, rolled back, its memory opened, and
//! where a drill's faults go.

use super::OffPolicy;
use crate::learner::fault::{Place, UpdateFault, UpdateTarget, entry, say};
use crate::learner::nn::params::find;
use crate::learner::{LearnError, NamedTensors, Opened, TrainedPolicy, rate_share};
use crate::memory::{Disk, FreeMemory, available};
use ostler_collector::replay::{ReplayBuffer, Room, Setup};
use ostler_collector::transfer::{host_integer, host_number};
use ostler_sim::config::ConfigError;
use std::path::Path;
use tch::{Device, Tensor};

/// What keys draws and decides what is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counts {
    /// Updates done.
    pub(super) updates: u64,
    /// Gradient steps done.
    pub(super) steps: u64,
    /// Transitions taken in.
    pub(super) transitions: u64,
    /// What roll-backs have lowered the learning rates by.
    pub(super) lr_scale: f64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            updates: 0,
            steps: 0,
            transitions: 0,
            lr_scale: 1.0,
        }
    }
}

/// Names in a checkpoint.
const COUNTS: [&str; 3] = [
    "off_policy.updates",
    "off_policy.gradient_steps",
    "off_policy.transitions",
];
const LR_SCALE: &str = "off_policy.lr_scale";

impl OffPolicy {
    /// Opens the memory below `folder`, unless it is open.
    pub(super) fn open_memory(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        if self.memory.is_some() {
            return Ok(None);
        }
        let disk = match self.replay.directory.as_str() {
            "" => folder,
            own => Path::new(own),
        };
        let room = Room {
            host: free.host(),
            device: match self.device {
                Device::Cpu => None,
                device => free.device(device),
            },
            disk: Disk::of(disk).map(|d| d.free),
        };
        let config = self.replay.clone();
        let config = config.resolve(&self.layout, self.device, &room, self.margin);
        let errors = config.validate_device(self.device, self.device.is_cuda());
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        let (gamma, batch) = (self.common.gamma, self.common.batch_size);
        let setup = Setup {
            folder: Some(folder),
            margin: self.margin,
            room,
            free_memory: available,
            reopen: again,
            transforms: std::mem::take(&mut self.transforms),
            ..Setup::new(batch, self.device, gamma, self.seed)
        };
        let memory = ReplayBuffer::new(&config, self.layout.clone(), setup)?;
        let opened = Opened {
            line: memory.describe(),
            storage: config.storage,
        };
        self.memory = Some(memory);
        Ok(Some(opened))
    }

    /// The policy knows how many updates made it.
    pub(super) fn mark_version(&mut self) {
        self.nets.policy.version = i32::try_from(self.counts.updates).unwrap_or(i32::MAX);
    }

    pub(super) fn save_weights(&self) -> Result<NamedTensors, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let mut all = self.nets.policy.save()?;
        all.extend(self.nets.critics.save()?);
        all.extend(self.method.weights()?);
        Ok(all)
    }

    fn check_weights(&self, tensors: &[(String, Tensor)], whole: bool) -> Result<(), LearnError> {
        self.nets.policy.check(tensors)?;
        self.nets.critics.check(tensors)?;
        self.method.check(tensors, whole)
    }

    pub(super) fn take_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.check_weights(tensors, false)?;
        self.nets.policy.load(tensors)?;
        self.nets.critics.load(tensors)?;
        self.method.load(tensors, false)
    }

    pub(super) fn save_all(&self) -> Result<NamedTensors, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let mut all = self.nets.policy.save()?;
        all.extend(self.nets.critics.save()?);
        all.extend(self.method.save()?);
        all.extend(self.actor_adam.save()?);
        all.extend(self.critic_adam.save()?);
        let c = &self.counts;
        for (name, count) in COUNTS.iter().zip([c.updates, c.steps, c.transitions]) {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            all.push(((*name).to_string(), Tensor::f_from_slice(&[count])?));
        }
        let scale = Tensor::f_from_slice(&[c.lr_scale])?;
        all.push((LR_SCALE.to_string(), scale));
        Ok(all)
    }

    pub(super) fn load_all(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.check_weights(tensors, true)?;
        self.actor_adam.check(tensors)?;
        self.critic_adam.check(tensors)?;
        let mut counts = [0; 3];
        for (name, count) in COUNTS.iter().zip(&mut counts) {
            let stored = host_integer(find(tensors, name, &[1])?)?;
            *count = u64::try_from(stored).unwrap_or(0);
        }
        let lr_scale = rate_share(host_number(find(tensors, LR_SCALE, &[1])?)?)?;
        self.nets.policy.load(tensors)?;
        self.nets.critics.load(tensors)?;
        self.method.load(tensors, true)?;
        self.actor_adam.load(tensors)?;
        self.critic_adam.load(tensors)?;
        let [updates, steps, transitions] = counts;
        self.counts = Counts {
            updates,
            steps,
            transitions,
            lr_scale,
        };
        self.mark_version();
        Ok(())
    }

    /// See [`roll_back`](crate::learner::Learner::roll_back). What is remembered stays: it
    /// was judged when it was collected.
    pub(super) fn go_back_to(
        &mut self,
        weights: &[(String, Tensor)],
        lr_factor: f64,
    ) -> Result<(), LearnError> {
        if !(lr_factor > 0.0 && lr_factor <= 1.0) {
            let why = format!("a roll-back cannot multiply it by {lr_factor}");
            return Err(ConfigError::new("guard.roll_back_lr", why)
                .help("a factor above 0, at most 1")
                .into());
        }
        self.take_weights(weights)?;
        let _no_grad = tch::no_grad_guard();
        self.counts.lr_scale *= lr_factor;
        let scale = self.counts.lr_scale;
        for (adam, rate) in [
            (&mut self.actor_adam, self.common.actor_learning_rate),
            (&mut self.critic_adam, self.common.critic_learning_rate),
        ] {
            adam.restart()?;
            adam.set_rate(0, rate * scale)?;
        }
        Ok(self.method.restart(scale)?)
    }

    pub(super) fn arm(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        for fault in &faults {
            let _ = self.poisoned(&fault.what)?;
        }
        self.faults.arm(faults);
        Ok(())
    }

    pub(super) fn poison_begin(&mut self) -> Result<(), LearnError> {
        self.poison(Place::Begin)
    }

    pub(super) fn poison_judged(&mut self) -> Result<(), LearnError> {
        self.poison(Place::Judged)
    }

    fn poison(&mut self, place: Place) -> Result<(), LearnError> {
        for fault in self.faults.due(place, self.counts.updates) {
            let _ = self.poisoned(&fault.what)?.f_fill_(fault.value.number())?;
            if fault.what == UpdateTarget::Normalizer {
                self.nets.policy.norm.derive()?;
            }
            say(&fault, self.counts.updates, self.faults.minibatch);
        }
        Ok(())
    }

    /// The numbers that a target means.
    fn poisoned(&self, what: &UpdateTarget) -> Result<Tensor, LearnError> {
        let none = |what: String| LearnError::Fault(what);
        let (actor, critics) = (&self.nets.policy.params, &self.nets.critics.params);
        let named = |name: &str| -> Result<Tensor, LearnError> {
            let found = match actor.by_name(name)? {
                None => critics.by_name(name)?,
                found => found,
            };
            found.ok_or_else(|| none(format!("a parameter called \"{name}\"")))
        };
        let [m, v, ..] = self.critic_adam.tensors();
        match what {
            UpdateTarget::Gradient(i) => entry(&critics.grad, *i),
            UpdateTarget::ParameterIndex(i) => entry(&actor.theta, *i),
            UpdateTarget::FirstMoment(i) => entry(m, *i),
            UpdateTarget::SecondMoment(i) => entry(v, *i),
            UpdateTarget::Parameter(name) => named(name),
            UpdateTarget::Loss => Ok(self.critic.loss().shallow_clone()),
            UpdateTarget::LogStd => named("actor.log_std_head.bias"),
            UpdateTarget::Normalizer => match self.nets.policy.norm.inputs().next() {
                Some(normalizer) => Ok(normalizer.tensors()[0].shallow_clone()),
                None => Err(none("statistics of observations".to_string())),
            },
        }
    }
}
