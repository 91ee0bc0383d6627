//! The workers, as seen from outside.
//!
//! Here: the list of workers and the commands to them; `watch`: their reports, and workers that
//! hang; `place`: how all of them go on from another state.

mod place;
mod watch;

pub(super) use place::StatePart;

use super::package::{
    Change, Newest, Order, Package, Report, ReportKind, Shard, Signals, State, Weights,
};
use super::worker::{Begin, Worker};
use super::{AsyncOptions, Factory};
use crate::buffers::Buffers;
use crate::env::Environments;
use crate::policy::{Noise, Widths};
use crate::{CollectError, CollectTimes, Policy};
use ostler_sim::EpisodeStats;
use ostler_sim::env::EnvSpec;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The rollout that is waited for.
pub(super) struct Flight<'a> {
    pub next: u64,
    /// Of the rollouts from `next` on.
    pub weights: &'a VecDeque<Arc<Weights>>,
    pub policy: &'a dyn Policy,
}

struct Member<E: Environments + Send + 'static> {
    shard: Shard,
    generation: u32,
    thread: Option<JoinHandle<()>>,
    orders: Sender<Order<E>>,
    signals: Arc<Signals>,
    /// Made and not handed out yet, the oldest first.
    done: VecDeque<Box<Package>>,
    #[allow(clippy::vec_box, reason = "they come and go as boxes")]
    free: Vec<Box<Package>>,
    /// At the start of the rollout that is handed out next.
    state: State,
    /// Whether its environments stand.
    ready: bool,
    /// Whether it said that it cannot go on.
    ended: bool,
    /// Whether a state that it was given is still to be taken over.
    placing: bool,
    /// Its amount, and the results.
    placed: Option<(usize, State)>,
    /// Replacements since a rollout was made.
    replaced: u32,
    /// How far it was when somebody last looked, and when that changed.
    seen: (u64, Instant),
}

/// All workers.
pub(super) struct Workers<E: Environments + Send + 'static> {
    all: Vec<Member<E>>,
    factory: Arc<Factory<E>>,
    options: AsyncOptions,
    steps: usize,
    widths: Widths,
    noise: (i64, Noise),
    seed: u64,
    spec: Option<EnvSpec>,
    pub newest: Arc<Newest>,
    change: Option<Change<E>>,
    reports: Receiver<Report>,
    reporter: Sender<Report>,
    /// Threads that hung.
    abandoned: Vec<JoinHandle<()>>,
    restarts: u64,
    hangs: u64,
}

impl<E: Environments + Send + 'static> Workers<E> {
    pub(crate) fn new(
        factory: Arc<Factory<E>>,
        envs: usize,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        mut options: AsyncOptions,
    ) -> Result<Self, CollectError> {
        options.workers = options.workers.clamp(1, envs.max(1));
        let (reporter, reports) = channel();
        let mut this = Self {
            all: Vec::new(),
            factory,
            options,
            steps,
            widths: policy.widths(),
            noise: policy.noise(),
            seed,
            spec: None,
            newest: Arc::new(Mutex::default()),
            change: None,
            reports,
            reporter,
            abandoned: Vec::new(),
            restarts: 0,
            hangs: 0,
        };
        for worker in 0..options.workers {
            // Its orders go nowhere until it is started.
            let (orders, _) = channel();
            this.all.push(Member {
                shard: Shard::of(envs, options.workers, worker),
                generation: 0,
                thread: None,
                orders,
                signals: Arc::default(),
                done: VecDeque::new(),
                free: Vec::new(),
                state: State::default(),
                ready: false,
                ended: false,
                placing: false,
                placed: None,
                replaced: 0,
                seen: (0, Instant::now()),
            });
        }
        Ok(this)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.all.iter().map(|m| m.shard)
    }

    /// Panics and hangs so far.
    pub(crate) fn troubles(&self) -> (u64, u64) {
        (self.restarts, self.hangs)
    }

    /// Starts all workers with first episodes; returns the sizes of one's environments.
    pub(crate) fn begin(
        &mut self,
        policy: &dyn Policy,
        spread: bool,
    ) -> Result<EnvSpec, CollectError> {
        for worker in 0..self.all.len() {
            self.start(worker, policy, Begin::Fresh { spread })?;
        }
        while self.all.iter().any(|m| !m.ready) {
            self.listen(None)?;
        }
        self.spec
            .clone()
            .ok_or_else(|| CollectError::Blob("no worker said what its environments are".into()))
    }

    fn start(
        &mut self,
        worker: usize,
        policy: &dyn Policy,
        begin: Begin,
    ) -> Result<(), CollectError> {
        let member = &mut self.all[worker];
        let copied = policy.replicate().ok_or(CollectError::NotReplicable)?;
        let (sender, orders) = channel();
        member.signals = Arc::default();
        let work = Worker {
            shard: member.shard,
            generation: member.generation,
            factory: self.factory.clone(),
            options: self.options,
            widths: self.widths,
            noise: self.noise,
            seed: self.seed,
            replica: copied.replica(member.shard.first, member.shard.len)?,
            signals: member.signals.clone(),
            newest: self.newest.clone(),
            change: self.change.clone(),
            reports: self.reporter.clone(),
            orders,
        };
        member.orders = sender;
        member.ready = false;
        let started = std::thread::Builder::new()
            .name(format!("collect-{worker}"))
            .spawn(move || work.run(begin));
        let shard = member.shard;
        member.thread = Some(started.map_err(|e| CollectError::Worker {
            worker,
            envs: shard.envs(),
            why: format!("could not be started: {e}; use fewer: collector.workers"),
        })?);
        member.seen = (0, Instant::now());
        Ok(())
    }

    /// Gives every worker the rollouts that it fills.
    pub(crate) fn stock(&mut self, spec: &EnvSpec) -> Result<(), CollectError> {
        self.spec = Some(spec.clone());
        for worker in 0..self.all.len() {
            self.refill(worker)?;
        }
        Ok(())
    }

    /// As many rollouts as a worker can have in hand.
    fn refill(&mut self, worker: usize) -> Result<(), CollectError> {
        let member = &mut self.all[worker];
        let Some(mut spec) = self.spec.clone() else {
            return Ok(());
        };
        spec.num_envs = member.shard.len;
        while member.free.len() + member.done.len() <= self.options.max_staleness {
            member.free.push(Box::new(Package {
                buffers: Buffers::new(&spec, self.steps, self.widths)?,
                stats: EpisodeStats::with_room(&spec)?,
                times: CollectTimes::default(),
                made: 0,
                acted: 0,
                state: State::default(),
            }));
        }
        Ok(())
    }

    pub(crate) fn change(&mut self, change: &Change<E>) {
        self.change = Some(change.clone());
        for member in &self.all {
            // One that is gone gets it when it is replaced.
            let _ = member.orders.send(Order::Change(change.clone()));
        }
    }

    /// Has everybody make rollout `number`.
    pub(crate) fn order(
        &mut self,
        number: u64,
        weights: &Arc<Weights>,
    ) -> Result<(), CollectError> {
        for worker in 0..self.all.len() {
            self.order_of(worker, number, weights)?;
        }
        Ok(())
    }

    fn order_of(
        &mut self,
        worker: usize,
        number: u64,
        weights: &Arc<Weights>,
    ) -> Result<(), CollectError> {
        if self.all[worker].free.is_empty() {
            // The job that the worker had in hand is lost with it.
            self.refill(worker)?;
        }
        let member = &mut self.all[worker];
        let Some(package) = member.free.pop() else {
            return Ok(());
        };
        let order = Order::Collect { number, weights: weights.clone(), package };
        // Whoever died has said so: it is read when it is waited for.
        let _ = member.orders.send(order);
        Ok(())
    }

    /// The oldest rollout of a worker.
    pub(crate) fn made(&self, worker: usize) -> Option<&Package> {
        self.all[worker].done.front().map(|p| &**p)
    }

    /// The same, which is handed out with that: the worker's state is the one after it.
    pub(crate) fn take(&mut self, worker: usize) -> Option<Box<Package>> {
        let member = &mut self.all[worker];
        let mut package = member.done.pop_front()?;
        member.state = std::mem::take(&mut package.state);
        Some(package)
    }

    pub(crate) fn give_back(&mut self, worker: usize, package: Box<Package>) {
        self.all[worker].free.push(package);
    }
}

impl<E: Environments + Send + 'static> Drop for Workers<E> {
    /// Ends all threads that can be ended, within the deadline; the others are left to
    /// the end of the process.
    fn drop(&mut self) {
        let deadline = Instant::now() + self.options.shutdown_timeout;
        let mut threads = std::mem::take(&mut self.abandoned);
        for mut member in self.all.drain(..) {
            member.signals.quit.store(true, Relaxed);
            threads.extend(member.thread.take());
            // With its orders' sender a worker that waits for orders wakes up.
        }
        loop {
            let (ended, running): (Vec<_>, Vec<_>) =
                threads.into_iter().partition(JoinHandle::is_finished);
            for thread in ended {
                // Its panic was contained, or it would have said so.
                let _ = thread.join();
            }
            threads = running;
            if threads.is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        tracing::warn!(
            "{} worker(s) of the collector did not end within {:.1} s (collector.shutdown_timeout_s) and are left behind",
            threads.len(),
            self.options.shutdown_timeout.as_secs_f64()
        );
    }
}
