//! Why an engine cannot be set up.

use super::native::Unusable;
use ostler_base::ConfigError;
use ostler_base::memory::MemoryError;

/// A physics engine that cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PhysicsError {
    /// Out of memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The engine does not support something in the model.
    #[error("the {engine} engine does not support {what}")]
    Unsupported {
        /// `sim.backend`.
        engine: &'static str,
        /// The feature, by name.
        what: String,
    },
    /// Worlds that are not those of the task's robot.
    #[error(
        "the worlds have another \"{column}\" than the task's robot: build them of the model that \
         task::prepare returns, as many as env.num_envs says"
    )]
    OtherWorlds {
        /// The first column of their state that differs in width.
        column: &'static str,
    },
    /// The engine was left out when this was built.
    #[error(
        "this program was built without {engine}: `cargo run --bin train -- CONFIG` builds it \
         for a configuration that asks for it, `cargo build --release` builds all there is; \
         sim.backend = \"native\" is always there"
    )]
    Absent {
        /// `sim.backend`.
        engine: &'static str,
    },
    /// Double precision was left out when this was built.
    #[error(
        "this program was built without double precision, which only comparisons need: \
         `cargo build --release` builds all there is"
    )]
    NoDouble,
    /// This program's kernels do not run on this processor.
    #[error(transparent)]
    Instructions(#[from] Unusable),
    /// A limit of `[[sim.limit]]` that does not fit the robot.
    #[error(transparent)]
    Limit(#[from] ConfigError),
    /// The kernel that `sim.kernel` names cannot be used.
    #[error(
        "sim.kernel = \"{name}\": {why}; sim.kernel = \"auto\" takes the best there is, with other bits"
    )]
    Kernel {
        /// As given.
        name: String,
        /// Why not.
        why: String,
    },
    /// A thread could not be started.
    #[error("cannot start a physics thread: {0}; lower sim.threads")]
    Thread(String),
}

impl PhysicsError {
    /// The allocation that failed, if one did.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            _ => None,
        }
    }
}
