//! Why learning failed.

use ostler_collector::CollectError;
use ostler_collector::replay::ReplayError;
use ostler_sim::config::ConfigError;
use ostler_sim::memory::MemoryError;

/// Why learning failed.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error("libtorch: {0}")]
    Torch(tch::TchError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tensors of a checkpoint do not fit this learner.
    #[error(
        "the checkpoint does not fit: {0}; it is of another robot, task or network, use the run's own config.toml"
    )]
    Checkpoint(String),
    /// A drill names a place that this learner does not have.
    #[error("a fault cannot be injected: the learner has no {0}")]
    Fault(String),
    /// A tensor's memory cannot be worked on.
    #[error(transparent)]
    Host(#[from] CollectError),
    /// The replay buffer.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A defect: [`Remembers::open`](super::Remembers::open) was not called.
    #[error("the replay buffer was not opened; this is a defect, please report it")]
    NoMemory,
    /// A kernel of the learner's does not compile or run on the device.
    #[error("the learner's kernel on the GPU: {0}")]
    Kernel(String),
    /// The system has no more threads.
    #[error("no thread to learn with: {0}; set learner.threads to a smaller number")]
    Thread(String),
    /// A rollout of other sizes than the learner was built for.
    #[error("rollout of {got}, the learner was built for {expected}")]
    Shape { expected: String, got: String },
}

impl From<tch::TchError> for LearnError {
    fn from(e: tch::TchError) -> Self {
        match CollectError::from(e) {
            CollectError::Torch(e) => Self::Torch(e),
            CollectError::Memory(e) => Self::Memory(e),
            e => Self::Host(e),
        }
    }
}

impl LearnError {
    /// The allocation that failed, if one did.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Host(e) => e.out_of_memory(),
            Self::Replay(e) => e.out_of_memory(),
            _ => None,
        }
    }
}
