//! A fork-join pool for loops that run thousands of times a second.
//!
//! The caller publishes a loop, takes part in it, and returns when every part is
//! done. Every thread has its share of the parts, the same in every loop of as many
//! parts, so that it finds in its cache what it left there; a thread that is through
//! helps the others, so a slow part or a slow core delays nobody else. Which thread
//! computes a part must not matter to the result. Idle workers spin for a few tens of
//! microseconds (the next loop is usually that near), then sleep in the kernel.

use super::error::PhysicsError;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Turns of the spin loop before a thread goes to sleep, some 20 to 50
/// microseconds.
const SPINS: u32 = 1000;

/// A part of a loop panicked. The other parts ran all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{count} part(s) of a parallel loop panicked, one with: {message}")]
pub struct PartPanicked {
    /// How many parts panicked.
    pub count: usize,
    /// Message of one of them.
    pub message: String,
}

/// The loop body, with its lifetime erased while the loop is open.
type Body = *const (dyn Fn(usize) + Sync + 'static);

/// The loop that is being run.
struct Job {
    body: Option<Body>,
    parts: usize,
}

/// A counter in a cache line (and its neighbour, which processors fetch with it) of its
/// own: threads count at the same time.
#[repr(align(128))]
struct Counter(AtomicUsize);

thread_local! {
    /// Number of this thread in its pool.
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// Number of this thread in its pool, from 0; threads of no pool, which call
/// [`Pool::run`], have 0. For picking what one's own cache may hold, nothing else.
pub fn worker() -> usize {
    WORKER.get()
}

struct Shared {
    /// Written by the caller while `open` is false and `active` is 0.
    job: UnsafeCell<Job>,
    /// By thread: the next part of its share.
    next: Box<[Counter]>,
    /// Whether workers may still enter the loop.
    open: AtomicBool,
    /// Counts loops, so that a worker enters each at most once. Idle workers read it all the time.
    epoch: Counter,
    /// Workers between entering and leaving. The caller stays until it is 0.
    active: Counter,
    /// Threads asleep on `wake`.
    sleepers: AtomicUsize,
    quit: AtomicBool,
    gate: Mutex<()>,
    wake: Condvar,
    done: Condvar,
    panicked: AtomicUsize,
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is the only field that is not Sync by itself. It is written only by
// the thread that holds `Pool::turn`, and only while `open` is false and no worker is
// active; workers read it only between raising `active` and lowering it, after they
// saw `open`. All of these are sequentially consistent, so a worker that saw `open`
// was counted before the caller can see `active == 0` and go on to write again.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer in `job` is only dereferenced under the rule above; the
// closure it points to is Sync, so any thread may call it.
unsafe impl Send for Shared {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here can be left half-written by a panic: the guarded values are
    // `()` and an Option that is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// First part of a thread's share.
    fn share(&self, thread: usize, parts: usize) -> usize {
        // No overflow: there are fewer threads than 2^16, fewer parts than worlds.
        thread * parts / self.next.len()
    }

    /// Takes parts until none is left, of its own share first. A panicking part counts
    /// as done.
    fn work(&self, me: usize, body: &(dyn Fn(usize) + Sync), parts: usize) {
        let threads = self.next.len();
        for owner in (me..threads).chain(0..me) {
            let end = self.share(owner + 1, parts);
            let next = &self.next[owner].0;
            // Looked at first: a share that is done costs the others no writing.
            while next.load(SeqCst) < end {
                let part = next.fetch_add(1, SeqCst);
                if part >= end {
                    break;
                }
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(part))) {
                    self.panicked.fetch_add(1, SeqCst);
                    *lock(&self.payload) = Some(payload);
                }
            }
        }
    }

    fn worker(&self, me: usize) {
        WORKER.set(me);
        let mut seen = 0;
        loop {
            let Some(epoch) = self.await_epoch(seen) else {
                return;
            };
            seen = epoch;
            self.active.0.fetch_add(1, SeqCst);
            if self.open.load(SeqCst) {
                // SAFETY: `active` was raised before `open` was seen, so the caller
                // of `run` is still inside it and `job` stays as it is, and the
                // closure stays alive, until `active` is lowered below.
                let job = unsafe { &*self.job.get() };
                if let Some(body) = job.body {
                    // SAFETY: as above: the closure outlives this call.
                    self.work(me, unsafe { &*body }, job.parts);
                }
            }
            if self.active.0.fetch_sub(1, SeqCst) == 1 && !self.open.load(SeqCst) {
                // The caller may be asleep waiting for this.
                drop(lock(&self.gate));
                self.done.notify_all();
            }
        }
    }

    /// Waits for a loop other than `seen`; `None` when the pool ends.
    fn await_epoch(&self, seen: usize) -> Option<usize> {
        let news = || {
            let epoch = self.epoch.0.load(SeqCst);
            (epoch != seen || self.quit.load(SeqCst)).then_some(epoch)
        };
        let mut found = None;
        for _ in 0..SPINS {
            found = news();
            if found.is_some() {
                break;
            }
            std::hint::spin_loop();
        }
        if found.is_none() {
            let mut guard = lock(&self.gate);
            self.sleepers.fetch_add(1, SeqCst);
            while news().is_none() {
                guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            self.sleepers.fetch_sub(1, SeqCst);
            found = news();
        }
        if self.quit.load(SeqCst) { None } else { found }
    }

    /// Wakes sleeping workers, if there are any.
    fn ring(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            // Through the gate, so that no worker is between its last look and its
            // sleep.
            drop(lock(&self.gate));
            self.wake.notify_all();
        }
    }
}

/// Threads that wait for parts of one loop. `run` allocates nothing.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose loop is being run.
    turn: Mutex<()>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl Pool {
    /// `threads` workers, the calling thread among them (0 counts as 1).
    ///
    /// # Errors
    /// [`PhysicsError::Thread`] when the system refuses a thread.
    pub fn new(threads: usize) -> Result<Self, PhysicsError> {
        let shared = Arc::new(Shared {
            job: UnsafeCell::new(Job { body: None, parts: 0 }),
            next: (0..threads.max(1)).map(|_| Counter(AtomicUsize::new(0))).collect(),
            open: AtomicBool::new(false),
            epoch: Counter(AtomicUsize::new(0)),
            active: Counter(AtomicUsize::new(0)),
            sleepers: AtomicUsize::new(0),
            quit: AtomicBool::new(false),
            gate: Mutex::new(()),
            wake: Condvar::new(),
            done: Condvar::new(),
            panicked: AtomicUsize::new(0),
            payload: Mutex::new(None),
        });
        let mut pool = Self { shared, workers: Vec::new(), turn: Mutex::new(()) };
        for i in 1..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new()
                .name(format!("physics-{i}"))
                .spawn(move || shared.worker(i))
                // Dropping `pool` ends the workers that did start.
                .map_err(|e| PhysicsError::Thread(e.to_string()))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// The cores this process may use (cgroup quota and affinity counted).
    pub fn available() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Loops so far that were spread over the threads.
    pub fn loops(&self) -> usize {
        self.shared.epoch.0.load(SeqCst)
    }

    /// Calls `f(i)` for every `i` in `0..parts`, spread over the threads; returns
    /// when all are done. A call from within a part, or while another thread's loop
    /// runs, is done by the caller alone.
    ///
    /// # Panics
    /// When a part panicked, with its payload, after the other parts ran. The pool
    /// stays usable. [`try_run`](Self::try_run) returns an error instead.
    pub fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        if let Some((_, payload)) = self.run_parts(parts, f) {
            resume_unwind(payload);
        }
    }

    /// [`run`](Self::run), with panics of parts as an error.
    ///
    /// # Errors
    /// [`PartPanicked`] when at least one part panicked; the others ran.
    pub fn try_run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) -> Result<(), PartPanicked> {
        match self.run_parts(parts, f) {
            None => Ok(()),
            Some((count, payload)) => Err(PartPanicked { count, message: message(&*payload) }),
        }
    }

    fn run_parts(
        &self,
        parts: usize,
        f: &(dyn Fn(usize) + Sync),
    ) -> Option<(usize, Box<dyn Any + Send>)> {
        let turn = match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        };
        let Some(_turn) = turn else {
            return alone(parts, f);
        };
        if self.workers.is_empty() || parts <= 1 {
            return alone(parts, f);
        }
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. The pointer is used by workers only
        // while they are counted in `active` and the loop was open; this function
        // does not return before it closed the loop and saw `active == 0`.
        let body: Body = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(usize) + Sync + '_),
                *const (dyn Fn(usize) + Sync + 'static),
            >(f)
        };
        // SAFETY: this thread holds `turn`, the loop is closed and no worker that
        // saw an open loop is active (the previous `run_parts` waited for that), so
        // nobody reads `job` now.
        unsafe {
            *shared.job.get() = Job { body: Some(body), parts };
        }
        for (thread, next) in shared.next.iter().enumerate() {
            next.0.store(shared.share(thread, parts), SeqCst);
        }
        shared.panicked.store(0, SeqCst);
        shared.open.store(true, SeqCst);
        shared.epoch.0.fetch_add(1, SeqCst);
        shared.ring();
        // `work` does not unwind: it catches every part's panic.
        shared.work(0, f, parts);
        shared.open.store(false, SeqCst);
        self.await_workers();
        match shared.panicked.load(SeqCst) {
            0 => None,
            count => Some((
                count,
                lock(&shared.payload).take().unwrap_or_else(|| Box::new("lost panic message")),
            )),
        }
    }

    /// Waits until the workers have left the closed loop.
    fn await_workers(&self) {
        let shared = &*self.shared;
        for _ in 0..SPINS {
            if shared.active.0.load(SeqCst) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        let mut guard = lock(&shared.gate);
        while shared.active.0.load(SeqCst) != 0 {
            guard = shared.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.quit.store(true, SeqCst);
        drop(lock(&self.shared.gate));
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches every panic, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

/// The loop, by the calling thread alone.
fn alone(parts: usize, f: &(dyn Fn(usize) + Sync)) -> Option<(usize, Box<dyn Any + Send>)> {
    let mut panicked = None;
    for i in 0..parts {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| f(i))) {
            let count = panicked.map_or(0, |(n, _)| n);
            panicked = Some((count + 1, payload));
        }
    }
    panicked
}

/// The text of a panic.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_string())
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
