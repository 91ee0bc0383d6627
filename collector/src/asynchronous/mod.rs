//! Collects in other threads, while the caller's learns.
//!
//! Reading order: [`AsyncCollector::collect`](crate::Collector::collect) -> `workers` (the
//! workers, as seen from outside: orders, deadlines, replacements) -> `worker` (one of them,
//! from inside) -> `package` (orders and reports) -> `assemble` (one rollout of all their
//! parts). Each worker owns a part of the environments for good and acts with a copy of the
//! policy; the step loop is the one of [`SyncCollector`](crate::SyncCollector), the state of all
//! of them together is saved in its format.
//!
//! Rollouts are numbered. Rollout k is ordered when the caller asks for rollout
//! k - `max_staleness`, with the weights of that moment: as long as no weights are
//! refreshed on the way, nothing is cut and nobody fails, the numbers do not depend on
//! who is how fast.

mod assemble;
mod options;
mod package;
mod worker;
mod workers;

pub use options::{AsyncOptions, WorkerStats};
pub use package::{Change, Shard};

use crate::env::Environments;
use crate::snapshot::{self, Saved, Snapshot};
use crate::{CollectCounts, CollectError, CollectTimes, Collector, Policy, Rollout};
use assemble::Columns;
use ostler_sim::config::TaskConfig;
use ostler_sim::device::Counts;
use ostler_sim::env::{EnvError, EnvSpec};
use ostler_sim::{BatchEnv, EpisodeStats};
use package::Weights;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use workers::Workers;

/// Builds the environments of one worker, in its thread, as often as it takes.
pub type Factory<E> = dyn Fn(Shard) -> Result<E, EnvError> + Send + Sync;

/// The asynchronous collector.
pub struct AsyncCollector<E: Environments + Send + 'static = BatchEnv> {
    options: AsyncOptions,
    spec: EnvSpec,
    /// Width of the policy's hidden states.
    hidden: i64,
    workers: Workers<E>,
    rollout: Rollout,
    columns: Vec<Columns>,
    /// The rollout that is handed out next.
    next: u64,
    /// Rollouts below this one are made or in the making.
    ordered: u64,
    /// Weights of the rollouts `next..ordered`.
    in_flight: std::collections::VecDeque<Arc<Weights>>,
    /// Weights that may be written over when nobody looks at them any more.
    snapshots: Vec<Arc<Weights>>,
    published: u64,
    /// Something failed: rollouts in flight are discarded.
    broken: bool,
    stats: EpisodeStats,
    times: CollectTimes,
    /// Counts copies between host and device; those of the last collection.
    crossed: Counts,
    counts: CollectCounts,
    worker_stats: WorkerStats,
}

impl<E: Environments + Send + 'static> std::fmt::Debug for AsyncCollector<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncCollector")
            .field("options", &self.options)
            .field("worker_stats", &self.worker_stats)
            .finish_non_exhaustive()
    }
}

impl<E: Environments + Send + 'static> AsyncCollector<E> {
    /// Starts the workers, each with its part of `envs` environments, and waits until
    /// those stand. Rollouts are of `steps` steps for this policy's sizes. `seed` keys
    /// the noise of actions; `spread` gives the first episodes random ages.
    ///
    /// # Errors
    /// The policy cannot be copied, environments cannot be built, no memory, no threads.
    pub fn new(
        factory: Arc<Factory<E>>,
        envs: usize,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        spread: bool,
        options: AsyncOptions,
    ) -> Result<Self, CollectError> {
        let mut workers = Workers::new(factory, envs, steps, policy, seed, options)?;
        let mut spec = workers.begin(policy, spread)?;
        spec.num_envs = envs;
        let count = i64::try_from(steps).unwrap_or(i64::MAX);
        let widths = policy.widths();
        let rollout = Rollout::new(&spec, count, widths, options.storing_device)?;
        let columns = workers
            .shards()
            .map(|shard| Columns::new(&rollout, shard, spec.agents_per_env()))
            .collect::<Result<_, CollectError>>()?;
        let stats = EpisodeStats::with_room(&spec)?;
        workers.stock(&spec)?;
        let count = workers.len();
        Ok(Self {
            options,
            spec,
            hidden: widths.hidden,
            workers,
            rollout,
            columns,
            next: 0,
            ordered: 0,
            in_flight: std::collections::VecDeque::new(),
            snapshots: Vec::new(),
            published: 0,
            broken: false,
            stats,
            times: CollectTimes::default(),
            crossed: Counts::default(),
            counts: CollectCounts::default(),
            worker_stats: WorkerStats { workers: count, ..WorkerStats::default() },
        })
    }

    /// Sizes and names, of all environments.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Lets every worker change the settings of its environments before the next rollout
    /// that is ordered. An error of `change` is returned by a later collection.
    pub fn change(&mut self, change: Change<E>) {
        self.workers.change(&change);
    }

    /// The newest weights, for all who look.
    fn publish(&mut self, policy: &dyn Policy) -> Result<Arc<Weights>, CollectError> {
        let copied = policy.replicate().ok_or(CollectError::NotReplicable)?;
        let free = self.snapshots.iter_mut().position(|s| Arc::get_mut(s).is_some());
        let mut taken = match free {
            Some(i) => self.snapshots.swap_remove(i),
            None => Arc::default(),
        };
        self.published += 1;
        if let Some(snapshot) = Arc::get_mut(&mut taken) {
            snapshot.number = self.published;
            snapshot.version = policy.version();
            copied.weights(&mut snapshot.weights, &self.crossed)?;
        }
        self.snapshots.push(taken.clone());
        let newest = &mut *self.workers.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = taken.clone();
        Ok(taken)
    }

    fn try_collect(&mut self, policy: &mut dyn Policy) -> Result<(), CollectError> {
        if self.broken {
            self.rewind()?;
        }
        let weights = self.publish(policy)?;
        let ahead = self.options.max_staleness as u64;
        while self.ordered <= self.next + ahead {
            self.workers.order(self.ordered, &weights)?;
            self.in_flight.push_back(weights.clone());
            self.ordered += 1;
        }
        let flight = workers::Flight { next: self.next, weights: &self.in_flight, policy };
        self.workers.wait_for(&flight)?;
        self.assemble()?;
        self.in_flight.pop_front();
        self.next += 1;
        Ok(())
    }

    /// Puts all workers' parts together.
    fn assemble(&mut self) -> Result<(), CollectError> {
        for (i, columns) in self.columns.iter().enumerate() {
            if let Some(package) = self.workers.made(i) {
                columns.copy(&package.buffers.rollout, &self.crossed)?;
            }
        }
        // Nothing can fail any more: all states move on together.
        let mut sum = assemble::Sum::over(&mut self.stats);
        for (i, columns) in self.columns.iter().enumerate() {
            let Some(package) = self.workers.take(i) else {
                continue;
            };
            sum.add(&package, columns.shard);
            self.workers.give_back(i, package);
        }
        let number = self.published;
        self.times = sum.finish(&mut self.worker_stats, number);
        let (restarts, hangs) = self.workers.troubles();
        self.worker_stats.restarts = restarts;
        self.worker_stats.hangs = hangs;
        Ok(())
    }

    /// Back to the state before the rollout that is handed out next.
    fn rewind(&mut self) -> Result<(), CollectError> {
        let places = self.workers.own_places();
        self.place(&places, false).map(|_| ())
    }

    /// Drops the rollouts in flight and lets all workers go on from other states.
    fn place(
        &mut self,
        places: &[workers::StatePart],
        spread: bool,
    ) -> Result<usize, CollectError> {
        self.in_flight.clear();
        self.next = self.ordered;
        self.broken = true;
        let taken = self.workers.place(self.ordered, places, spread)?;
        self.broken = false;
        Ok(taken)
    }

    /// As the collector's [`restore_range`](Collector::restore_range); on an error all is as it
    /// was.
    fn take_over(&mut self, blob: &[u8], spread: bool) -> Result<usize, CollectError> {
        let places = self.workers.places_in(blob)?;
        self.place(&places, spread).inspect_err(|_| {
            // Some may have gone along: the next collection brings them back.
            self.broken = true;
        })
    }

    /// A captured state that fits, of so many rows if that is known.
    fn read<'a>(&self, bytes: &'a [u8], rows: Option<usize>) -> Result<Saved<'a>, CollectError> {
        Saved::read(bytes, &self.spec.obs, self.hidden, rows)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        let parts = self.workers.states();
        let parts: Vec<Saved<'_>> =
            parts.iter().map(|blob| self.read(blob, None)).collect::<Result<_, _>>()?;
        snapshot::write_joined(out, &parts)?;
        let envs: Vec<&[u8]> = parts.iter().map(|p| p.env).collect();
        Ok(E::join(&envs, out)?)
    }
}

impl<E: Environments + Send + 'static> Collector for AsyncCollector<E> {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        let start = Instant::now();
        let before = self.crossed.traffic();
        if let Err(e) = self.try_collect(policy) {
            self.broken = true;
            return Err(e);
        }
        self.times.total = start.elapsed().as_secs_f64();
        // Workers step on the host: nothing crosses in their loops.
        self.counts.all = self.crossed.traffic().since(before);
        Ok(&self.rollout)
    }

    fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    fn times(&self) -> CollectTimes {
        self.times
    }

    fn counts(&self) -> CollectCounts {
        self.counts
    }

    fn worker_stats(&self) -> Option<WorkerStats> {
        Some(self.worker_stats)
    }

    fn forget_ahead(&mut self) -> Result<(), CollectError> {
        match self.in_flight.is_empty() && !self.broken {
            true => Ok(()),
            false => self.rewind(),
        }
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        let task = task.clone();
        self.change(Arc::new(move |env| env.set_task(&task)));
        Ok(())
    }

    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        self.write(into.clear())
    }

    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        let bytes = from.on_host()?;
        self.read(bytes, Some(self.spec.rows()))?;
        self.take_over(bytes, false).map(|_| ())
    }

    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        let bytes = from.on_host()?;
        self.read(bytes, None)?;
        self.take_over(bytes, spread)
    }
}
