//! Packages between the collector and its workers. Everything is handed
//! over, nothing is shared but counters: a worker that hangs holds nothing that anybody
//! else may touch.

use crate::buffers::Buffers;
use crate::{CollectError, CollectTimes};
use ostler_sim::EpisodeStats;
use ostler_sim::env::{EnvError, EnvSpec};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

/// Environments of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the worker.
    pub worker: usize,
    /// Global id of its first environment.
    pub first: usize,
    /// How many there are.
    pub len: usize,
}

impl Shard {
    /// Part `worker` of `workers` nearly equal parts of `envs` environments.
    pub fn of(envs: usize, workers: usize, worker: usize) -> Self {
        let at = |i: usize| (envs as u128 * i as u128 / workers as u128) as usize;
        Self { worker, first: at(worker), len: at(worker + 1) - at(worker) }
    }

    /// The global ids.
    pub fn envs(self) -> Range<usize> {
        self.first..self.first + self.len
    }
}

/// Weights as they were published.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// Counts publications, from 1.
    pub number: u64,
    /// The policy's own version.
    pub version: i32,
    pub weights: Vec<f32>,
}

/// The newest weights.
pub(super) type Newest = Mutex<Arc<Weights>>;

/// One rollout of one shard.
#[derive(Debug)]
pub(super) struct Package {
    pub buffers: Buffers,
    pub stats: EpisodeStats,
    pub times: CollectTimes,
    /// Steps that were made.
    pub made: usize,
    /// Sum over them of the numbers of the publications that acted.
    pub acted: u64,
    /// The shard's state after them.
    pub state: State,
}

/// A shard between two rollouts.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// As a collector of the shard alone would [capture](crate::Collector::capture) it.
    pub blob: Arc<Vec<u8>>,
    /// The environments' [clock](crate::env::Environments::clock).
    pub clock: u64,
}

/// Flags that a worker and the collector share.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Rollouts below this number end after the step that is being made, if one was.
    pub cut: AtomicU64,
    /// Rollouts below this number are not wanted any more.
    pub dropped: AtomicU64,
    /// The worker is to end.
    pub quit: AtomicBool,
    /// Counts up as long as the worker gets on.
    pub progress: AtomicU64,
    /// It builds environments, which takes longer than a step.
    pub building: AtomicBool,
}

/// A change of environments' settings.
pub type Change<E> = Arc<dyn Fn(&mut E) -> Result<(), EnvError> + Send + Sync>;

/// Orders to a worker.
pub(super) enum Order<E> {
    /// Make a rollout.
    Collect { number: u64, weights: Arc<Weights>, package: Box<Package> },
    /// Go on from a state, of which this shard's begins with environment `from`.
    Restore { blob: Arc<Vec<u8>>, from: usize, spread: bool },
    /// Change settings, from the next rollout on.
    Change(Change<E>),
}

/// A worker's message, and who it is: which one, and the how manieth of that number.
pub(crate) struct Report {
    pub worker: usize,
    pub generation: u32,
    pub what: ReportKind,
}

pub(super) enum ReportKind {
    /// Its environments stand, in this state.
    Ready { spec: Box<EnvSpec>, state: State },
    /// The rollout of this number was made.
    Done(u64, Box<Package>),
    /// One was not made, as nobody wanted it any more.
    Returned(Box<Package>),
    /// It goes on from the state that it was given: with so many of its environments.
    Restored(Result<(usize, State), CollectError>),
    /// It panicked and goes on.
    Restarted { message: String },
    /// The rollout of this number failed.
    Failed(u64, CollectError),
    /// Its environments did not take a change.
    Refused(CollectError),
    /// It cannot go on at all.
    Dead(CollectError),
}
