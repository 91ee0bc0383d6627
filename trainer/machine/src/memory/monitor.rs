//! A thread that looks at memory and disk twice a second.
//!
//! It publishes through atomics, so that the run never waits for it, and it
//! survives whatever the machine answers.

use super::config::MemoryConfig;
use super::sample::{Level, Pressure, Sample, Source, Sources};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end of the watch may take. A file system that does not answer holds
/// the thread, not the run.
const STOP: Duration = Duration::from_millis(50);

/// The watch's present reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Snapshot {
    /// How tight it is.
    pub level: Level,
    /// The limit with the largest share in use.
    pub tightest: Source,
    /// Of that limit (bytes).
    pub used: u64,
    /// That limit (bytes); 0: no limit is known.
    pub limit: u64,
    /// How long the level has been the same.
    pub since: Duration,
}

impl Snapshot {
    /// Share of the tightest limit in use; 0 where none is known.
    pub fn share(&self) -> f64 {
        self.pressure().share()
    }

    /// Source, use and limit.
    pub fn pressure(&self) -> Pressure {
        Pressure { source: self.tightest, used: self.used, limit: self.limit }
    }
}

/// Called by the watching thread after each sample, with memory and disk.
pub type Hook = Box<dyn FnMut(&Snapshot, &Snapshot) + Send>;

/// Watches memory and disk for as long as this value lives.
#[derive(Debug)]
pub struct MemoryMonitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    config: MemoryConfig,
    began: Instant,
    stop: AtomicBool,
    memory: Published,
    disk: Published,
    /// How many samples were taken.
    looks: AtomicU64,
    /// Locked for the copying of a sample, by nobody in an iteration's hot part.
    history: Mutex<VecDeque<Sample>>,
}

impl MemoryMonitor {
    /// Samples once, then begins to watch. Where no thread can be had that first sample
    /// stands, and a warning says so.
    pub fn start(config: &MemoryConfig, sources: Sources) -> Self {
        Self::start_with(config, sources, None)
    }

    /// [`start`](Self::start) with something to be told of every sample.
    pub fn start_with(config: &MemoryConfig, sources: Sources, hook: Option<Hook>) -> Self {
        let shared = Arc::new(Shared {
            config: config.clone(),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            memory: Published::default(),
            disk: Published::default(),
            looks: AtomicU64::new(0),
            history: Mutex::new(VecDeque::new()),
        });
        let mut watcher = Watcher { shared: shared.clone(), sources, hook, gpu: None };
        watcher.look();
        let thread = std::thread::Builder::new()
            .name("memory".into())
            .stack_size(256 << 10)
            .spawn(move || watcher.run());
        if let Err(e) = &thread {
            tracing::warn!("memory is not watched: no thread for it: {e}");
        }
        Self { shared, thread: thread.ok() }
    }

    /// Memory as of the last sample.
    pub fn latest(&self) -> Snapshot {
        self.shared.memory.read(self.shared.began)
    }

    /// Where the run writes, as of the last sample.
    pub fn disk(&self) -> Snapshot {
        self.shared.disk.read(self.shared.began)
    }

    /// Samples taken so far. A change before the last but one began is in the last.
    pub fn looks(&self) -> u64 {
        self.shared.looks.load(Ordering::Acquire)
    }

    /// The numbers to act upon, once memory has stayed at level `act` for
    /// `memory.act_after_s`.
    pub fn must_act(&self) -> Option<Snapshot> {
        let now = self.latest();
        let patience = Duration::try_from_secs_f64(self.shared.config.act_after_s);
        let over = now.since >= patience.unwrap_or(Duration::MAX);
        (now.level == Level::Act && over).then_some(now)
    }

    /// Something was done about it: the time that a level has lasted begins anew.
    pub fn acted(&self) {
        let now = millis(self.shared.began);
        self.shared.memory.since.store(now, Ordering::Relaxed);
    }

    /// The last sample.
    pub fn sample(&self) -> Sample {
        let history = self.shared.history();
        history.back().copied().unwrap_or_default()
    }

    /// The last samples, oldest first.
    pub fn history(&self) -> Vec<Sample> {
        self.shared.history().iter().copied().collect()
    }
}

impl Drop for MemoryMonitor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.thread().unpark();
        let began = Instant::now();
        while !thread.is_finished() && began.elapsed() < STOP {
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn history(&self) -> std::sync::MutexGuard<'_, VecDeque<Sample>> {
        // The history is whole after every push.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watcher {
    shared: Arc<Shared>,
    sources: Sources,
    hook: Option<Hook>,
    /// As it was last seen.
    gpu: Option<super::Gpu>,
}

impl Watcher {
    fn run(mut self) {
        let interval = Duration::try_from_secs_f64(self.shared.config.interval_s)
            .unwrap_or(Duration::from_millis(500));
        let mut next = Instant::now() + interval;
        while !self.shared.stop.load(Ordering::Acquire) {
            let now = Instant::now();
            if now < next {
                std::thread::park_timeout(next - now);
                continue;
            }
            // A defect here costs one sample, not the watch.
            let _ = catch_unwind(AssertUnwindSafe(|| self.look()));
            // After a suspension it does not catch up.
            next = (next + interval).max(now);
        }
    }

    fn look(&mut self) {
        let shared = &self.shared;
        let mut sample = self.sources.sample();
        sample.at_s = shared.began.elapsed().as_secs_f64();
        // Errors of before this run are none of its own.
        if let Some(now) = sample.gpu
            && let Some(before) = self.gpu.replace(now)
        {
            for line in now.news(&before) {
                tracing::warn!("{line}");
            }
        }
        {
            let mut history = shared.history();
            while history.len() >= shared.config.history.max(1) {
                history.pop_front();
            }
            if history.try_reserve(1).is_ok() {
                history.push_back(sample);
            }
        }
        shared.publish(&shared.memory, sample.tightest(), "memory");
        shared.publish(&shared.disk, sample.disk(), "disk");
        shared.looks.fetch_add(1, Ordering::Release);
        if let Some(hook) = &mut self.hook {
            let began = shared.began;
            hook(&shared.memory.read(began), &shared.disk.read(began));
        }
    }
}

impl Shared {
    /// Publishes the use of a limit; says when its level changes.
    fn publish(&self, to: &Published, pressure: Option<Pressure>, what: &str) {
        let before = to.level();
        let p = pressure.unwrap_or_default();
        let level = pressure.map_or(Level::Calm, |p| p.level(&self.config, before));
        to.write(level, p, (level != before).then(|| millis(self.began)));
        let name = level.name();
        match level.cmp(&before) {
            std::cmp::Ordering::Greater => tracing::warn!("{what} level {name}: {p}"),
            std::cmp::Ordering::Less => tracing::info!("{what} level {name}: {p}"),
            std::cmp::Ordering::Equal => {}
        }
    }
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A [`Snapshot`] that one thread writes and others read without waiting for it: a
/// reader who meets a write half done looks again.
#[derive(Debug, Default)]
struct Published {
    /// Odd while a write is under way.
    version: AtomicU64,
    /// Places in [`Level::ALL`] (low byte) and [`Source::ALL`].
    kinds: AtomicU64,
    used: AtomicU64,
    limit: AtomicU64,
    /// When the level began, in milliseconds of the watch.
    since: AtomicU64,
}

impl Published {
    fn level(&self) -> Level {
        let place = self.kinds.load(Ordering::Relaxed) & 0xff;
        Level::ALL.get(place as usize).copied().unwrap_or_default()
    }

    fn write(&self, level: Level, p: Pressure, since: Option<u64>) {
        // Sequentially consistent throughout: twice a second, order is free.
        const ORDER: Ordering = Ordering::SeqCst;
        let place = Source::ALL.iter().position(|s| *s == p.source);
        self.version.fetch_add(1, ORDER);
        let kinds = level as u64 | (place.unwrap_or(0) as u64) << 8;
        self.kinds.store(kinds, ORDER);
        self.used.store(p.used, ORDER);
        self.limit.store(p.limit, ORDER);
        if let Some(since) = since {
            self.since.store(since, ORDER);
        }
        self.version.fetch_add(1, ORDER);
    }

    fn read(&self, began: Instant) -> Snapshot {
        const ORDER: Ordering = Ordering::SeqCst;
        loop {
            let version = self.version.load(ORDER);
            let kinds = self.kinds.load(ORDER) as usize;
            let since = Duration::from_millis(self.since.load(ORDER));
            let snapshot = Snapshot {
                level: Level::ALL.get(kinds & 0xff).copied().unwrap_or_default(),
                tightest: Source::ALL.get(kinds >> 8).copied().unwrap_or_default(),
                used: self.used.load(ORDER),
                limit: self.limit.load(ORDER),
                since: began.elapsed().saturating_sub(since),
            };
            if version.is_multiple_of(2) && self.version.load(ORDER) == version {
                return snapshot;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
