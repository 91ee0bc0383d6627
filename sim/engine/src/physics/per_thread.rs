//! Working memory, one for every thread of a pool.

use super::pool::worker;
use std::sync::{Mutex, PoisonError, TryLockError};

/// As many as threads use them at the same time, so one is always free.
#[derive(Debug)]
pub struct PerThread<T>(Vec<Mutex<T>>);

impl<T> PerThread<T> {
    pub fn new(each: Vec<T>) -> Self {
        Self(each.into_iter().map(Mutex::new).collect())
    }

    /// Calls `f` with one that no other thread uses: usually the thread's own, which is in
    /// its cache. The next use overwrites its content after a panic.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let (before, from) = self.0.split_at(worker() % self.0.len().max(1));
        loop {
            for slot in from.iter().chain(before) {
                match slot.try_lock() {
                    Ok(mut own) => return f(&mut own),
                    Err(TryLockError::Poisoned(e)) => return f(&mut e.into_inner()),
                    Err(TryLockError::WouldBlock) => {}
                }
            }
            std::hint::spin_loop();
        }
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let all = self.0.iter_mut();
        all.map(|slot| slot.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}
