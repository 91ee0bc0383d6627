//! What writers and samplers share.
//!
//! Rows are written under the write lock and drawn under the read lock: a batch never holds
//! half a transition. Locks are held for one rollout or one batch.

use super::draw::{self, Progress};
use super::gather::Plan;
use super::slot::Slot;
use super::store::Store;
use super::window::{Place, Window};
use super::{Layout, ReplayError, SamplerKind};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The shared part of a replay memory.
#[derive(Debug)]
pub struct Core {
    /// What a transition is.
    pub layout: Layout,
    /// What a batch is.
    pub plan: Plan,
    /// How transitions are chosen.
    pub sampler: SamplerKind,
    /// Key of all draws.
    pub seed: u64,
    inner: RwLock<Inner>,
}

/// What the lock guards.
#[derive(Debug)]
pub struct Inner {
    /// Which transitions are there.
    pub window: Window,
    /// Where they lie.
    pub store: Store,
}

impl Core {
    /// Over an empty storage.
    pub fn new(
        layout: Layout,
        plan: Plan,
        sampler: SamplerKind,
        seed: u64,
        window: Window,
        store: Store,
    ) -> Self {
        Self {
            layout,
            plan,
            sampler,
            seed,
            inner: RwLock::new(Inner { window, store }),
        }
    }

    /// To read. A thread that panicked while it wrote left rows outside of the window only:
    /// those that it moves into the window are complete.
    pub fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To write.
    pub fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in `count` transitions of `envs` environments, step by step.
    ///
    /// # Errors
    /// They cannot be stored; nothing has changed but what had to be overwritten.
    pub fn extend(
        &self,
        count: usize,
        envs: usize,
        mut fill: impl FnMut(usize, &mut [u32]),
    ) -> Result<(), ReplayError> {
        let stride = u32::try_from(envs).unwrap_or(u32::MAX).max(1);
        let inner = &mut *self.write();
        let (first, physical) = (inner.window.end(), inner.window.physical());
        // More than there are places: the last ones stay anyway.
        let skip = (count as u64).saturating_sub(physical) as usize;
        let written = inner
            .store
            .write(first + skip as u64, count - skip, |i, row| {
                fill(skip + i, row);
            });
        match written {
            Ok(()) => inner.window.push(count as u64, stride),
            Err(_) => inner.window.overwritten(first + count as u64),
        }
        written
    }

    /// Fills a slot with the next draw.
    ///
    /// # Errors
    /// Nothing is there to draw, or the storage fails.
    pub fn draw(&self, progress: &mut Progress, slot: &mut Slot) -> Result<(), ReplayError> {
        let mut next = *progress;
        {
            let inner = &*self.read();
            draw::draw(
                self.sampler,
                self.seed,
                &inner.window,
                &mut next,
                &mut slot.rows,
            )?;
            let weights = self.plan.weights();
            slot.columns(|rows, out| {
                self.plan
                    .gather(inner.store.rows(), &inner.window, rows, out);
                out[weights..].fill(1.0_f32.to_bits());
            })?;
        }
        slot.upload()?;
        slot.after = next;
        *progress = next;
        Ok(())
    }

    /// Where the window stands.
    pub fn place(&self) -> Place {
        self.read().window.place()
    }
}
