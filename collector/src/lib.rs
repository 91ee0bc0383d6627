//! A policy times a simulation gives rollouts.
//!
//! Reading order: [`Collector::collect`] -> [`SyncCollector`] -> [`Policy::act`] and
//! `BatchEnv::step`. Nothing here knows what a loss is.

pub mod env;
pub mod memory;
mod noise;
pub mod policy;
pub mod rollout;
pub mod sync;

pub use policy::{Act, Policy};
pub use rollout::Rollout;
pub use sync::SyncCollector;

use ostler_sim::EpisodeStats;

/// Why a collection failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CollectError {
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    #[error(transparent)]
    Memory(#[from] ostler_sim::memory::MemoryError),
    #[error(transparent)]
    Snapshot(#[from] ostler_sim::physics::SnapshotError),
    /// A tensor whose memory the simulation cannot write.
    #[error("not rows of host memory: {0}; this is a defect, please report it")]
    NotHostRows(String),
    /// Saved state that does not fit.
    #[error(
        "the saved state of the collector does not fit: {0}; resume with the configuration it was saved with"
    )]
    Blob(String),
}

/// Time spent in the parts of the last collection (s).
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectTimes {
    /// Policy network and sampling.
    pub policy: f64,
    /// Environment step: physics, task, reset.
    pub env: f64,
    /// All of it.
    pub total: f64,
}

/// Fills a [`Rollout`] with T steps of N environments.
pub trait Collector {
    /// Collects one rollout with the policy as it is now.
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError>;

    /// The rollout that was collected last.
    fn rollout(&self) -> &Rollout;

    /// Episode statistics of the last collection.
    fn stats(&self) -> &EpisodeStats;

    /// Where the time went in the last collection.
    fn times(&self) -> CollectTimes;

    /// Everything needed to go on with the same bits, appended to `out`.
    fn save(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// The reverse of [`save`](Self::save).
    fn restore(&mut self, blob: &[u8]) -> Result<(), CollectError>;
}
