//! The part of a process in an update that several make together.
//!
//! The order of samples is one permutation of all processes' rows, and each takes its own of
//! every minibatch. Sums over the samples of all are then what one process would have, but for
//! the last digits: one message a minibatch has the gradient, the means of the losses and how
//! many samples count. What is decided by them is the same in every process.

use super::Ppo;
use super::loss::STATS;
use super::sequences::Sequences;
use crate::learner::error::LearnError;
use crate::learner::nn::host::kernels::MOST_IN_ORDER;
use crate::learner::tensors::zeros;
use ostler_collector::peers::Group;
use ostler_sim::config::ConfigError;
use tch::{Device, Kind, TchError, Tensor};

/// This process's samples among those of all.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Those that learn together.
    pub group: Group,
    /// Gradient, means of losses, and samples that count: float32 `[P + STATS + 1]`.
    message: Option<Tensor>,
}

/// Which samples or sequences of all are this process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Of all processes.
    pub all: Sequences,
    /// Of this one.
    pub own: Sequences,
    /// The first row of a step that is its own.
    pub first: usize,
}

impl Part {
    /// Of a process alone.
    pub(super) fn whole(own: Sequences) -> Self {
        Self { all: own, own, first: 0 }
    }

    /// Of some of all samples or sequences those that are its own, by their numbers here.
    pub(super) fn of(self, some: &[i64], into: &mut Vec<i64>) {
        into.clear();
        if self.all == self.own {
            into.extend_from_slice(some);
            return;
        }
        let [all, own] = [self.all, self.own].map(|s| s.rows() as i64);
        let first = self.first as i64;
        let here = some.iter().filter_map(|s| {
            let row = s % all - first;
            (0..own).contains(&row).then_some(s / all * own + row)
        });
        into.extend(here);
    }

    /// The most of a minibatch of so many that can be its own.
    pub(super) fn most(self, of: usize) -> usize {
        of.min(self.own.count())
    }
}

impl Ppo {
    /// Learns from now on with other processes, of `num_envs` environments in all; comes before
    /// any update.
    ///
    /// # Errors
    /// The learner has a part that cannot; memory does not suffice.
    pub fn with_group(mut self, group: &Group, num_envs: usize) -> Result<Self, LearnError> {
        if group.is_alone() {
            return Ok(self);
        }
        let config = &self.config;
        let refused = [
            (config.rnd.is_on(), "ppo.rnd.weight", "0"),
            (config.priority_alpha > 0.0, "ppo.priority_alpha", "0"),
            (self.amp.is_some(), "amp.observations", "leave [amp] out"),
            (self.policy.device != Device::Cpu, "device", "\"cpu\""),
        ];
        if let Some((_, key, help)) = refused.into_iter().find(|r| r.0) {
            let why = "several processes cannot learn with it together";
            return Err(ConfigError::new(key, why).help(format!("{help}, or one process")).into());
        }
        let (first, own) = group.shard(num_envs);
        // Rows of an environment: its agents.
        let each = self.envs as usize / own.max(1);
        let steps = self.sequences.steps;
        let total = self.steps as usize * num_envs * each;
        if total > MOST_IN_ORDER {
            let why = format!("{total} samples in a rollout; at most {MOST_IN_ORDER} can be drawn");
            return Err(ConfigError::new("env.num_envs", why).into());
        }
        self.part = Part {
            all: Sequences::new(steps, num_envs * each, total),
            own: self.sequences,
            first: first * each,
        };
        let numbers = self.policy.params.len() + STATS as i64 + 1;
        let message = zeros("gradients of all processes", &[numbers], Kind::Float, Device::Cpu)?;
        self.share = Share { group: group.clone(), message: Some(message) };
        self.policy.norm.join(group);
        Ok(self)
    }

    /// Gradient and means, which were divided by `divisor` samples, become those of all
    /// processes' samples, of which `counted` are this one's and count.
    pub(super) fn pool(&mut self, counted: f32, divisor: f32) -> Result<(), TchError> {
        let Some(message) = &self.share.message else {
            return Ok(());
        };
        let (grad, losses) = (&self.policy.params.grad, self.accumulator.losses());
        let (numbers, stats) = (grad.numel() as i64, STATS as i64);
        let place = |at, len| message.f_narrow(0, at, len);
        place(0, numbers)?.f_copy_(grad)?;
        place(numbers, stats)?.f_copy_(losses)?;
        let _ = message.f_get(numbers + stats)?.f_fill_(f64::from(counted))?;
        let message = self.share.group.total(message.shallow_clone())?;
        let all = message.f_get(numbers + stats)?.f_double_value(&[])?;
        let factor = f64::from(divisor) / all;
        if factor != 1.0 {
            // Without a valid sample anywhere the means are no numbers, as they would be alone.
            let _ = message.shallow_clone().f_mul_scalar_(factor)?;
        }
        grad.shallow_clone().f_copy_(&message.f_narrow(0, 0, numbers)?)?;
        losses.shallow_clone().f_copy_(&message.f_narrow(0, numbers, stats)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_an_order_are_the_whole() {
        for steps in [1, 4] {
            let all = Sequences::new(steps, 5, 5 * 8);
            let part =
                |first, rows| Part { all, own: Sequences::new(steps, rows, rows * 8), first };
            let order: Vec<i64> = (0..all.count() as i64).rev().collect();
            let (mut samples, mut own) = (Vec::new(), Vec::new());
            for part in [part(0, 2), part(2, 3)] {
                part.of(&order, &mut own);
                assert_eq!(own.len(), part.own.count());
                // Back to the numbers of all: k N + n.
                let rows = part.own.rows() as i64;
                samples.extend(own.iter().map(|s| s / rows * 5 + s % rows + part.first as i64));
            }
            samples.sort_unstable();
            assert!(samples.iter().copied().eq(0..all.count() as i64));
        }
    }
}
