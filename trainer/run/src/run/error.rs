//! Why a run could not start or go on, and the exit code that says so.

use super::store::error::CheckpointError;
use crate::export::error::{ExportError, PolicyFileError};
use ostler_collector::CollectError;
use ostler_collector::memory::out_of_memory_text;
use ostler_collector::replay::ReplayError;
use ostler_learn::config::{ConfigErrors, Diagnostic, NoGpu};
use ostler_learn::environments::EnvironmentsError;
use ostler_learn::learner::LearnError;
use ostler_machine::torch::TorchError;
use ostler_sim::device::cuda::Unavailable;
use ostler_sim::env::EnvError;
use ostler_sim::memory::MemoryError;
use ostler_sim::model::mjcf::MjcfError;
use ostler_sim::model::motion::MotionError;
use ostler_sim::npz::NpzError;
use ostler_sim::physics::PhysicsError;
use ostler_sim::referee::mujoco::RefereeError;
use ostler_sim::text::word;
use std::path::{Path, PathBuf};

/// Exit code: everything went well.
pub const OK: i32 = 0;
/// Exit code: the training failed.
pub const FAILED: i32 = 1;
/// Exit code: wrong use or configuration.
pub const USAGE: i32 = 2;
/// Exit code of a training process whose GPU refuses everything until the process ends:
/// only for the process that supervises it, which starts it again.
pub const POISONED: i32 = 75;
/// Exit code of a training process whose memory is in pieces: only for the process that
/// supervises it, which goes on in a fresh one with as many environments as were said
/// last.
pub const CROWDED: i32 = 76;
/// Exit code of a process whose training lost another of its processes: only for whoever
/// supervises it, which starts all again.
pub const LOST: i32 = 77;
/// Exit code: the disk that the run writes to was nearly full (`memory.disk_act_mib`), so
/// it was stopped, after saving.
pub const DISK_FULL: i32 = 74;
/// Exit code: stopped by a signal, after saving.
pub const INTERRUPTED: i32 = 130;

/// Why a run could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// An exported policy cannot act.
    #[error(transparent)]
    PolicyFile(#[from] PolicyFileError),
    /// A policy cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A GPU was asked for that cannot be used.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// libtorch can compute on the GPU, physics cannot.
    #[error(
        "environments cannot be on device \"{device}\": {why}; or leave them on the processor: --set sim.device=cpu"
    )]
    GpuPhysics {
        /// As it was asked for.
        device: String,
        /// The missing thing.
        why: Unavailable,
    },
    /// A GPU has no room for the stacks of the environments' threads.
    #[error(
        "the environments' program needs {} MiB of the GPU for the stacks of its threads, however few environments there are, and {} MiB are free: free memory of the GPU, or leave physics on the processor: --set sim.device=cpu",
        .local >> 20, .free >> 20
    )]
    Stacks {
        /// Bytes that the driver sets aside.
        local: u64,
        /// Bytes of the GPU that are free.
        free: u64,
    },
    /// The command line or the state of folders does not allow it.
    #[error("{0}")]
    Usage(String),
    /// A run would not be of use later.
    #[error(
        "nothing was trained: what the run keeps in {} cannot be read back: {why}\nthe robot's files are copied there as their names have them: let names be relative to the robot's file and lead through no links, and name the folder that holds them all (task.robot_folder)",
        run.display()
    )]
    ReadBack {
        /// The run's folder.
        run: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The robot's file was refused.
    #[error(transparent)]
    Robot(#[from] MjcfError),
    /// The environments could not be built.
    #[error(transparent)]
    Env(EnvError),
    /// A signal came before anything was trained.
    #[error("stopped by a signal: nothing was started")]
    Stopped,
    /// A physics engine cannot be set up.
    #[error(transparent)]
    Physics(#[from] PhysicsError),
    /// A file of arrays cannot be used.
    #[error(transparent)]
    Npz(#[from] NpzError),
    /// A file of a motion cannot be used.
    #[error(transparent)]
    Motion(#[from] MotionError),
    /// MuJoCo gives no answer.
    #[error(transparent)]
    Referee(#[from] RefereeError),
    /// A folder or file of the run cannot be used.
    #[error("cannot {action} {path}: {source}{hint}")]
    File {
        /// The attempt.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// The run's folder is another one's now.
    #[error(
        "{} is no longer this run's: its .lock is not the file that this process has locked, so another process may write there. This one stops and writes nothing more into it; what it did since its last checkpoint is lost. Do not delete or replace the folder or the .lock of a run that is being trained", .0.display()
    )]
    Taken(PathBuf),
    /// The run's folder has another name now.
    #[error(
        "{} was moved to {} while it was trained: the run is saved there and stops; go on with ostler train --resume {}", .from.display(), .to.display(), word(.to)
    )]
    Moved {
        /// Its path before.
        from: PathBuf,
        /// Its path now.
        to: PathBuf,
    },
    /// A checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The last checkpoint could not be written.
    #[error(
        "{0}\nthe last iterations are lost; what was saved before is whole: {remedy}, then go on with --resume",
        remedy = .0.remedy()
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
    /// Roll-backs did not help.
    #[error(
        "the training was rolled back {roll_backs} times and failed again: {trouble}\nwhat usually mends it: {remedy}\nthe last good weights are in the newest checkpoint: --init-from starts a new run from them"
    )]
    GaveUp {
        /// How often.
        roll_backs: u32,
        /// The finding.
        trouble: String,
        /// The usual remedy.
        remedy: String,
    },
    /// Fewer environments would be needed than are worth it.
    #[error(
        "{reason}\n{num_envs} environments do not fit and {}", if *off { "back-off is off (back_off.factor = 1)".to_string() } else { format!("fewer are not possible (back_off.min_num_envs = {least}, one sample for every minibatch)") }
    )]
    TooFew {
        /// Environments that do not fit.
        num_envs: usize,
        /// The configured least.
        least: usize,
        /// Back-off is off.
        off: bool,
        /// The part that does not fit.
        reason: String,
    },
    /// Fewer environments did not help: what was freed did not go back to the system.
    #[error("{reason}: {num_envs} environments find no room in this process; a fresh one goes on")]
    Crowded {
        /// Environments that a fresh process may hold.
        num_envs: usize,
        /// The part that does not fit.
        reason: MemoryError,
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
        /// Memory that is there (MiB).
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
    Torch(#[from] TorchError),
}

impl From<Diagnostic> for RunError {
    fn from(d: Diagnostic) -> Self {
        Self::Config(d.into())
    }
}

impl From<tch::TchError> for RunError {
    fn from(e: tch::TchError) -> Self {
        Self::Learn(e.into())
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
            Self::File { action, path, source, hint }
        }
    }

    /// The allocation that failed, if that is why: with fewer environments it may
    /// work. A thread that does not start counts: its stack is memory.
    pub fn out_of_memory(&self) -> Option<MemoryError> {
        match self {
            Self::Memory { rollout, update, networks, free } => Some(MemoryError {
                what: format!("rollouts, minibatches and networks ({free} MiB are free)"),
                bytes: usize::try_from((rollout + update + networks) << 20).unwrap_or(usize::MAX),
            }),
            Self::Collect(e) => e.out_of_memory().cloned(),
            Self::Learn(e) => e.out_of_memory().cloned(),
            Self::Env(EnvError::Memory(e)) => Some(e.clone()),
            Self::Env(EnvError::Physics(e)) | Self::Physics(e) => match e {
                PhysicsError::Memory(e) => Some(e.clone()),
                PhysicsError::Thread(why) => {
                    Some(MemoryError { what: format!("a physics thread ({why})"), bytes: 0 })
                }
                _ => None,
            },
            Self::Checkpoint(e) | Self::Save(e) | Self::Rescued { cause: e, .. } => {
                e.out_of_memory().cloned()
            }
            Self::Torch(TorchError::Call { message, .. }) => out_of_memory_text(message),
            Self::Torch(TorchError::Memory(e)) => Some(e.clone()),
            Self::Npz(NpzError::Memory { .. }) => {
                Some(MemoryError { what: "an array of a file".to_string(), bytes: 0 })
            }
            _ => None,
        }
    }

    /// Whether an iteration was given up for a signal or a time limit.
    pub fn is_given_up(&self) -> bool {
        use CollectError::Stopped;
        matches!(self, Self::Collect(Stopped) | Self::Learn(LearnError::Host(Stopped)))
    }

    /// Whether the GPU refuses everything until this process ends: what CUDA calls a
    /// sticky error. <https://docs.nvidia.com/cuda/cuda-runtime-api/>, `cudaErrorIllegalAddress`
    /// and others: "the process must be terminated and relaunched".
    pub fn gpu_is_lost(&self) -> bool {
        const STICKY: [&str; 8] = [
            "illegal memory access",
            "unspecified launch failure",
            "device-side assert",
            "misaligned address",
            "illegal instruction",
            "uncorrectable ECC error",
            "hardware stack error",
            "launch timed out",
        ];
        let text = self.to_string();
        text.contains("CUDA") && STICKY.iter().any(|s| text.contains(s))
    }

    /// Whether another process of this training is gone.
    pub fn process_is_lost(&self) -> bool {
        use CollectError::Lost;
        matches!(
            self,
            Self::Torch(TorchError::Gone { .. })
                | Self::Collect(Lost(_))
                | Self::Learn(LearnError::Host(Lost(_)))
        )
    }

    /// Exit code of the process.
    pub fn exit_code(&self) -> i32 {
        match self {
            _ if self.process_is_lost() => LOST,
            Self::Save(_)
            | Self::Taken(_)
            | Self::Rescued { .. }
            | Self::GaveUp { .. }
            | Self::TooFew { .. }
            | Self::Collect(_)
            | Self::Torch(_)
            | Self::Physics(PhysicsError::Memory(_) | PhysicsError::Thread(_))
            | Self::Npz(NpzError::Memory { .. }) => FAILED,
            Self::Crowded { .. } => CROWDED,
            Self::Stopped => INTERRUPTED,
            Self::Learn(
                LearnError::Config(_)
                | LearnError::Checkpoint(_)
                | LearnError::Replay(ReplayError::TooLarge { .. }),
            ) => USAGE,
            Self::Learn(_) => FAILED,
            Self::Env(e) => match e {
                EnvError::Config(_) => USAGE,
                _ => FAILED,
            },
            _ => USAGE,
        }
    }
}

impl From<EnvironmentsError> for RunError {
    fn from(error: EnvironmentsError) -> Self {
        match error {
            EnvironmentsError::Refused(why) => Self::Usage(why),
            EnvironmentsError::Collect(e) => Self::Collect(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind, Tensor};

    #[test]
    fn every_way_of_running_out_of_memory_is_told_from_the_rest() {
        let torch = || Tensor::f_empty([1 << 44], (Kind::Float, Device::Cpu)).unwrap_err();
        let other = || Tensor::f_empty([-1], (Kind::Float, Device::Cpu)).unwrap_err();
        let ours = MemoryError { what: "worlds".into(), bytes: 7 };
        let memory = [
            RunError::from(torch()),
            RunError::Collect(torch().into()),
            RunError::Collect(ours.clone().into()),
            RunError::Learn(torch().into()),
            RunError::Env(ours.clone().into()),
            RunError::Env(PhysicsError::Memory(ours.clone()).into()),
            RunError::Physics(PhysicsError::Thread("os error 11".into())),
            RunError::Save(torch().into()),
            RunError::Checkpoint(ours.into()),
            RunError::Torch(TorchError::Call { operation: "test", message: torch().to_string() }),
        ];
        for e in memory {
            assert!(e.out_of_memory().is_some(), "{e}");
        }
        for e in [
            RunError::from(other()),
            RunError::Collect(other().into()),
            RunError::Save(other().into()),
            RunError::Stopped,
            RunError::Usage("out of memory".into()),
        ] {
            assert!(e.out_of_memory().is_none(), "{e}");
        }
    }
}
