//! What threads share: the transitions behind a lock, and the making of batches from them, by
//! whoever asks or by a thread that draws ahead.
//!
//! Rows are written under the write lock and drawn under the read lock: a batch never holds
//! half a transition. Locks are held for one rollout or one batch.
//!
//! The thread works within the draws that were announced, between two changes of the buffer:
//! its draws equal those without it. Draws that nobody took when the buffer changes are thrown
//! away and made again.

use super::batch::{Batch, Draw, GatherPlan, Pinner, Slot, copy};
use super::draw::{self, Priorities, PriorityMark, Progress, SamplerKind};
use super::host::rows_of;
use super::storage::{Fill, New, Storage};
use super::transform::Chain;
use super::transition::{Position, Window};
use crate::Rollout;
use crate::error::ReplayError;
use crate::panic_text;
use ostler_sim::device::Counts;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use tch::Device;

/// The shared part of a replay buffer.
#[derive(Debug)]
pub(crate) struct Core {
    /// Layout of a transition and of a batch.
    pub plan: GatherPlan,
    /// How transitions are chosen.
    pub sampler: SamplerKind,
    /// Counts copies between host and device.
    pub crossed: Arc<Counts>,
    inner: RwLock<Inner>,
}

/// State behind the lock.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Which transitions are there.
    pub window: Window,
    pub storage: Box<dyn Storage>,
    /// Of prioritised draws.
    pub priorities: Option<Priorities>,
}

impl Core {
    /// Over a storage and its content.
    pub(crate) fn new(
        plan: GatherPlan,
        sampler: SamplerKind,
        crossed: Arc<Counts>,
        inner: Inner,
    ) -> Self {
        Self { crossed, plan, sampler, inner: RwLock::new(inner) }
    }

    /// To read. A thread that panicked while it wrote left rows outside of the window only:
    /// those that it moves into the window are complete.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what `with` gives to the storage.
    fn extend<T>(
        &self,
        with: impl FnOnce(&mut dyn Storage, &mut Window) -> Result<T, ReplayError>,
    ) -> Result<T, ReplayError> {
        let Inner { window, storage, priorities } = &mut *self.write();
        let old = window.range();
        let extended = with(storage.as_mut(), window);
        if let Some(priorities) = priorities {
            priorities.moved(old, window.range(), window.physical());
        }
        extended
    }

    /// Takes in `count` transitions of `envs` environments, step by step.
    fn extend_rows(
        &self,
        count: usize,
        envs: usize,
        fill: &mut Fill<'_>,
    ) -> Result<(), ReplayError> {
        let stride = u32::try_from(envs).unwrap_or(u32::MAX).max(1);
        self.extend(|storage, window| storage.extend(window, &mut New { count, stride, fill }))
    }

    /// Takes in a rollout whose policy had this version.
    pub(crate) fn extend_rollout(
        &self,
        rollout: &Rollout,
        version: i32,
    ) -> Result<(), ReplayError> {
        if rollout.device() != Device::Cpu
            && self.extend(|storage, window| storage.extend_there(window, rollout, version))?
        {
            return Ok(());
        }
        let (envs, steps) = (rollout.envs as usize, rollout.steps as usize);
        rows_of(rollout, &self.plan.layout, version, &self.crossed, |fill| {
            self.extend_rows(steps * envs, envs, fill)
        })
    }

    /// Takes in transitions by field; see `ReplayBuffer::extend_rows`.
    pub(crate) fn extend_fields(&self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        let layout = self.plan.layout.fields();
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
        let ways = fields.iter().zip(self.plan.layout.places());
        let ways: Vec<_> = ways.map(|(words, (field, to))| (*words, field, to)).collect();
        self.extend_rows(rows, envs, &mut |i, row| {
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
    pub(crate) fn draw(
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
                    slot.write(weights.clone(), |rows, out| {
                        out[weights].fill(1.0_f32.to_bits());
                        draw::draw(self.sampler, seed, &inner.window, &mut next, rows)
                    })??;
                }
                Some(priorities) => {
                    slot.write(weights.clone(), |rows, out| {
                        let weights = bytemuck::cast_slice_mut(&mut out[weights]);
                        priorities.draw(seed, next.draws, &inner.window, rows, weights)
                    })??;
                    next.draws += 1;
                }
            }
            let draw = Draw { plan: &self.plan, window: &inner.window, which: 0..u64::MAX };
            inner.storage.gather(&draw, slot)?;
        }
        slot.upload()?;
        slot.finish(seed, progress.draws);
        slot.after = next;
        *progress = next;
        Ok(())
    }

    pub(crate) fn mark(&self) -> (Position, Option<PriorityMark>) {
        let inner = &mut *self.write();
        let priorities = inner.priorities.as_mut().map(Priorities::mark);
        (inner.window.place(), priorities)
    }

    /// Goes back to a mark; how many transitions were lost.
    pub(crate) fn rewind(
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
        inner.storage.went_back(&inner.window, end - place.end)?;
        Ok(lost)
    }
}

/// Stages of a batch.
#[derive(Debug)]
pub(crate) struct Maker {
    pub core: Arc<Core>,
    /// Key of the draws of the buffer's owner.
    pub seed: u64,
    pub chain: Chain,
    /// Asked at every draw whether the memory that a GPU copies from is pinned.
    pub pinner: Option<Box<dyn Pinner>>,
}

impl Maker {
    /// Makes the next batch in a slot, of the draws of a seed.
    pub(crate) fn make(
        &self,
        seed: u64,
        progress: &mut Progress,
        slot: &mut Slot,
    ) -> Result<(), ReplayError> {
        let before = *progress;
        let made = self.try_make(seed, progress, slot);
        if made.is_err() {
            *progress = before;
        }
        made
    }

    fn try_make(
        &self,
        seed: u64,
        progress: &mut Progress,
        slot: &mut Slot,
    ) -> Result<(), ReplayError> {
        slot.made = None;
        self.core.draw(seed, progress, slot)?;
        if let Some(pinner) = self.pinner.as_deref() {
            slot.check_pinned(pinner)?;
        }
        if !self.chain.is_empty() {
            slot.made = Some(tch::no_grad(|| self.chain.run(slot.base.shallow_clone()))?);
        }
        Ok(())
    }
}

/// A slot to fill; with where to begin, if that is not behind the one before.
struct Job {
    slot: Slot,
    begin: Option<Progress>,
}

/// The thread, and the slots on their way to it and back.
#[derive(Debug)]
pub(crate) struct Prefetch {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<(Slot, Result<(), ReplayError>)>,
    thread: Option<JoinHandle<()>>,
    /// Slots that are not with the thread, or ready.
    idle: Vec<Slot>,
    /// Slots that are.
    under_way: usize,
    /// Announced draws that were not asked for yet.
    left: usize,
    /// The thread's draws do not go on from its last one.
    restart: bool,
}

impl Prefetch {
    /// Starts the thread, with as many slots as it may be ahead.
    pub(crate) fn new(maker: Arc<Maker>, slots: Vec<Slot>) -> Result<Self, ReplayError> {
        let (jobs, asked) = sync_channel::<Job>(slots.len());
        let (give, done) = sync_channel(slots.len() + 1);
        let work = move || {
            let mut progress = Progress::default();
            for Job { mut slot, begin } in asked {
                progress = begin.unwrap_or(progress);
                let made = maker.make(maker.seed, &mut progress, &mut slot);
                if give.send((slot, made)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("replay".into()).spawn(work);
        let thread = thread.map_err(|e| ReplayError::Prefetch(e.to_string()))?;
        Ok(Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
            idle: slots,
            under_way: 0,
            left: 0,
            restart: true,
        })
    }

    /// So many draws come before the buffer changes.
    pub(crate) fn announce(&mut self, count: usize, now: Progress) {
        self.settle();
        self.left = count;
        self.ask(now);
    }

    /// Hands out idle slots, as long as draws were announced. The first begins at `now`.
    fn ask(&mut self, now: Progress) {
        while self.left > 0
            && let Some(slot) = self.idle.pop()
        {
            let begin = std::mem::take(&mut self.restart).then_some(now);
            let sent = match &self.jobs {
                Some(jobs) => jobs.send(Job { slot, begin }).is_ok(),
                None => false,
            };
            if !sent {
                // The thread is gone; whoever takes the next draw learns why.
                self.left = 0;
                break;
            }
            self.left -= 1;
            self.under_way += 1;
        }
    }

    /// Puts the next draw into `slot`; `None` where none is under way.
    pub(crate) fn take(&mut self, slot: &mut Slot) -> Option<Result<(), ReplayError>> {
        if self.under_way == 0 {
            return self.ended().map(Err);
        }
        let Ok((mut ready, made)) = self.done.recv() else {
            // It is gone, or about to be: wait for it to say why.
            (self.jobs, self.under_way) = (None, 0);
            return self.ended().map(Err);
        };
        self.under_way -= 1;
        std::mem::swap(slot, &mut ready);
        self.idle.push(ready);
        match made {
            Ok(()) => self.ask(slot.after),
            Err(_) => self.settle(),
        }
        Some(made)
    }

    /// Waits for the batches under way and drops them: the buffer is about to change.
    pub(crate) fn settle(&mut self) {
        while self.under_way > 0 {
            match self.done.recv() {
                Ok((slot, _)) => self.idle.push(slot),
                Err(_) => {
                    self.jobs = None;
                    break;
                }
            }
            self.under_way -= 1;
        }
        self.under_way = 0;
        self.left = 0;
        self.restart = true;
    }

    /// Why the thread ended, if it did; said once.
    fn ended(&mut self) -> Option<ReplayError> {
        let thread = self.thread.take_if(|t| t.is_finished() || self.jobs.is_none())?;
        self.jobs = None;
        let why = match thread.join() {
            Ok(()) => "it returned".to_string(),
            Err(panic) => panic_text(panic.as_ref()).unwrap_or_else(|| "it panicked".into()),
        };
        Some(ReplayError::Prefetch(why))
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        // Without jobs the thread ends, after the one it is at.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Puts transitions into a replay buffer from any thread. Transitions of several threads come in
/// an order of their own: draws do not repeat then.
#[derive(Debug, Clone)]
pub struct Writer {
    pub(super) core: Arc<Core>,
}

/// Draws from a replay buffer in any thread, beside its owner.
#[derive(Debug)]
pub struct Sampler {
    pub(super) maker: Arc<Maker>,
    pub(super) seed: u64,
    pub(super) progress: Progress,
    pub(super) slot: Slot,
}

impl Writer {
    /// As [`super::ReplayBuffer::extend`]; all of it or nothing.
    ///
    /// # Errors
    /// As there.
    pub fn extend(&self, rollout: &Rollout, version: i32) -> Result<(), ReplayError> {
        self.core.extend_rollout(rollout, version)
    }

    /// As [`super::ReplayBuffer::extend_rows`].
    ///
    /// # Errors
    /// As there.
    pub fn extend_rows(&self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        self.core.extend_fields(fields, envs)
    }
}

impl Sampler {
    /// As [`super::ReplayBuffer::next`].
    ///
    /// # Errors
    /// As there.
    #[allow(clippy::should_implement_trait, reason = "the next draw, without end")]
    pub fn next(&mut self) -> Result<&Batch, ReplayError> {
        let Self { maker, seed, progress, slot } = self;
        maker.make(*seed, progress, slot)?;
        Ok(slot.batch())
    }
}

#[cfg(test)]
#[path = "tests/prefetch.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/shared.rs"]
mod shared_tests;
