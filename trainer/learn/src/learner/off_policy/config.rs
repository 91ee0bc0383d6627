//! `[sac]` and `[td3]`.

use super::values::Values;
use crate::learner::nn::adam::BETAS;
use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, TchError};

/// `[sac]`: soft actor-critic with twin critics and a temperature that finds itself
/// (Haarnoja et al., "Soft actor-critic algorithms and applications", 2018).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SacConfig {
    /// Transitions per gradient step, 1 or more.
    pub batch_size: usize,
    /// Gradient steps per control step of all environments, 1 or more: an iteration takes
    /// this times `runner.num_steps_per_env`.
    pub num_updates: usize,
    /// Transitions that are collected before the first gradient step.
    pub learning_starts: usize,
    /// Discount per step, 0..1.
    pub gamma: f64,
    /// Share of the way that the slow critics move per gradient step, 0..1.
    pub tau: f64,
    /// Learning rate of the actor's Adam, above 0.
    pub actor_learning_rate: f64,
    /// Learning rate of the critics' Adam, above 0.
    pub critic_learning_rate: f64,
    /// Learning rate of the temperature's Adam, above 0.
    pub alpha_learning_rate: f64,
    /// Every step takes this share, times the learning rate, off all weights and biases of
    /// actor and critics (not the temperature): decoupled decay, PyTorch's `AdamW`. 0 or
    /// more.
    pub weight_decay: f64,
    /// Temperature at the start: the reward that a nat of entropy is worth, above 0.
    pub init_alpha: f64,
    /// The temperature follows the entropy; else it stays.
    pub auto_alpha: bool,
    /// Entropy that the temperature aims at, per action (nat), of actions in units of
    /// `action_bound`.
    pub target_entropy: f64,
    /// The temperature learns with every step of the critics, from the actions of their
    /// targets; else with every step of the actor, from the actor's.
    pub alpha_with_critics: bool,
    /// Returns that the critics tell apart, evenly from `v_min` to `v_max`: they learn the
    /// distribution of returns. 1: they learn the mean.
    pub num_atoms: usize,
    /// Smallest of these returns, those of entropy included.
    pub v_min: f64,
    /// Largest of them.
    pub v_max: f64,
    /// The target is that of the critic which expects less, and the actor follows it; else each
    /// critic has its own, and the actor follows their mean.
    pub use_cdq: bool,
    /// Gradient steps of the critics per one of the actor, 1 or more.
    pub policy_frequency: usize,
    /// Actions lie within plus and minus this, above 0.
    pub action_bound: f64,
    /// `action_bound` is in units of what brings each joint's target to the farther of the
    /// joint's limits, for `[[task.action]]` of `kind = "position"`.
    pub joint_limits: bool,
    /// A hyperbolic tangent holds the logarithm of the standard deviation between those of
    /// `actor.min_std` and `actor.max_std`; else it is clipped there.
    pub tanh_std: bool,
    /// Decay of Adam's mean of gradients and of that of their squares, each from 0 to below 1.
    pub betas: [f64; 2],
    /// Share of all learning rates at the end of the run, 0..1: they fall along half a cosine.
    pub final_lr_share: f64,
    /// Longest gradient of each network; longer ones are scaled down. 0: as long as they
    /// are.
    pub max_grad_norm: f64,
}

impl Default for SacConfig {
    fn default() -> Self {
        Self {
            batch_size: 256,
            num_updates: 1,
            learning_starts: 5000,
            gamma: 0.99,
            tau: 0.005,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            alpha_learning_rate: 3e-4,
            weight_decay: 0.0,
            init_alpha: 1.0,
            auto_alpha: true,
            target_entropy: -1.0,
            alpha_with_critics: false,
            num_atoms: 1,
            v_min: -20.0,
            v_max: 20.0,
            use_cdq: true,
            policy_frequency: 1,
            action_bound: 1.0,
            joint_limits: false,
            tanh_std: false,
            betas: BETAS,
            final_lr_share: 1.0,
            max_grad_norm: 10.0,
        }
    }
}

/// `[td3]`: twin delayed deterministic policy gradient for many environments, with
/// critics that learn the distribution of returns (Seo et al., "FastTD3: simple, fast,
/// and capable reinforcement learning for humanoid control", 2025; Bellemare et al., "A
/// distributional perspective on reinforcement learning", 2017).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Td3Config {
    /// Transitions per gradient step, 1 or more.
    pub batch_size: usize,
    /// Gradient steps per control step of all environments, 1 or more: an iteration takes
    /// this times `runner.num_steps_per_env`.
    pub num_updates: usize,
    /// Transitions that are collected before the first gradient step.
    pub learning_starts: usize,
    /// Discount per step, 0..1.
    pub gamma: f64,
    /// Share of the way that the slow critics move per gradient step, 0..1.
    pub tau: f64,
    /// Learning rate of the actor's Adam, above 0.
    pub actor_learning_rate: f64,
    /// Learning rate of the critics' Adam, above 0.
    pub critic_learning_rate: f64,
    /// Every step takes this share, times the learning rate, off all weights and biases of
    /// actor and critics: decoupled decay, PyTorch's `AdamW`. 0 or more.
    pub weight_decay: f64,
    /// Gradient steps of the critics per one of the actor, 1 or more.
    pub policy_frequency: usize,
    /// Deviation of the noise on actions in targets, in units of `action_bound`.
    pub policy_noise: f64,
    /// That noise is clipped to plus and minus this, in units of `action_bound`.
    pub noise_clip: f64,
    /// Smallest standard deviation of the noise that explores, in units of `action_bound`. Each
    /// environment has one of its own between this and `std_max`.
    pub std_min: f64,
    /// Largest standard deviation of that noise.
    pub std_max: f64,
    /// Returns that the critics tell apart, 2 or more, evenly from `v_min` to `v_max`.
    pub num_atoms: usize,
    /// Smallest of these returns.
    pub v_min: f64,
    /// Largest of them.
    pub v_max: f64,
    /// The target is that of the critic which expects less; else each critic has its own,
    /// and the actor follows their mean.
    pub use_cdq: bool,
    /// Actions lie within plus and minus this, above 0.
    pub action_bound: f64,
    /// Longest gradient of each network; longer ones are scaled down. 0: as long as they
    /// are.
    pub max_grad_norm: f64,
}

impl Default for Td3Config {
    fn default() -> Self {
        Self {
            batch_size: 32_768,
            num_updates: 2,
            learning_starts: 5000,
            gamma: 0.99,
            tau: 0.1,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            weight_decay: 0.1,
            policy_frequency: 2,
            policy_noise: 0.001,
            noise_clip: 0.5,
            std_min: 0.001,
            std_max: 0.4,
            num_atoms: 101,
            v_min: -250.0,
            v_max: 250.0,
            use_cdq: true,
            action_bound: 1.0,
            max_grad_norm: 10.0,
        }
    }
}

/// Keys of both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub(super) batch_size: usize,
    pub(super) num_updates: usize,
    pub(super) learning_starts: usize,
    pub(super) gamma: f64,
    pub(super) tau: f64,
    pub(super) actor_learning_rate: f64,
    pub(super) critic_learning_rate: f64,
    pub(super) weight_decay: f64,
    pub(super) policy_frequency: usize,
    pub(super) action_bound: f64,
    pub(super) max_grad_norm: f64,
    pub(super) betas: [f64; 2],
    pub(super) final_lr_share: f64,
}

macro_rules! common {
    ($c:expr, $betas:expr, $final_lr_share:expr) => {
        Common {
            batch_size: $c.batch_size,
            num_updates: $c.num_updates,
            learning_starts: $c.learning_starts,
            gamma: $c.gamma,
            tau: $c.tau,
            actor_learning_rate: $c.actor_learning_rate,
            critic_learning_rate: $c.critic_learning_rate,
            weight_decay: $c.weight_decay,
            policy_frequency: $c.policy_frequency,
            action_bound: $c.action_bound,
            max_grad_norm: $c.max_grad_norm,
            betas: $betas,
            final_lr_share: $final_lr_share,
        }
    };
}

impl SacConfig {
    pub(super) fn common(&self) -> Common {
        common!(self, self.betas, self.final_lr_share)
    }

    pub(super) fn values(&self, device: Device) -> Result<Values, TchError> {
        Values::new(self.num_atoms, [self.v_min, self.v_max], (self.use_cdq, true), device)
    }

    /// Values that cannot be used, with paths such as `sac.batch_size`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut check = Check::new("sac");
        check.common(&self.common());
        check.positive("alpha_learning_rate", self.alpha_learning_rate);
        check.positive("init_alpha", self.init_alpha);
        let finite = self.target_entropy.is_finite();
        check.that(finite, "target_entropy", self.target_entropy, "a number");
        check.atoms(1, self.num_atoms, [self.v_min, self.v_max]);
        for beta in self.betas {
            check.that((0.0..1.0).contains(&beta), "betas", beta, "numbers from 0 to below 1");
        }
        let share = (0.0..=1.0).contains(&self.final_lr_share);
        check.that(share, "final_lr_share", self.final_lr_share, "a number from 0 to 1");
        check.errors
    }
}

impl Td3Config {
    pub(super) fn common(&self) -> Common {
        common!(self, BETAS, 1.0)
    }

    pub(super) fn values(&self, device: Device) -> Result<Values, TchError> {
        Values::new(self.num_atoms, [self.v_min, self.v_max], (self.use_cdq, false), device)
    }

    /// Values that cannot be used, with paths such as `td3.num_atoms`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut check = Check::new("td3");
        check.common(&self.common());
        check.zero_or_more("policy_noise", self.policy_noise);
        check.zero_or_more("noise_clip", self.noise_clip);
        check.zero_or_more("std_min", self.std_min);
        let ordered = self.std_max.is_finite() && self.std_max >= self.std_min;
        check.that(ordered, "std_max", self.std_max, "a number of td3.std_min or more");
        check.atoms(2, self.num_atoms, [self.v_min, self.v_max]);
        check.errors
    }
}

/// Collects the mistakes in a table.
struct Check {
    table: &'static str,
    errors: Vec<ConfigError>,
}

impl Check {
    fn new(table: &'static str) -> Self {
        Self { table, errors: Vec::new() }
    }

    fn that(&mut self, ok: bool, key: &str, value: f64, allowed: &str) {
        if !ok {
            let path = format!("{}.{key}", self.table);
            self.errors.push(
                ConfigError::new(path, format!("{value} cannot be used"))
                    .help(format!("allowed: {allowed}")),
            );
        }
    }

    fn positive(&mut self, key: &str, x: f64) {
        self.that(x.is_finite() && x > 0.0, key, x, "a number above 0");
    }

    fn zero_or_more(&mut self, key: &str, x: f64) {
        self.that(x.is_finite() && x >= 0.0, key, x, "a number of 0 or more");
    }

    fn count(&mut self, key: &str, n: usize, most: usize) {
        let allowed = format!("a whole number from 1 to {most}");
        self.that((1..=most).contains(&n), key, n as f64, &allowed);
    }

    fn atoms(&mut self, least: usize, count: usize, [low, high]: [f64; 2]) {
        let allowed = format!("a whole number from {least} to 10000");
        self.that((least..=10_000).contains(&count), "num_atoms", count as f64, &allowed);
        self.that(low.is_finite(), "v_min", low, "a number");
        let allowed = format!("a number above {}.v_min", self.table);
        self.that(high.is_finite() && high > low, "v_max", high, &allowed);
    }

    fn common(&mut self, c: &Common) {
        self.count("batch_size", c.batch_size, 1 << 24);
        self.count("num_updates", c.num_updates, 100_000);
        self.count("policy_frequency", c.policy_frequency, 100_000);
        for (key, x) in [("gamma", c.gamma), ("tau", c.tau)] {
            let share = (0.0..=1.0).contains(&x);
            self.that(share, key, x, "a number from 0 to 1");
        }
        self.positive("actor_learning_rate", c.actor_learning_rate);
        self.positive("critic_learning_rate", c.critic_learning_rate);
        self.zero_or_more("weight_decay", c.weight_decay);
        self.positive("action_bound", c.action_bound);
        self.zero_or_more("max_grad_norm", c.max_grad_norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_can_be_used_and_impossible_values_are_named() {
        assert!(SacConfig::default().validate().is_empty());
        assert!(Td3Config::default().validate().is_empty());
        let sac = SacConfig {
            batch_size: 0,
            tau: 1.5,
            init_alpha: 0.0,
            weight_decay: -0.1,
            max_grad_norm: f64::NAN,
            num_atoms: 0,
            v_max: -20.0,
            betas: [0.9, 1.0],
            final_lr_share: 1.1,
            ..SacConfig::default()
        };
        let td3 = Td3Config { num_atoms: 1, v_max: -300.0, std_max: -1.0, ..Td3Config::default() };
        let paths = |errors: Vec<ConfigError>| -> Vec<String> {
            errors.into_iter().map(|e| e.path).collect()
        };
        assert_eq!(
            paths(sac.validate()),
            [
                "sac.batch_size",
                "sac.tau",
                "sac.weight_decay",
                "sac.max_grad_norm",
                "sac.init_alpha",
                "sac.num_atoms",
                "sac.v_max",
                "sac.betas",
                "sac.final_lr_share"
            ]
        );
        assert_eq!(paths(td3.validate()), ["td3.std_max", "td3.num_atoms", "td3.v_max"]);
    }
}
