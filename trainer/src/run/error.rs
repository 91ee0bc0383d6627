//! Why a run could not start or go on, and the exit code that says so.

use super::checkpoint::CheckpointError;
use crate::config::{ConfigErrors, Diagnostic, NoGpu};
use crate::learner::LearnError;
use ostler_collector::CollectError;
use ostler_sim::env::EnvError;
use ostler_sim::model::mjcf::MjcfError;
use ostler_sim::physics::PhysicsError;
use ostler_sim::referee::mujoco::RefereeError;
use ostler_sim::referee::npz::NpzError;
use std::path::{Path, PathBuf};

/// Exit code: everything went well.
pub const OK: i32 = 0;
/// Exit code: the training failed.
pub const FAILED: i32 = 1;
/// Exit code: wrong use or configuration.
pub const USAGE: i32 = 2;
/// Exit code: stopped by a signal, after saving.
pub const INTERRUPTED: i32 = 130;

/// Why a run could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A GPU was asked for.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// The command line or the state of folders does not allow it.
    #[error("{0}")]
    Usage(String),
    /// The robot's file was refused.
    #[error(transparent)]
    Robot(#[from] MjcfError),
    /// The environments could not be built.
    #[error(transparent)]
    Env(EnvError),
    /// A signal came before anything was trained.
    #[error("stopped while the physics kernel was compiled: nothing was started")]
    Stopped,
    /// A physics engine cannot be set up.
    #[error(transparent)]
    Physics(#[from] PhysicsError),
    /// A file of arrays cannot be used.
    #[error(transparent)]
    Npz(#[from] NpzError),
    /// MuJoCo gives no answer.
    #[error(transparent)]
    Referee(#[from] RefereeError),
    /// A folder or file of the run cannot be used.
    #[error("cannot {action} {path}: {source}{hint}")]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// A checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The last checkpoint could not be written.
    #[error(
        "{0}\nthe last iterations are lost; what was saved before is whole: free some space, then go on with --resume"
    )]
    Save(CheckpointError),
    /// The last checkpoint could not be written where it belongs, but elsewhere.
    #[error(
        "{cause}\nthe last checkpoint is {rescued} instead: move it into {home} once that is possible, then go on with --resume"
    )]
    Rescued {
        /// Why not where it belongs.
        cause: CheckpointError,
        /// Where it is.
        rescued: PathBuf,
        /// Where it belongs.
        home: PathBuf,
    },
    /// No update could be used any more.
    #[error(
        "nothing was learnt in the last {updates} updates: losses or gradients were not finite in every minibatch ({invalid} of {steps} samples were not valid)\nlower ppo.learning_rate, limit observations and rewards, or go on from an earlier checkpoint with --init-from"
    )]
    NothingLearnt {
        /// Updates without a usable minibatch.
        updates: u32,
        /// Samples of the last rollout that broken environments spoilt.
        invalid: u64,
        /// Samples of the last rollout.
        steps: u64,
    },
    /// More memory would be used than there is.
    #[error(
        "this training needs about {rollout} MiB for its rollouts, at least {update} MiB for a minibatch and {networks} MiB for the networks, {free} MiB are free: lower env.num_envs, runner.num_steps_per_env or hidden_dims, or raise ppo.num_mini_batches"
    )]
    Memory {
        /// For rollouts (MiB).
        rollout: u64,
        /// For a minibatch (MiB).
        update: u64,
        /// For weights and optimiser (MiB).
        networks: u64,
        /// What there is (MiB).
        free: u64,
    },
    /// Collection failed.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// The update failed.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// libtorch could not be set up.
    #[error(transparent)]
    Torch(#[from] crate::torch::TorchError),
}

impl From<Diagnostic> for RunError {
    fn from(d: Diagnostic) -> Self {
        Self::Config(d.into())
    }
}

impl From<tch::TchError> for RunError {
    fn from(e: tch::TchError) -> Self {
        Self::Learn(LearnError::Torch(e))
    }
}

impl RunError {
    /// An error of the file system.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| {
            let hint = match source.kind() {
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    "; choose another folder with --out or log.dir"
                }
                std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => {
                    "; a file is in the way: choose another folder with --out or log.dir"
                }
                std::io::ErrorKind::StorageFull => "; free some space",
                _ => "",
            };
            Self::File {
                action,
                path,
                source,
                hint,
            }
        }
    }

    /// What the process ends with.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Save(_)
            | Self::Rescued { .. }
            | Self::NothingLearnt { .. }
            | Self::Collect(_)
            | Self::Torch(_)
            | Self::Physics(PhysicsError::Memory(_) | PhysicsError::Thread(_))
            | Self::Npz(NpzError::Memory { .. }) => FAILED,
            Self::Stopped => INTERRUPTED,
            Self::Learn(LearnError::Config(_) | LearnError::Checkpoint(_)) => USAGE,
            Self::Learn(_) => FAILED,
            Self::Env(e) => match e {
                EnvError::Config(_) => USAGE,
                _ => FAILED,
            },
            _ => USAGE,
        }
    }
}
