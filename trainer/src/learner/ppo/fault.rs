//! Faults that a drill puts into updates.

use super::{CriticNorm, Ppo, loss};
use crate::learner::LearnError;
use ostler_sim::env::{Value, When};
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

/// One poison, put into the learner at one minibatch.
///
/// Updates are counted from the run's first, which is 1. Each update meets a fault
/// once, also if the run goes back to before it and takes it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateFault {
    /// In which updates.
    pub when: When,
    /// In which of their minibatches, all epochs counted; 0 is the first.
    #[serde(default)]
    pub minibatch: u64,
    /// Where.
    pub what: UpdateTarget,
    /// What is put there.
    #[serde(default)]
    pub value: Value,
}

/// What is poisoned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum UpdateTarget {
    /// An entry of the gradient, after the backward pass.
    Gradient(u64),
    /// The value loss, as it is judged and logged.
    Loss,
    /// All entries of a parameter as a checkpoint names it, such as `actor.0.weight`,
    /// before the minibatch.
    Parameter(String),
    /// An entry of all parameters in a row, before the minibatch.
    ParameterIndex(u64),
    /// The logarithm of the actions' deviation (of a state-dependent one: its bias).
    LogStd,
    /// An entry of Adam's running mean of gradients.
    FirstMoment(u64),
    /// An entry of Adam's running mean of squared gradients.
    SecondMoment(u64),
    /// The statistics of the observations.
    Normalizer,
}

/// Faults that are still to come.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
    /// Minibatches done in this update.
    pub(super) minibatch: u64,
}

#[derive(Debug)]
struct Armed {
    fault: UpdateFault,
    /// The update that met it last.
    met: Option<u64>,
}

impl Armed {
    fn is_due(&self, update: u64, minibatch: u64) -> bool {
        let number = update + 1;
        let due = match self.fault.when {
            When::At(at) => number == at && self.met.is_none(),
            When::Every(n) => {
                n > 0 && number.is_multiple_of(n) && self.met.is_none_or(|last| last < update)
            }
        };
        due && minibatch == self.fault.minibatch
    }
}

/// Places in a minibatch's course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the networks run.
    Begin,
    /// The gradient is there, nothing was decided.
    Judged,
}

impl UpdateTarget {
    fn place(&self) -> Place {
        match self {
            Self::Gradient(_) | Self::Loss => Place::Judged,
            _ => Place::Begin,
        }
    }
}

impl Ppo {
    /// Puts these faults into the updates to come, instead of those given before: a
    /// drill. The poisoned places are written whatever guards them.
    ///
    /// # Errors
    /// A fault names a place that this learner does not have; none is armed then.
    pub fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        for fault in &faults {
            let _ = self.poisoned(&fault.what)?;
        }
        self.faults.armed = faults
            .into_iter()
            .map(|fault| Armed { fault, met: None })
            .collect();
        Ok(())
    }

    /// Poisons what is due. Without faults this is one comparison.
    pub(super) fn poison(&mut self, place: Place) -> Result<(), LearnError> {
        if self.faults.armed.is_empty() {
            return Ok(());
        }
        let (update, minibatch) = (self.updates, self.faults.minibatch);
        for i in 0..self.faults.armed.len() {
            let armed = &self.faults.armed[i];
            if armed.fault.what.place() != place || !armed.is_due(update, minibatch) {
                continue;
            }
            let fault = armed.fault.clone();
            let _ = self.poisoned(&fault.what)?.f_fill_(fault.value.number())?;
            if fault.what == UpdateTarget::Normalizer {
                self.rederive()?;
            }
            self.faults.armed[i].met = Some(update);
            // Counted from 1, as it was ordered.
            let update = update + 1;
            tracing::warn!(update, minibatch, ?fault, "fault injected into the update");
        }
        Ok(())
    }

    /// The numbers that a target means.
    fn poisoned(&self, what: &UpdateTarget) -> Result<Tensor, LearnError> {
        let none = |what: String| LearnError::Fault(what);
        let entry = |flat: &Tensor, i: u64| -> Result<Tensor, LearnError> {
            match i64::try_from(i).ok().filter(|&i| i < flat.numel() as i64) {
                Some(i) => Ok(flat.f_get(i)?),
                None => Err(none(format!("entry {i} of {} parameters", flat.numel()))),
            }
        };
        let params = &self.policy.params;
        let named = |name: &str| -> Result<Tensor, LearnError> {
            let found = params.by_name(name)?;
            found.ok_or_else(|| none(format!("a parameter called \"{name}\"")))
        };
        let [m, v, ..] = self.adam.tensors();
        match what {
            UpdateTarget::Gradient(i) => entry(&params.grad, *i),
            UpdateTarget::ParameterIndex(i) => entry(&params.theta, *i),
            UpdateTarget::FirstMoment(i) => entry(m, *i),
            UpdateTarget::SecondMoment(i) => entry(v, *i),
            UpdateTarget::Parameter(name) => named(name),
            UpdateTarget::Loss => Ok(self.accumulator.losses().f_get(loss::VALUE as i64)?),
            UpdateTarget::LogStd => {
                named("actor.log_std").or_else(|_| named("actor.log_std_head.bias"))
            }
            UpdateTarget::Normalizer => match self.policy.norm.inputs().next() {
                Some(normalizer) => Ok(normalizer.tensors()[0].shallow_clone()),
                None => Err(none("statistics of observations".to_string())),
            },
        }
    }

    fn rederive(&mut self) -> Result<(), TchError> {
        if let Some(normalizer) = &mut self.policy.norm.actor {
            normalizer.derive()?;
        }
        if let CriticNorm::Own(normalizer) = &mut self.policy.norm.critic {
            normalizer.derive()?;
        }
        Ok(())
    }
}
