//! State that writers and samplers share.
//!
//! Rows are written under the write lock and drawn under the read lock: a batch never holds
//! half a transition. Locks are held for one rollout or one batch.

use super::draw::{self, Progress};
use super::gather::{GatherPlan, copy};
use super::priority::{Priorities, PriorityMark};
use super::rollout::HostRollout;
use super::slot::Slot;
use super::store::{Fill, Source, Store};
use super::window::{Position, Window};
use super::{Layout, ReplayError, SamplerKind};
use crate::Rollout;
use ostler_sim::device::Counts;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The shared part of a replay buffer.
#[derive(Debug)]
pub struct Core {
    /// Layout of a transition.
    pub layout: Layout,
    /// Layout of a batch.
    pub plan: GatherPlan,
    /// How transitions are chosen.
    pub sampler: SamplerKind,
    /// Counts copies between host and device.
    pub crossed: Arc<Counts>,
    inner: RwLock<Inner>,
}

/// State behind the lock.
#[derive(Debug)]
pub struct Inner {
    /// Which transitions are there.
    pub window: Window,
    /// Where they lie.
    pub store: Store,
    /// Of prioritised draws.
    pub priorities: Option<Priorities>,
}

// SAFETY: the tensors of `DeviceRing` and the pointers in them keep `Inner` from being `Sync` by
// itself. libtorch's tensors may be read from several threads at a time; functions that write
// them (`Store::extend`, `Store::copy_in`, `Store::reload`) take `&mut`, so that the lock gives
// it exclusive access.
unsafe impl Sync for Inner {}

impl Core {
    /// Over a storage and its content.
    pub fn new(
        layout: Layout,
        plan: GatherPlan,
        sampler: SamplerKind,
        crossed: Arc<Counts>,
        inner: Inner,
    ) -> Self {
        Self { crossed, layout, plan, sampler, inner: RwLock::new(inner) }
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
    /// They cannot be stored; nothing has changed but the overwritten places.
    pub fn extend(
        &self,
        count: usize,
        envs: usize,
        fill: &mut Fill<'_>,
    ) -> Result<(), ReplayError> {
        let source =
            Source { count, stride: u32::try_from(envs).unwrap_or(u32::MAX).max(1), rollout: None };
        self.write().extend(&self.layout, &source, Some(fill))
    }

    /// Takes in a rollout whose policy had this version.
    ///
    /// # Errors
    /// As [`extend`](Self::extend); its device fails, or it is of another layout.
    pub fn extend_rollout(&self, rollout: &Rollout, version: i32) -> Result<(), ReplayError> {
        if self.read().store.takes(rollout) {
            let source = Source {
                count: (rollout.steps * rollout.envs) as usize,
                stride: rollout.envs as u32,
                rollout: Some((rollout, version)),
            };
            return self.write().extend(&self.layout, &source, None);
        }
        let host = HostRollout::new(rollout, &self.crossed)?;
        host.rows_for(&self.layout, version, |fill| self.extend(host.rows(), host.envs(), fill))
    }

    /// Takes in transitions by field; see `ReplayBuffer::extend_rows`.
    ///
    /// # Errors
    /// As [`extend`](Self::extend); they are not those of the layout.
    pub fn extend_fields(&self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        let layout = self.layout.fields();
        let rows = match (fields.first(), layout.first()) {
            (Some(words), Some(field)) => words.len() / field.width,
            _ => 0,
        };
        let sizes: Vec<usize> = fields.iter().map(|f| f.len()).collect();
        let expected: Vec<usize> = layout.iter().map(|f| rows * f.width).collect();
        if sizes != expected || envs == 0 || rows % envs != 0 {
            return Err(ReplayError::shape(
                "words of the fields of new transitions",
                format!("{expected:?}, a multiple of {envs} transitions"),
                format!("{sizes:?}"),
            ));
        }
        let ways = fields.iter().zip(layout).zip(self.layout.offsets());
        let ways: Vec<_> = ways.map(|((words, f), to)| (*words, f, to)).collect();
        self.extend(rows, envs, &mut |i, row| {
            for &(words, field, to) in &ways {
                let width = field.width;
                match width {
                    1 => row[to] = words[i],
                    _ => copy(&words[i * width..][..width], &mut row[to..][..width]),
                }
            }
        })
    }

    /// Fills a slot with the next draw.
    ///
    /// # Errors
    /// Nothing is there to draw, or the storage fails.
    pub fn draw(
        &self,
        seed: u64,
        progress: &mut Progress,
        slot: &mut Slot,
    ) -> Result<(), ReplayError> {
        let mut next = *progress;
        {
            let inner = &*self.read();
            let weights = self.plan.weights();
            match &inner.priorities {
                None => {
                    let rows = &mut slot.rows;
                    draw::draw(self.sampler, seed, &inner.window, &mut next, rows)?;
                    slot.columns(|_, out| out[weights].fill(1.0_f32.to_bits()))?;
                }
                Some(priorities) => {
                    let mut drawn = Ok(());
                    slot.columns_mut(|rows, out| {
                        let weights = bytemuck::cast_slice_mut(&mut out[weights]);
                        drawn = priorities.draw(seed, next.draws, &inner.window, rows, weights);
                    })?;
                    drawn?;
                    next.draws += 1;
                }
            }
            inner.store.gather(&self.plan, &self.layout, &inner.window, slot)?;
        }
        slot.finish(seed, progress.draws);
        slot.after = next;
        *progress = next;
        Ok(())
    }

    /// Where everything stands.
    pub fn mark(&self) -> (Position, Option<PriorityMark>) {
        let inner = &mut *self.write();
        let priorities = inner.priorities.as_mut().map(Priorities::mark);
        (inner.window.place(), priorities)
    }

    /// Goes back to a mark; how many transitions were lost.
    ///
    /// # Errors
    /// It is not of the past; then nothing has changed. The storage fails.
    pub fn rewind(
        &self,
        place: &Position,
        mark: Option<&PriorityMark>,
    ) -> Result<u64, ReplayError> {
        let inner = &mut *self.write();
        if let (Some(priorities), Some(mark)) = (&inner.priorities, mark)
            && !priorities.knows(mark)
        {
            return Err(ReplayError::Saved("priorities go back to the last mark only".into()));
        }
        let end = inner.window.end();
        let future = || ReplayError::Saved("the mark lies in the future of this buffer".into());
        let lost = inner.window.rewind(place).ok_or_else(future)?;
        if let (Some(priorities), Some(mark)) = (&mut inner.priorities, mark) {
            priorities.rewind(mark);
            let (now, places) = (inner.window.range(), inner.window.physical());
            priorities.moved(place.begin..place.end, now, places);
        }
        // The newest ones of a tiered storage were overwritten, if there were enough others.
        if end - place.end > inner.window.physical() - inner.window.capacity() {
            inner.store.reload(&inner.window)?;
        }
        if let Some(disk) = inner.store.disk() {
            disk.commit(&inner.window)?;
        }
        Ok(lost)
    }
}

impl Inner {
    fn extend(
        &mut self,
        layout: &Layout,
        source: &Source<'_>,
        fill: Option<&mut Fill<'_>>,
    ) -> Result<(), ReplayError> {
        let old = self.window.range();
        let extended = Store::extend(self, layout, source, fill);
        if let Some(priorities) = &mut self.priorities {
            priorities.moved(old, self.window.range(), self.window.physical());
        }
        extended
    }
}
