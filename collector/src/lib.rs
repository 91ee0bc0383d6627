//! A policy times a simulation gives rollouts.
//!
//! Reading order: [`Collector::collect`] -> [`SyncCollector`] -> [`Policy::act`] and
//! `BatchEnv::step`; then [`asynchronous`], where other threads collect, and [`device`],
//! where the rollout is not on the host. Nothing here knows losses.
#![cfg_attr(not(test), warn(unreachable_pub))]
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod asynchronous;
mod buffers;
pub mod custom;
pub mod device;
pub mod env;
mod error;
pub mod gymnasium;
pub mod hidden;
pub mod memory;
mod noise;
pub mod peers;
pub mod pipes;
pub mod policy;
pub mod registry;
pub mod replay;
pub mod rollout;
pub mod snapshot;
mod steps;
pub mod sync;
pub mod transfer;

pub use asynchronous::{AsyncCollector, AsyncOptions, WorkerStats};
pub use device::{CudaSync, DeviceCollector};
pub use hidden::HiddenStates;
pub use policy::{Act, Hidden, Policy, Replica, Replicate, Widths};
pub use rollout::Rollout;
pub use snapshot::Snapshot;
pub use steps::Stepping;
pub use sync::SyncCollector;

use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;
use ostler_sim::device::{DeviceError, Traffic};
use ostler_sim::env::EnvError;
use std::borrow::Cow;

/// Why a collection failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CollectError {
    #[error("libtorch: {0}")]
    Torch(tch::TchError),
    #[error(transparent)]
    Memory(#[from] ostler_sim::memory::MemoryError),
    #[error(transparent)]
    Snapshot(#[from] ostler_sim::physics::SnapshotError),
    #[error(transparent)]
    Device(Box<DeviceError>),
    /// A tensor whose memory the simulation cannot write.
    #[error("not rows of memory that can be written: {0}; this is a defect, please report it")]
    NotRows(String),
    /// Environments could not be built, or changed.
    #[error(transparent)]
    Env(Box<EnvError>),
    /// The policy cannot act in other threads.
    #[error(
        "this policy cannot be copied into other threads; collect with it in one: collector.kind = \"sync\""
    )]
    NotReplicable,
    /// A thread could not be started, or there is no working one any more.
    #[error("worker {worker} of the collector (environments {envs:?}) {why}")]
    Worker { worker: usize, envs: std::ops::Range<usize>, why: String },
    /// Environments of Python.
    #[error(transparent)]
    Gymnasium(Box<gymnasium::GymError>),
    /// A signal or a time limit wants the end, and what was in the making has taken too long.
    #[error("stopped before it was done")]
    Stopped,
    /// Another of several processes that train together has ended, or cannot be reached.
    #[error("another process of this training is gone ({0})")]
    Lost(String),
    /// Another process failed in the midst of sums; it says why itself.
    #[error("{}", peers::CUT_SHORT)]
    CutShort,
    /// One of several processes that train together.
    #[error("process {rank} of this training: {why}")]
    Peer { rank: usize, why: String },
    /// Saved state that does not fit.
    #[error(
        "the saved state of the collector does not fit: {0}; resume with the configuration it was saved with"
    )]
    Blob(String),
}

impl From<tch::TchError> for CollectError {
    fn from(e: tch::TchError) -> Self {
        if let Some(memory) = memory::out_of_memory(&e) {
            return Self::Memory(memory);
        }
        peers::of_another(&e).unwrap_or(Self::Torch(e))
    }
}

impl From<DeviceError> for CollectError {
    fn from(e: DeviceError) -> Self {
        match e {
            DeviceError::Memory(e) => Self::Memory(e),
            e => Self::Device(Box::new(e)),
        }
    }
}

impl From<gymnasium::GymError> for CollectError {
    fn from(e: gymnasium::GymError) -> Self {
        Self::Gymnasium(Box::new(e))
    }
}

impl From<EnvError> for CollectError {
    fn from(e: EnvError) -> Self {
        Self::Env(Box::new(e))
    }
}

impl CollectError {
    /// The allocation that failed, if one did: fewer environments may do.
    pub fn out_of_memory(&self) -> Option<&ostler_sim::memory::MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Snapshot(e) => e.out_of_memory(),
            Self::Device(e) => e.out_of_memory(),
            Self::Env(e) => e.out_of_memory(),
            Self::Torch(_)
            | Self::NotRows(_)
            | Self::Blob(_)
            | Self::NotReplicable
            | Self::Stopped
            | Self::Gymnasium(_)
            | Self::Lost(_)
            | Self::CutShort
            | Self::Peer { .. }
            | Self::Worker { .. } => None,
        }
    }
}

/// Asked between two steps of what takes long, a collection or an update.
///
/// # Errors
/// [`CollectError::Stopped`] where it is to be given up.
pub fn go_on() -> Result<(), CollectError> {
    match ostler_sim::process::gives_up() {
        true => Err(CollectError::Stopped),
        false => Ok(()),
    }
}

/// The text of a panic, where it has one.
fn panic_text(payload: &(dyn std::any::Any + Send)) -> Option<String> {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned())
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

/// Copies between host and device in the last collection, and how often the host
/// waited for the device. libtorch's own kernels are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectCounts {
    /// Within the loop over control steps.
    pub in_loop: Traffic,
    /// Since the end of the collection before: the collection and the work before and after it.
    pub all: Traffic,
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

    /// Copies between host and device in the last collection: none where both
    /// are the same.
    fn counts(&self) -> CollectCounts {
        CollectCounts::default()
    }

    /// Of the last rollout's part that other processes have: sum of the valid steps' rewards, and
    /// how many these are.
    fn of_others(&self) -> [f64; 2] {
        [0.0; 2]
    }

    /// How the threads that collect are doing, where there are such.
    fn worker_stats(&self) -> Option<WorkerStats> {
        None
    }

    /// Forgets the rollouts that were collected
    /// ahead: the run has rejected their weights.
    ///
    /// # Errors
    /// The environments cannot go back.
    fn forget_ahead(&mut self) -> Result<(), CollectError> {
        Ok(())
    }

    /// Goes on with other numbers in the task.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be. Nothing has changed then.
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError>;

    /// The name of the environments' program in its cache, where they are on a device.
    fn device_kernel(&self) -> Option<String> {
        None
    }

    /// Captures everything that is needed to go on with the same bits; the old content of `into`
    /// is gone. Nothing is allocated once it was used: cheap enough for the start of every
    /// iteration.
    ///
    /// # Errors
    /// There is no memory; the device refuses.
    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError>;

    /// Goes back to the captured state: the same bits follow.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then.
    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError>;

    /// Takes over the captured state of a collector of the
    /// same robot, task and seed with another number of environments. Environments 0..min(N,
    /// stored) go on with the bits that they would have had there; those beyond start new
    /// episodes, with random ages if `spread`. Returns how many were taken over.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then.
    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError>;

    /// The bytes of this collector's captured state, wherever they lie: for a file, or for
    /// another collector.
    ///
    /// # Errors
    /// There is no memory; the device refuses.
    fn bytes<'a>(&self, of: &'a Snapshot) -> Result<Cow<'a, [u8]>, CollectError> {
        Ok(Cow::Borrowed(of.on_host()?))
    }
}
