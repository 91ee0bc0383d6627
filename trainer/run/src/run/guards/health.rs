//! Whether the policy can be trusted, and which weights to go back to if not.
//!
//! Two sets of weights are kept: the good ones, which have stood `guard.probation`
//! iterations, and a candidate that still has to. Everything here is a function of
//! the iterations' numbers, so that a resumed run decides as the whole one did.

use super::trouble::Trouble;
use ostler_learn::config::GuardConfig;
use ostler_learn::learner::{NamedTensors, UpdateStats};
use ostler_sim::physics::fault;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Good updates that a value loss is compared with.
const HISTORY: usize = 50;
/// With fewer there is nothing to compare with yet.
const ENOUGH: usize = 10;

/// Its part of a checkpoint, besides the weights.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Bad updates in a row.
    pub bad_updates: u32,
    /// Iterations since the last trouble.
    pub healthy: u32,
    /// Roll-backs without a long time of good iterations between them.
    pub roll_backs: u32,
    /// Roll-backs of the whole run.
    pub roll_backs_in_all: u64,
    /// Value losses of the last good updates, oldest first.
    pub value_losses: VecDeque<f64>,
}

/// The same tensors once more; nothing is copied.
pub(crate) fn same(tensors: &NamedTensors) -> NamedTensors {
    let again = tensors.iter().map(|(n, t)| (n.clone(), t.shallow_clone()));
    again.collect()
}

/// Judges iterations.
#[derive(Debug)]
pub(crate) struct Health {
    config: GuardConfig,
    record: Record,
    /// Weights and normalisers that stood the test.
    good: NamedTensors,
    /// Those that still have to.
    candidate: NamedTensors,
}

impl Health {
    /// `good`: weights and normalisers as they are, for want of better ones.
    pub(crate) fn new(config: &GuardConfig, good: NamedTensors) -> Self {
        Self { config: config.clone(), record: Record::default(), good, candidate: Vec::new() }
    }

    /// As a checkpoint has it. Without `good` weights (an older checkpoint) the present
    /// ones stay.
    pub(crate) fn restore(&mut self, record: Record, good: NamedTensors, candidate: NamedTensors) {
        self.record = record;
        if !good.is_empty() {
            self.good = good;
        }
        self.candidate = candidate;
    }

    /// Its part of a checkpoint: counters, good weights, candidate.
    pub(crate) fn save(&self) -> (&Record, &NamedTensors, &NamedTensors) {
        (&self.record, &self.good, &self.candidate)
    }

    /// The weights to go back to.
    pub(crate) fn good(&self) -> &NamedTensors {
        &self.good
    }

    /// Whether the weights are under suspicion: nothing should go on from them.
    pub(crate) fn doubtful(&self) -> bool {
        self.record.bad_updates > 0
    }

    /// Counters.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Looks at a collection before it is learnt from: how many of its steps broke, its
    /// faults by kind (a step can have several), and what broke them most often.
    pub(crate) fn judge_collection(
        &self,
        broken: u64,
        faults: &[u64],
        steps: u64,
        causes: impl FnOnce() -> String,
    ) -> Option<Trouble> {
        let limit = self.config.max_broken_share;
        let control = faults.get(fault::CONTROL.trailing_zeros() as usize);
        (broken as f64 > limit * steps as f64).then(|| Trouble::Broken {
            broken,
            steps,
            limit,
            actions: control.is_some_and(|&n| 2 * n > broken),
            causes: causes(),
        })
    }

    /// Looks at an update. Trouble means that the policy has to roll back.
    pub(crate) fn judge_update(&mut self, update: &UpdateStats) -> Option<Trouble> {
        if update.non_finite_params {
            return Some(Trouble::NotFinite);
        }
        let skipped =
            update.skipped as f64 > self.config.max_skipped_share * update.minibatches as f64;
        let usual = self.usual();
        let loss = update.value_function;
        let exploded = usual.is_some_and(|u| loss > self.config.value_loss_factor * u);
        let r = &mut self.record;
        if !skipped && !exploded {
            r.bad_updates = 0;
            if loss.is_finite() {
                if r.value_losses.len() == HISTORY {
                    r.value_losses.pop_front();
                }
                r.value_losses.push_back(loss);
            }
            return None;
        }
        r.bad_updates += 1;
        if r.bad_updates < self.config.max_bad_updates {
            return None;
        }
        Some(if skipped {
            Trouble::Skipped {
                updates: r.bad_updates,
                skipped: update.skipped,
                minibatches: update.minibatches,
            }
        } else {
            Trouble::ValueLoss { updates: r.bad_updates, loss, usual: usual.unwrap_or(f64::NAN) }
        })
    }

    /// The largest value loss that is usual, where enough is known.
    fn usual(&self) -> Option<f64> {
        let losses = &self.record.value_losses;
        if self.config.value_loss_factor == 0.0 || losses.len() < ENOUGH {
            return None;
        }
        let largest = losses.iter().copied().fold(0.0, f64::max);
        (largest > 0.0).then_some(largest)
    }

    /// After an iteration without trouble; `weights` gives those of now and is only
    /// asked when they are kept.
    ///
    /// # Errors
    /// Those of `weights`.
    pub(crate) fn passed_probation<E>(
        &mut self,
        weights: impl FnOnce() -> Result<NamedTensors, E>,
    ) -> Result<(), E> {
        if self.record.bad_updates > 0 {
            return Ok(());
        }
        let r = &mut self.record;
        r.healthy = r.healthy.saturating_add(1);
        if r.healthy >= self.config.probation.saturating_mul(2) {
            r.roll_backs = 0;
        }
        if r.healthy.is_multiple_of(self.config.probation) {
            let now = weights()?;
            let stood = std::mem::replace(&mut self.candidate, now);
            if !stood.is_empty() {
                self.good = stood;
            }
        }
        Ok(())
    }

    /// From now on these are the weights to go back to.
    pub(crate) fn trust(&mut self, weights: &NamedTensors) {
        self.good = same(weights);
    }

    /// Counts a roll-back; false when there were too many.
    pub(crate) fn roll_back(&mut self) -> bool {
        let r = &mut self.record;
        r.bad_updates = 0;
        r.healthy = 0;
        // Losses of the weights that are gone say nothing about the older ones.
        r.value_losses.clear();
        r.roll_backs += 1;
        r.roll_backs_in_all += 1;
        self.candidate = Vec::new();
        r.roll_backs <= self.config.max_roll_backs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_learn::learner::registry::{Algorithm, methods};
    use tch::Tensor;

    fn update(skipped: u64, value_function: f64) -> UpdateStats {
        UpdateStats { skipped, minibatches: 4, value_function, ..UpdateStats::default() }
    }

    fn weights(x: i64) -> NamedTensors {
        vec![("w".into(), Tensor::from(x))]
    }

    fn health() -> Health {
        Health::new(&GuardConfig::default(), weights(0))
    }

    fn passed_probation(h: &mut Health, x: i64) {
        h.passed_probation(|| Ok::<_, ()>(weights(x))).unwrap();
    }

    #[test]
    fn weights_are_good_once_they_stood_their_probation() {
        let mut h = health();
        let good = |h: &Health| i64::try_from(&h.good()[0].1).unwrap();
        for i in 1..=40 {
            passed_probation(&mut h, i);
            assert_eq!(good(&h), if i < 40 { 0 } else { 20 }, "{i}");
        }
        assert!(h.roll_back());
        assert_eq!(good(&h), 20);
        // What was a candidate then is gone with the rest.
        for i in 100..120 {
            passed_probation(&mut h, i);
        }
        assert_eq!(good(&h), 20);
    }

    #[test]
    fn three_bad_updates_in_a_row_are_trouble_and_a_good_one_starts_anew() {
        let mut h = health();
        assert_eq!(h.judge_update(&update(3, 1.0)), None);
        assert_eq!(h.judge_update(&update(3, 1.0)), None);
        assert_eq!(h.judge_update(&update(2, 1.0)), None);
        assert_eq!(h.judge_update(&update(4, f64::NAN)), None);
        assert_eq!(h.judge_update(&update(3, 1.0)), None);
        let t = h.judge_update(&update(3, 1.0)).unwrap();
        assert!(t.to_string().contains("nothing was learnt in 3 updates"), "{t}");
    }

    #[test]
    fn the_limits_are_those_of_the_configuration() {
        let health = |guard: GuardConfig| Health::new(&guard, weights(0));
        for (most, backs) in [(0, [false, false]), (1, [true, false]), (2, [true, true])] {
            let mut h = health(GuardConfig { max_roll_backs: most, ..GuardConfig::default() });
            assert_eq!([h.roll_back(), h.roll_back()], backs, "{most}");
        }
        for (share, bad) in [(0.5, false), (0.4, true)] {
            let guard = GuardConfig {
                max_skipped_share: share,
                max_bad_updates: 1,
                ..GuardConfig::default()
            };
            // Two minibatches of four.
            assert_eq!(health(guard).judge_update(&update(2, 1.0)).is_some(), bad, "{share}");
        }
    }

    #[test]
    fn a_value_loss_is_compared_with_its_own_history() {
        let mut h = health();
        // No history, no explosion.
        assert_eq!(h.judge_update(&update(0, 1e12)), None);
        let mut h = health();
        for i in 0..20 {
            assert_eq!(h.judge_update(&update(0, 1.0 + f64::from(i))), None);
        }
        for _ in 0..2 {
            assert_eq!(h.judge_update(&update(0, 2.1e4)), None);
        }
        assert!(matches!(
            h.judge_update(&update(0, 2.1e4)),
            Some(Trouble::ValueLoss { updates: 3, usual, .. }) if usual == 20.0
        ));
        h.roll_back();
        assert_eq!(h.judge_update(&update(0, 1e12)), None);
    }

    #[test]
    fn parameters_that_are_not_finite_are_trouble_at_once() {
        let u = UpdateStats { non_finite_params: true, ..update(0, 1.0) };
        assert_eq!(health().judge_update(&u), Some(Trouble::NotFinite));
    }

    #[test]
    fn a_share_of_broken_steps_is_put_up_with() {
        let h = health();
        assert_eq!(h.judge_collection(25, &[20, 5], 100, String::new), None);
        // Steps with two kinds of faults are counted once.
        assert_eq!(h.judge_collection(25, &[25, 25], 100, String::new), None);
        let of_reward = || "nan/reward/upright 26".to_string();
        let t = h.judge_collection(26, &[20, 6], 100, of_reward).unwrap();
        assert!(t.to_string().ends_with("allows 25.0 %): nan/reward/upright 26"), "{t}");
        let remedy = t.remedy(Algorithm::default());
        assert!(remedy.contains("a root or a logarithm") && !remedy.contains("sim.dt"), "{remedy}");
        let t = h.judge_collection(26, &[20, 6], 100, String::new).unwrap();
        assert!(t.to_string().contains("26 of 100"), "{t}");
        let remedy = t.remedy(Algorithm::default());
        assert!(remedy.contains("sim.dt"), "{remedy}");
        let mut of_policy = [0; fault::COUNT];
        of_policy[3] = 100;
        let t = h.judge_collection(100, &of_policy, 100, String::new).unwrap();
        assert!(t.to_string().contains("100 of 100"), "{t}");
        // In the keys of what learns.
        for learner in methods() {
            let key = match learner.name() {
                "ars" => "ars.step_size".to_string(),
                "ppo" => "ppo.learning_rate".to_string(),
                name => format!("{name}.actor_learning_rate"),
            };
            let remedy = t.remedy(learner);
            assert!(remedy.contains(&key), "{remedy}");
        }
    }

    #[test]
    fn roll_backs_in_a_row_end_and_a_long_good_time_forgives_them() {
        let mut h = health();
        for _ in 0..5 {
            assert!(h.roll_back());
        }
        for i in 0..39 {
            passed_probation(&mut h, i);
        }
        assert!(!h.roll_back());
        let mut h = health();
        for _ in 0..5 {
            assert!(h.roll_back());
        }
        for i in 0..40 {
            passed_probation(&mut h, i);
        }
        assert!(h.roll_back());
        assert_eq!(h.record().roll_backs_in_all, 6);
    }
}
