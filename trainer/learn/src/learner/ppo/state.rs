//! Consequences of a new state: rates after a roll-back, the policy's version, and the values
//! that derive from the statistics.

use super::{Ppo, Schedule};
use crate::learner::error::LearnError;
use ostler_collector::transfer::host_number;

impl Ppo {
    /// Adam forgets all gradients, and the learning rate is multiplied by `factor`: the
    /// present one, and where `ppo.schedule` moves it, its start and bounds. The count of
    /// updates goes on: it keys the order of samples, and the same failure must not repeat
    /// itself.
    pub(super) fn restart(&mut self, factor: f64) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.adam.restart()?;
        if let Some(rnd) = &mut self.rnd {
            rnd.restart()?;
        }
        if let Some(amp) = &mut self.amp {
            amp.restart()?;
        }
        let mut rate = self.start_rate();
        if self.config.schedule == Schedule::Adaptive {
            let now = host_number(self.adam.rate(0))?;
            if now.is_finite() {
                let (low, high) = self.rate_bounds();
                rate = (now * factor).clamp(low, high);
            }
        }
        self.set_rates(rate)
    }

    /// Bounds of an adaptive learning rate.
    pub(super) fn rate_bounds(&self) -> (f64, f64) {
        let (c, share) = (&self.config, self.rate_share.get());
        (c.min_learning_rate * share, c.max_learning_rate * share)
    }
}
