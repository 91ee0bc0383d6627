//! From rollouts to better policies.
//!
//! Reading order: [`Learner`] -> [`ppo::Ppo`] -> [`policy::ActorCritic`] -> `nn`
//! (layers with a backward pass written by hand, the flat parameter tensor, Adam).

pub mod nn;
pub mod normalizer;
pub mod policy;
pub mod ppo;

pub use policy::{ActorConfig, ActorCritic, CriticConfig};
pub use ppo::{Ppo, PpoConfig};

use ostler_collector::Rollout;
use ostler_sim::config::ConfigError;
use ostler_sim::memory::MemoryError;
use tch::Tensor;

/// Something that improves a policy with what it is shown.
pub trait Learner {
    /// Learns from one rollout and says what happened. Reads one small block of
    /// numbers back from the device, at its end.
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError>;
}

/// Tensors with their names, as a checkpoint holds them.
pub type NamedTensors = Vec<(String, Tensor)>;

/// Why learning failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum LearnError {
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tensors of a checkpoint do not fit this learner.
    #[error(
        "the checkpoint does not fit: {0}; it is of another robot, task or network, use the run's own config.toml"
    )]
    Checkpoint(String),
    /// A rollout of other sizes than the learner was built for.
    #[error("rollout of {got}, the learner was built for {expected}")]
    Shape { expected: String, got: String },
}

/// What one update did. Means are over all minibatches that were not skipped,
/// weighted by valid samples within each; a mean over nothing is NaN.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UpdateStats {
    /// Clipped surrogate loss (`Loss/surrogate`).
    pub surrogate: f64,
    /// Value loss before its coefficient (`Loss/value_function`).
    pub value_function: f64,
    /// Entropy of the policy (nat) (`Loss/entropy`).
    pub entropy: f64,
    /// Kullback-Leibler divergence from the policy that collected to the present one
    /// (nat) (`Policy/kl`).
    pub kl: f64,
    /// Share of samples whose probability ratio left the clipping range
    /// (`Policy/clip_fraction`).
    pub clip_fraction: f64,
    /// 1 - Var(return - value) / Var(return) before the update
    /// (`Loss/explained_variance`); 1 is perfect, 0 is no better than a constant.
    pub explained_variance: f64,
    /// Mean standard deviation of the actions collected; 0 for a categorical policy
    /// (`Policy/mean_std`).
    pub mean_std: f64,
    /// Learning rate after the update (`Loss/learning_rate`).
    pub learning_rate: f64,
    /// Mean norm of the gradient before clipping (`Loss/grad_norm`).
    pub grad_norm: f64,
    /// Share of minibatches whose gradient was clipped (`Loss/grad_clipped`).
    pub grad_clipped: f64,
    /// Minibatches skipped because loss or gradient was not finite, or no sample was
    /// valid (`Guard/skipped_minibatches`).
    pub skipped: u64,
    /// Minibatches in all.
    pub minibatches: u64,
    /// Samples that were not learnt from (`Guard/invalid_samples`).
    pub invalid: u64,
    /// Time for values, advantages and what else precedes the first minibatch (s).
    pub gae_s: f64,
    /// Time for all of the update (s).
    pub update_s: f64,
}

impl UpdateStats {
    /// Tag and value of everything worth a curve.
    pub fn scalars(&self) -> [(&'static str, f64); 12] {
        [
            ("Loss/surrogate", self.surrogate),
            ("Loss/value_function", self.value_function),
            ("Loss/entropy", self.entropy),
            ("Loss/explained_variance", self.explained_variance),
            ("Loss/learning_rate", self.learning_rate),
            ("Loss/grad_norm", self.grad_norm),
            ("Loss/grad_clipped", self.grad_clipped),
            ("Policy/mean_std", self.mean_std),
            ("Policy/kl", self.kl),
            ("Policy/clip_fraction", self.clip_fraction),
            ("Guard/skipped_minibatches", self.skipped as f64),
            ("Guard/invalid_samples", self.invalid as f64),
        ]
    }
}
