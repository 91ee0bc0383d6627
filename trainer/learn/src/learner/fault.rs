//! Faults that a drill puts into updates.

use super::{State, error::LearnError};
use ostler_sim::env::{Value, When};
use serde::{Deserialize, Serialize};

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
    /// The value that is put there.
    #[serde(default)]
    pub value: Value,
}

/// The poisoned numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum UpdateTarget {
    /// An entry of the gradient, after the backward pass (off policy: the critics').
    Gradient(u64),
    /// The value loss, as it is judged and logged.
    Loss,
    /// All entries of a parameter as a checkpoint names it, such as `actor.0.weight`,
    /// before the minibatch.
    Parameter(String),
    /// An entry of all parameters in a row, before the minibatch (off policy: the
    /// actor's).
    ParameterIndex(u64),
    /// The logarithm of the actions' standard deviation (of a state-dependent one: its bias).
    LogStd,
    /// An entry of Adam's running mean of gradients (off policy: the critics').
    FirstMoment(u64),
    /// An entry of Adam's running mean of squared gradients (off policy: the critics').
    SecondMoment(u64),
    /// The statistics of the observations.
    Normalizer,
}

/// Places in a minibatch's course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTime {
    /// Before the networks run.
    Begin,
    /// The gradient is there, nothing was decided.
    Judged,
}

impl UpdateTarget {
    fn place(&self) -> FaultTime {
        match self {
            Self::Gradient(_) | Self::Loss => FaultTime::Judged,
            _ => FaultTime::Begin,
        }
    }
}

/// Faults that are still to come.
#[derive(Debug, Default)]
pub struct Faults {
    armed: Vec<Armed>,
    /// Minibatches done in this update.
    pub minibatch: u64,
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

impl Faults {
    /// These instead of those before.
    pub fn arm(&mut self, faults: Vec<UpdateFault>) {
        self.armed = faults.into_iter().map(|fault| Armed { fault, met: None }).collect();
    }

    /// Poisons what is due here, after `update` updates: each fault once. Returns whether
    /// statistics of observations were among it. Without faults this is one comparison.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn poison(
        &mut self,
        state: &State,
        place: FaultTime,
        update: u64,
    ) -> Result<bool, LearnError> {
        let mut statistics = false;
        let minibatch = self.minibatch;
        for armed in &mut self.armed {
            if armed.fault.what.place() != place || !armed.is_due(update, minibatch) {
                continue;
            }
            armed.met = Some(update);
            let fault = &armed.fault;
            let _ = state.target(&fault.what)?.f_fill_(fault.value.number())?;
            statistics |= fault.what == UpdateTarget::Normalizer;
            // Updates are counted from 1, as the fault was ordered.
            let update = update + 1;
            tracing::warn!(update, minibatch, ?fault, "fault injected into the update");
        }
        Ok(statistics)
    }
}
