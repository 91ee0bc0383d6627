//! The tables that keep a run alive: `[guard]`, `[back_off]`; and `[fault]`, which tries.

use crate::drill::{self, Drill};
use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[guard]`: limits of good iterations, and roll-backs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// Share of an iteration's environment steps that may break, 0..1. With more, the
    /// iteration is thrown away and the policy rolls back.
    pub max_broken_share: f64,
    /// An update is bad when more than this share of its minibatches had to be
    /// skipped, 0..1.
    pub max_skipped_share: f64,
    /// An update is bad when its value loss is so many times the largest of the last
    /// 50 good updates; 0: never.
    pub value_loss_factor: f64,
    /// So many bad updates in a row roll the policy back, 1 or more.
    pub max_bad_updates: u32,
    /// Weights count as good after so many iterations without trouble, 1 or more.
    pub probation: u32,
    /// Each roll-back multiplies the learning rate by this, above 0 and at most 1.
    pub roll_back_lr: f64,
    /// After so many roll-backs without twice `probation` good iterations between them
    /// the run stops with a report. 0: the first trouble stops it.
    pub max_roll_backs: u32,
    /// Share, above 0 and at most 1, of what was gained from the first evaluation to the
    /// best that a later evaluation may have lost. With more the policy rolls back to the
    /// weights of the best evaluation. 0: it never does for that reason. The run warns
    /// from a third on, whatever this is.
    pub max_return_drop: f64,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            max_broken_share: 0.25,
            max_skipped_share: 0.5,
            value_loss_factor: 1e3,
            max_bad_updates: 3,
            probation: 20,
            roll_back_lr: 0.5,
            max_roll_backs: 5,
            max_return_drop: 0.0,
        }
    }
}

impl GuardConfig {
    /// Values that cannot be used.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: &dyn std::fmt::Display, allowed: &str| {
            if !ok {
                errors.push(refusal("guard", key, value, allowed));
            }
        };
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let from_0_to_1 = "a number from 0 to 1";
        check(
            share(self.max_broken_share),
            "max_broken_share",
            &self.max_broken_share,
            from_0_to_1,
        );
        check(
            share(self.max_skipped_share),
            "max_skipped_share",
            &self.max_skipped_share,
            from_0_to_1,
        );
        check(
            self.value_loss_factor == 0.0
                || (self.value_loss_factor.is_finite() && self.value_loss_factor > 1.0),
            "value_loss_factor",
            &self.value_loss_factor,
            "a number above 1, or 0 for never",
        );
        let whole = "a whole number from 1 to 1000000";
        let count = |n: u32| (1..=1_000_000).contains(&n);
        check(count(self.max_bad_updates), "max_bad_updates", &self.max_bad_updates, whole);
        check(count(self.probation), "probation", &self.probation, whole);
        check(
            self.roll_back_lr > 0.0 && self.roll_back_lr <= 1.0,
            "roll_back_lr",
            &self.roll_back_lr,
            "a number above 0 and at most 1",
        );
        check(
            share(self.max_return_drop),
            "max_return_drop",
            &self.max_return_drop,
            "a number above 0 and at most 1, or 0 for never",
        );
        errors
    }
}

/// `[back_off]`: how the number of environments gives way to memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackOffConfig {
    /// The number of environments is multiplied by this when memory does not suffice,
    /// 0.1..0.9; 1 switches back-off off.
    pub factor: f64,
    /// Fewer environments than this are not worth going on with, 1 or more.
    pub min_num_envs: usize,
    /// After so many iterations without pressure the number grows again by one step, up
    /// to `env.num_envs`; 0: never.
    pub grow_after: u64,
    /// Changes that a run made, written by it: `[iteration, num_envs]`. A run that is given such
    /// a list changes its number of environments before those iterations.
    pub changes: Vec<[u64; 2]>,
}

impl Default for BackOffConfig {
    fn default() -> Self {
        Self { factor: 0.5, min_num_envs: 1, grow_after: 0, changes: Vec::new() }
    }
}

impl BackOffConfig {
    /// Whether memory errors lead to fewer environments.
    pub fn enabled(&self) -> bool {
        self.factor < 1.0
    }

    /// Values that cannot be used.
    pub fn validate(&self, max_envs: usize) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        if !((0.1..=0.9).contains(&self.factor) || self.factor == 1.0) {
            let allowed = "a number from 0.1 to 0.9, or 1 for no back-off";
            errors.push(refusal("back_off", "factor", &self.factor, allowed));
        }
        let allowed = format!("a whole number from 1 to {max_envs}");
        if !(1..=max_envs).contains(&self.min_num_envs) {
            let key = "min_num_envs";
            errors.push(refusal("back_off", key, &self.min_num_envs, &allowed));
        }
        for (i, [iteration, n]) in self.changes.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| self.changes[i][0]);
            if before.is_some_and(|before| before >= *iteration) {
                let allowed = "each change at a later iteration than the one before";
                let key = format!("changes[{i}]");
                errors.push(refusal("back_off", &key, iteration, allowed));
            }
            if !(1..=max_envs as u64).contains(n) {
                errors.push(refusal("back_off", &format!("changes[{i}]"), n, &allowed));
            }
        }
        errors
    }

    /// The number of environments one step below `n`, `None` below the least.
    pub fn below(&self, n: usize) -> Option<usize> {
        if !self.enabled() {
            return None;
        }
        // Whole blocks of 16 fill the lanes of a vector.
        let mut to = (n as f64 * self.factor) as usize;
        if to > 64 {
            to -= to % 16;
        }
        let to = to.min(n.saturating_sub(1));
        (to >= self.min_num_envs).then_some(to)
    }

    /// The change in force after `iteration` iterations: `[iteration, num_envs]`.
    pub fn last(&self, iteration: u64) -> Option<[u64; 2]> {
        let mut latest_first = self.changes.iter().rev();
        latest_first.find(|c| c[0] <= iteration).copied()
    }

    /// Puts a change on record, instead of one of the same iteration. Changes planned for
    /// later still hold.
    pub fn record(&mut self, iteration: u64, num_envs: usize) {
        self.changes.retain(|c| c[0] != iteration);
        self.changes.push([iteration, num_envs as u64]);
        self.changes.sort_by_key(|c| c[0]);
    }

    /// The number one step above `n`, at most `most`.
    pub fn above(&self, n: usize, most: usize) -> usize {
        ((n as f64 / self.factor) as usize).clamp(n, most.max(n))
    }
}

/// `[fault]`: drills.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultConfig {
    /// Faults on order, one text each, such as `"nan qpos[2] env=3 step=50"`; see
    /// docs/robustness.md. For drills only: a run says loudly that it has some.
    pub inject: Vec<String>,
}

impl FaultConfig {
    /// The faults, read.
    ///
    /// # Errors
    /// Each text that is none.
    pub fn drills(&self) -> Result<Vec<Drill>, Vec<ConfigError>> {
        let (mut drills, mut errors) = (Vec::new(), Vec::new());
        for (i, text) in self.inject.iter().enumerate() {
            match drill::parse(text) {
                Ok(drill) => drills.push(drill),
                Err(why) => errors.push(ConfigError::new(format!("fault.inject[{i}]"), why)),
            }
        }
        match errors.is_empty() {
            true => Ok(drills),
            false => Err(errors),
        }
    }
}

fn refusal(table: &str, key: &str, value: &dyn std::fmt::Display, allowed: &str) -> ConfigError {
    ConfigError::new(format!("{table}.{key}"), format!("{value} cannot be used"))
        .help(format!("allowed: {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_down_end_at_the_least_and_steps_up_at_what_was_asked() {
        let c = BackOffConfig { min_num_envs: 20, ..BackOffConfig::default() };
        let mut n = 1000;
        let mut seen = vec![n];
        while let Some(to) = c.below(n) {
            n = to;
            seen.push(n);
        }
        assert_eq!(seen, [1000, 496, 240, 112, 56, 28]);
        assert_eq!(c.above(28, 1000), 56);
        assert_eq!(c.above(700, 1000), 1000);
        assert_eq!(c.above(1000, 1000), 1000);
        let off = BackOffConfig { factor: 1.0, ..c.clone() };
        assert_eq!(off.below(1000), None);
        // A factor near 1 still leads down to one and ends there.
        let slow = BackOffConfig { factor: 0.9, min_num_envs: 1, ..c };
        assert_eq!((slow.below(2), slow.below(1)), (Some(1), None));
    }

    #[test]
    fn impossible_values_are_named() {
        let guard = GuardConfig {
            max_broken_share: 2.0,
            value_loss_factor: 0.5,
            max_bad_updates: 0,
            roll_back_lr: f64::NAN,
            max_return_drop: 1.5,
            ..GuardConfig::default()
        };
        let paths: Vec<String> = guard.validate().into_iter().map(|e| e.path).collect();
        assert_eq!(
            paths,
            [
                "guard.max_broken_share",
                "guard.value_loss_factor",
                "guard.max_bad_updates",
                "guard.roll_back_lr",
                "guard.max_return_drop"
            ]
        );
        let back_off = BackOffConfig {
            factor: 0.95,
            min_num_envs: 0,
            changes: vec![[3, 0]],
            ..BackOffConfig::default()
        };
        let paths: Vec<String> = back_off.validate(100).into_iter().map(|e| e.path).collect();
        assert_eq!(paths, ["back_off.factor", "back_off.min_num_envs", "back_off.changes[0]"]);
    }
}
