//! Draws made ahead by a thread.
//!
//! The thread works within the draws that were announced, between two changes of the buffer: its
//! draws equal those without it. Draws that nobody took when the buffer changes are thrown away
//! and made again.

use super::ReplayError;
use super::core::Core;
use super::draw::Progress;
use super::pin::{Pinner, pin_batch};
use super::slot::Slot;
use super::transform::Chain;
use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Stages of a batch.
#[derive(Debug)]
pub struct Maker {
    /// Where it comes from.
    pub core: Arc<Core>,
    /// Key of the draws.
    pub seed: u64,
    /// Its transforms.
    pub chain: Chain,
    /// The last stage, where asked for.
    pub pinner: Option<Box<dyn Pinner>>,
}

impl Maker {
    /// Makes the next batch in a slot.
    ///
    /// # Errors
    /// Nothing is there to draw; storage, transforms or the device fail.
    pub fn make(&self, progress: &mut Progress, slot: &mut Slot) -> Result<(), ReplayError> {
        self.make_with(self.seed, progress, slot)
    }

    /// The same with draws of its own.
    ///
    /// # Errors
    /// As there.
    pub fn make_with(
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
        if self.chain.is_empty() && self.pinner.is_none() {
            return Ok(());
        }
        let mut batch = tch::no_grad(|| self.chain.run(slot.base.shallow_clone()))?;
        if let Some(pinner) = self.pinner.as_deref() {
            slot.check_pinned(pinner)?;
            batch = pin_batch(pinner, self.chain.device(), batch)?;
        }
        slot.made = Some(batch);
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
pub struct Prefetch {
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
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(maker: Arc<Maker>, slots: Vec<Slot>) -> Result<Self, ReplayError> {
        let (jobs, asked) = sync_channel::<Job>(slots.len());
        let (give, done) = sync_channel(slots.len() + 1);
        let work = move || {
            let mut progress = Progress::default();
            for Job { mut slot, begin } in asked {
                progress = begin.unwrap_or(progress);
                let made = maker.make(&mut progress, &mut slot);
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
    pub fn announce(&mut self, count: usize, now: Progress) {
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
    pub fn take(&mut self, slot: &mut Slot) -> Option<Result<(), ReplayError>> {
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
    pub fn settle(&mut self) {
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
            Err(panic) => text(panic.as_ref()),
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

/// Message of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".into())
}

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
