//! Where a drill's faults go.

use super::{Ppo, loss};
use crate::learner::LearnError;
use crate::learner::fault::{Place, UpdateFault, UpdateTarget, entry, say};
use tch::Tensor;

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
        self.faults.arm(faults);
        Ok(())
    }

    /// Poisons what is due.
    pub(super) fn poison(&mut self, place: Place) -> Result<(), LearnError> {
        for fault in self.faults.due(place, self.updates) {
            let _ = self.poisoned(&fault.what)?.f_fill_(fault.value.number())?;
            if fault.what == UpdateTarget::Normalizer {
                self.policy.norm.derive()?;
            }
            say(&fault, self.updates, self.faults.minibatch);
        }
        Ok(())
    }

    /// The numbers that a target means.
    fn poisoned(&self, what: &UpdateTarget) -> Result<Tensor, LearnError> {
        let none = |what: String| LearnError::Fault(what);
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
}
