//! `[ppo]`.

use super::rnd::RndConfig;
use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ppo]`: proximal policy optimisation (Schulman et al. 2017).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Passes over each rollout, 1 or more.
    pub num_learning_epochs: usize,
    /// Minibatches per pass, 1 up to the samples of a rollout, or of a recurrent policy up to
    /// its sequences. Every sample is used once per pass; sizes differ by at most one where
    /// they do not divide.
    pub num_mini_batches: usize,
    /// Steps of the sequences that a recurrent policy (`actor.rnn_type`) learns from, through
    /// which gradients go back: a divisor of `runner.num_steps_per_env`. 0: all of them. Every
    /// sequence begins with the hidden state that the rollout has there.
    pub sequence_length: usize,
    /// How far the probability ratio counts beyond 1, above 0.
    pub clip_param: f64,
    /// Also keep a new value near the old one in the value loss: within `clip_param` times
    /// the standard deviation of the rollout's returns.
    pub use_clipped_value_loss: bool,
    /// Weight of the value loss, 0 or more.
    pub value_loss_coef: f64,
    /// Value loss: `"mse"` (squared error) or `"huber"` (linear beyond an error of 1).
    pub value_loss: ValueLoss,
    /// The critic learns returns shifted and scaled by their running mean and standard
    /// deviation, for tasks whose returns are far from 1. Value losses, `clip_param` and the
    /// Huber loss's 1 are then in those units.
    pub normalize_returns: bool,
    /// Weight of the entropy bonus, 0 or more.
    pub entropy_coef: f64,
    /// Discount per step, 0..1.
    pub gamma: f64,
    /// Decay of the advantage trace (Schulman et al. 2016), 0..1.
    pub gae_lambda: f64,
    /// Learning rate of Adam at the start, above 0.
    pub learning_rate: f64,
    /// `"fixed"`; `"linear"`: down to 0 over the run (over `--max-time` where that ends it
    /// first); `"adaptive"`: after every update the policy's rate is divided by 1.5 where the
    /// update ended early by `kl_stop` or beyond twice `desired_kl`, and multiplied by 1.5 where
    /// it ended below half of it.
    pub schedule: Schedule,
    /// Divergence per update that `"adaptive"` aims at (nat), above 0.
    pub desired_kl: f64,
    /// Share of `desired_kl` at the end of the run, to which it falls evenly: a
    /// policy that keeps moving as far as at the start does not settle. Above 0, at most 1.
    pub final_kl_share: f64,
    /// The policy learns no more in an update once its divergence exceeds this many times
    /// `desired_kl`; the critic goes on. 0: never.
    pub kl_stop: f64,
    /// The critic's learning rate, which `"adaptive"` leaves alone. 0: `learning_rate`, as
    /// always where the networks share a trunk.
    pub critic_learning_rate: f64,
    /// Lower bound of `"adaptive"`.
    pub min_learning_rate: f64,
    /// Upper bound of `"adaptive"`.
    pub max_learning_rate: f64,
    /// Longest gradient, of the actor and of the critic each; longer ones are scaled down.
    /// Above 0.
    pub max_grad_norm: f64,
    /// Every step takes this share, times the learning rate, off all weights, biases and
    /// learnt standard deviations: decoupled decay, PyTorch's `AdamW`. 0 or more.
    pub weight_decay: f64,
    /// Shift and scale advantages to mean 0 and standard deviation 1 over the `"batch"` (the
    /// whole rollout), over each `"mini_batch"`, or not at all: `"none"`.
    pub normalize_advantage: AdvantageNorm,
    /// Where the standard deviation of advantages is below this share of the returns' standard
    /// deviation, the policy's learning rate is as much smaller, and the divergences that
    /// it aims at and stops at by the square: once a task is solved, advantages are noise.
    /// With `"batch"`. 0 or more.
    pub advantage_floor: f64,
    /// Samples (sequences, of a recurrent policy) are drawn in proportion to the size of their
    /// advantage to this power, in place of each once per pass. 0: each once.
    pub priority_alpha: f64,
    /// With `priority_alpha`: their advantages count by the probability, relative to the
    /// mean, to minus this power. 0: as they are; 1: as if all were drawn alike. 0..1.
    pub priority_beta: f64,
    /// Treatment of samples of an older policy (`collector.kind = "async"`):
    /// `"vtrace"` corrects values and advantages (Espeholt et al. 2018), `"clip"` weighs
    /// samples by the clipped ratio of the policies alone, `"none"`. `"auto"`: `"clip"`
    /// where there are such samples, else `"none"`.
    pub staleness_correction: Staleness,
    /// `[ppo.imitation]`: a teacher.
    pub imitation: ImitationConfig,
    /// `[ppo.rnd]`: a reward for states that were rarely seen.
    pub rnd: RndConfig,
}

/// `[ppo.imitation]`: the policy is pulled towards the actions of a trained one, the teacher. The
/// teacher sees observations of its own, `[[task.observation]]` with `group = "teacher"`: what
/// a robot cannot measure, for example (distillation; Ross et al., "A reduction of imitation
/// learning and structured prediction to no-regret online learning", 2011).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImitationConfig {
    /// The teacher: a run's folder, or one of its checkpoints, from the working directory;
    /// empty: none.
    pub teacher: String,
    /// The group of observations that it sees.
    pub group: String,
    /// Weight of the loss: the mean square difference of the policy's mean from the
    /// teacher's action; of choices, the divergence from the teacher's. 0 or more.
    pub coef: f64,
    /// Share of `coef` at the end of the run, to which it falls evenly. 0..1.
    pub final_share: f64,
    /// Learn from the teacher alone: rewards count for the critic only, and `ppo.entropy_coef`
    /// for nothing: no reward would stand against a standard deviation that it widens.
    pub alone: bool,
}

impl Default for ImitationConfig {
    fn default() -> Self {
        Self {
            teacher: String::new(),
            group: "teacher".into(),
            coef: 1.0,
            final_share: 1.0,
            alone: false,
        }
    }
}

impl ImitationConfig {
    /// Whether there is a teacher.
    pub fn is_on(&self) -> bool {
        !self.teacher.is_empty()
    }

    /// Whether nothing but the teacher is learnt from.
    pub fn is_alone(&self) -> bool {
        self.is_on() && self.alone
    }

    /// The loss's weight where so much of the run is left, 0..1.
    pub fn coef_at(&self, left: f64) -> f64 {
        self.coef * (self.final_share + (1.0 - self.final_share) * left)
    }
}

impl PpoConfig {
    /// The weight of the entropy in the loss: none where a teacher alone is learnt from.
    pub fn entropy_bonus(&self) -> f64 {
        if self.imitation.is_alone() { 0.0 } else { self.entropy_coef }
    }
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            num_learning_epochs: 3,
            num_mini_batches: 4,
            sequence_length: 0,
            clip_param: 0.2,
            use_clipped_value_loss: false,
            value_loss_coef: 1.0,
            value_loss: ValueLoss::Mse,
            normalize_returns: true,
            entropy_coef: 0.01,
            gamma: 0.99,
            gae_lambda: 0.95,
            learning_rate: 1e-3,
            schedule: Schedule::Adaptive,
            desired_kl: 0.03,
            final_kl_share: 1.0,
            kl_stop: 1.5,
            critic_learning_rate: 0.0,
            min_learning_rate: 1e-5,
            max_learning_rate: 1e-2,
            max_grad_norm: 1.0,
            weight_decay: 0.0,
            normalize_advantage: AdvantageNorm::Batch,
            advantage_floor: 0.0,
            priority_alpha: 0.0,
            priority_beta: 0.2,
            staleness_correction: Staleness::Auto,
            imitation: ImitationConfig::default(),
            rnd: RndConfig::default(),
        }
    }
}

/// `ppo.value_loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueLoss {
    /// `(value - return)^2`.
    Mse,
    /// Half of the square up to an error of 1, linear beyond.
    Huber,
}

/// `ppo.schedule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The learning rate stays.
    Fixed,
    /// Falls to 0 over the run.
    Linear,
    /// Follows the KL divergence.
    Adaptive,
}

/// `ppo.normalize_advantage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdvantageNorm {
    /// Over the whole rollout.
    Batch,
    /// Over each minibatch.
    MiniBatch,
    /// Not at all.
    None,
}

/// `ppo.staleness_correction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Staleness {
    /// `Clip` where the collector gives samples of older policies, else `None`.
    Auto,
    /// Values and advantages by V-trace.
    Vtrace,
    /// Weights alone.
    Clip,
    /// Samples are taken as the present policy's.
    None,
}

impl PpoConfig {
    /// Steps of a recurrent policy's sequences in rollouts of so many.
    pub fn sequence_steps(&self, rollout: usize) -> usize {
        match self.sequence_length {
            0 => rollout,
            steps => steps,
        }
    }

    /// The critic's learning rate at the start.
    pub(super) fn critic_rate(&self) -> f64 {
        match self.critic_learning_rate {
            0.0 => self.learning_rate,
            own => own,
        }
    }

    /// The divergence at which the policy stops, as a multiple of the desired one.
    pub(super) fn stop(&self) -> f64 {
        match self.kl_stop {
            0.0 => f64::INFINITY,
            multiple => multiple,
        }
    }

    /// Values that cannot be used, with paths such as `ppo.num_mini_batches`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: &dyn std::fmt::Display, allowed: &str| {
            if !ok {
                errors.push(
                    ConfigError::new(format!("ppo.{key}"), format!("{value} cannot be used"))
                        .help(format!("allowed: {allowed}")),
                );
            }
        };
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let at_least_0 = |x: f64| x.is_finite() && x >= 0.0;
        let unit = |x: f64| (0.0..=1.0).contains(&x);
        let count = |n: usize| (1..=1_000_000).contains(&n);
        let whole = "a whole number from 1 to 1000000";
        let above_0 = "a number above 0";
        let from_0 = "a number of 0 or more";
        let share = "a number from 0 to 1";
        let c = self;
        check(count(c.num_learning_epochs), "num_learning_epochs", &c.num_learning_epochs, whole);
        check(count(c.num_mini_batches), "num_mini_batches", &c.num_mini_batches, whole);
        check(positive(c.clip_param), "clip_param", &c.clip_param, above_0);
        check(at_least_0(c.value_loss_coef), "value_loss_coef", &c.value_loss_coef, from_0);
        check(at_least_0(c.entropy_coef), "entropy_coef", &c.entropy_coef, from_0);
        check(unit(c.gamma), "gamma", &c.gamma, share);
        check(unit(c.gae_lambda), "gae_lambda", &c.gae_lambda, share);
        check(positive(c.learning_rate), "learning_rate", &c.learning_rate, above_0);
        check(positive(c.desired_kl), "desired_kl", &c.desired_kl, above_0);
        check(
            unit(c.final_kl_share) && c.final_kl_share > 0.0,
            "final_kl_share",
            &c.final_kl_share,
            "a number above 0, at most 1",
        );
        check(at_least_0(c.kl_stop), "kl_stop", &c.kl_stop, from_0);
        check(
            at_least_0(c.critic_learning_rate),
            "critic_learning_rate",
            &c.critic_learning_rate,
            from_0,
        );
        check(at_least_0(c.advantage_floor), "advantage_floor", &c.advantage_floor, from_0);
        check(at_least_0(c.priority_alpha), "priority_alpha", &c.priority_alpha, from_0);
        let i = &c.imitation;
        check(at_least_0(i.coef), "imitation.coef", &i.coef, from_0);
        check(unit(i.final_share), "imitation.final_share", &i.final_share, share);
        check(unit(c.priority_beta), "priority_beta", &c.priority_beta, share);
        check(positive(c.min_learning_rate), "min_learning_rate", &c.min_learning_rate, above_0);
        check(
            positive(c.max_learning_rate) && c.max_learning_rate >= c.min_learning_rate,
            "max_learning_rate",
            &c.max_learning_rate,
            "a number of ppo.min_learning_rate or more",
        );
        check(positive(c.max_grad_norm), "max_grad_norm", &c.max_grad_norm, above_0);
        check(at_least_0(c.weight_decay), "weight_decay", &c.weight_decay, from_0);
        errors.extend(c.rnd.validate());
        errors
    }

    /// Errors of keys for rollouts of `steps` steps, `samples` in all; from
    /// sequences, if the policy is `recurrent`.
    pub fn validate_rollout(
        &self,
        steps: usize,
        samples: usize,
        recurrent: bool,
    ) -> Vec<ConfigError> {
        let per_sequence = match recurrent {
            true => self.sequence_steps(steps).max(1),
            false => 1,
        };
        if !steps.is_multiple_of(per_sequence) {
            let why =
                format!("rollouts of {steps} steps are not whole sequences of {per_sequence}");
            let help = "a divisor of runner.num_steps_per_env, or 0: all of it";
            return vec![ConfigError::new("ppo.sequence_length", why).help(help)];
        }
        let (parts, count) = (self.num_mini_batches, samples / per_sequence);
        if parts <= count {
            return Vec::new();
        }
        let (what, most) = match recurrent {
            false => ("samples", "env.num_envs x runner.num_steps_per_env"),
            true => ("sequences", "env.num_envs x runner.num_steps_per_env / ppo.sequence_length"),
        };
        let why = format!("{parts} minibatches of only {count} {what}");
        let help = format!("at most {most} = {count}");
        vec![ConfigError::new("ppo.num_mini_batches", why).help(help)]
    }
}
