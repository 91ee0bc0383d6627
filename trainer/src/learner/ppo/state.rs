//! The learner's state as a whole: saved and loaded, kept and put back, rolled back.

use super::{Ppo, Schedule};
use crate::learner::nn::params::find;
use crate::learner::{LearnError, NamedTensors, TrainedPolicy, rate_share};
use ostler_collector::transfer::{host_integer, host_number};
use ostler_sim::config::ConfigError;
use tch::Tensor;

/// Names in a checkpoint.
const UPDATES: &str = "ppo.updates";
const LR_SCALE: &str = "ppo.lr_scale";

impl Ppo {
    /// Everything needed to go on with the same bits: weights, normalisers,
    /// optimiser, learning rate, count of updates.
    pub fn save(&self) -> Result<NamedTensors, LearnError> {
        let mut all = self.policy.save()?;
        all.extend(self.adam.save()?);
        let updates = i64::try_from(self.updates).unwrap_or(i64::MAX);
        all.push((UPDATES.to_string(), Tensor::f_from_slice(&[updates])?));
        let scale = Tensor::f_from_slice(&[self.lr_scale])?;
        all.push((LR_SCALE.to_string(), scale));
        Ok(all)
    }

    /// The reverse of [`save`](Self::save). Nothing is changed unless everything fits.
    pub fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.policy.check(tensors)?;
        self.adam.check(tensors)?;
        let updates = host_integer(find(tensors, UPDATES, &[1])?)?;
        // Checkpoints of earlier versions have none.
        let scale = match tensors.iter().any(|(name, _)| name == LR_SCALE) {
            true => rate_share(host_number(find(tensors, LR_SCALE, &[1])?)?)?,
            false => 1.0,
        };
        self.policy.load(tensors)?;
        self.adam.load(tensors)?;
        self.count(u64::try_from(updates).unwrap_or(0));
        self.lr_scale = scale;
        Ok(())
    }

    /// Remembers the state as it is now: a copy of each tensor that a checkpoint
    /// holds, on its device, into buffers that are there already.
    ///
    /// # Errors
    /// libtorch refuses; what is remembered is then undefined.
    pub fn capture(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.snapshot.capture()?;
        self.counted = (self.updates, self.lr_scale);
        Ok(())
    }

    /// Goes back to the last [`capture`](Self::capture) (or to the state after construction),
    /// the same bits, whatever happened since. Allocates no tensor.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn restore(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.snapshot.restore()?;
        self.lr_scale = self.counted.1;
        self.count(self.counted.0);
        Ok(())
    }

    /// Starts anew from an earlier policy, more carefully: weights and normalisers are
    /// taken from `policy` (see [`Learner::weights`](crate::learner::Learner::weights)), the optimiser forgets all
    /// gradients, and from now on the learning rate is `lr_factor` times what it would
    /// be: the present one, and where `ppo.schedule` moves it, its start and bounds.
    /// The count of updates goes on: it keys the order of samples, and the same
    /// failure must not repeat itself.
    ///
    /// # Errors
    /// Weights of another network, or a factor that is not above 0 and at most 1;
    /// nothing is changed then.
    pub fn roll_back(
        &mut self,
        policy: &[(String, Tensor)],
        lr_factor: f64,
    ) -> Result<(), LearnError> {
        if !(lr_factor > 0.0 && lr_factor <= 1.0) {
            let why = format!("a roll-back cannot multiply it by {lr_factor}");
            return Err(ConfigError::new("ppo.learning_rate", why)
                .help("a factor above 0, at most 1")
                .into());
        }
        let _no_grad = tch::no_grad_guard();
        self.policy.load(policy)?;
        self.adam.restart()?;
        self.lr_scale *= lr_factor;
        let mut rate = self.start_rate();
        if self.config.schedule == Schedule::Adaptive {
            let now = host_number(self.adam.rate(0))?;
            if now.is_finite() {
                let (low, high) = self.rate_bounds();
                rate = (now * lr_factor).clamp(low, high);
            }
        }
        self.set_rates(rate)
    }

    /// Bounds of an adaptive learning rate.
    pub(super) fn rate_bounds(&self) -> (f64, f64) {
        let (c, scale) = (&self.config, self.lr_scale);
        (c.min_learning_rate * scale, c.max_learning_rate * scale)
    }
}
