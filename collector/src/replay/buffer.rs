//! The replay buffer as a learner sees it.

use super::core::Core;
use super::disk::FreeMemory;
use super::draw::Progress;
use super::file::Found;
use super::pin::Pinner;
use super::prefetch::{Maker, Prefetch};
use super::priority::PriorityMark;
use super::saved::FileCopy;
use super::slot::Slot;
use super::window::Position;
use super::{Batch, Layout, ReplayError, Room, StorageKind, Transform};
use crate::Rollout;
use crate::transfer::read_into;
use ostler_sim::device::Traffic;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Arguments of a [`ReplayBuffer`] beyond its configuration.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Discount per step, for n-step returns.
    pub gamma: f64,
    /// Device of the batches.
    pub device: Device,
    /// Draws per batch, `B`.
    pub batch_size: usize,
    /// Key of all draws.
    pub seed: u64,
    /// Folder of the run; the file lies in its folder `replay` unless
    /// `replay.directory` says where.
    pub folder: Option<&'a Path>,
    /// So many transitions are kept that fell out of the buffer: those that come between
    /// two marks, or between two checkpoints where the storage is saved with them. With
    /// fewer, going back loses the oldest transitions.
    pub margin: usize,
    /// Free memory.
    pub room: Room,
    /// The same of host memory at any later time, for `replay.on_full_disk = "host"`.
    pub free_memory: FreeMemory,
    /// A buffer that is in the folder already is opened. Otherwise it is an error that there
    /// is one.
    pub reopen: bool,
    /// Transforms of batches after they were drawn, in order; `[[replay.transform]]` comes before
    /// them.
    pub transforms: Vec<Box<dyn Transform>>,
    /// Pins batches, where `replay.pin_memory` asks for it.
    pub pinner: Option<Box<dyn Pinner>>,
}

impl Setup<'_> {
    /// For batches of this size on a device, without a folder.
    pub fn new(batch_size: usize, device: Device, gamma: f64, seed: u64) -> Self {
        Self {
            gamma,
            device,
            batch_size,
            seed,
            folder: None,
            margin: 0,
            room: Room::default(),
            free_memory: || None,
            reopen: false,
            transforms: Vec::new(),
            pinner: None,
        }
    }
}

/// Where a replay buffer stood, to [rewind](ReplayBuffer::rewind) to.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    place: Position,
    progress: Progress,
    priorities: Option<PriorityMark>,
    version: i32,
}

/// Transitions of the past, and batches of them.
#[derive(Debug)]
pub struct ReplayBuffer {
    pub(super) core: Arc<Core>,
    pub(super) maker: Arc<Maker>,
    pub(super) storage: StorageKind,
    /// Where the file is, if there is one or is to be one.
    pub(super) folder: Option<PathBuf>,
    /// Content of the file when this was made.
    pub(super) found: Found,
    /// `replay.save`.
    pub(super) save: bool,
    pub(super) keeper: Option<FileCopy>,
    /// Before `slot`, so that its thread ends first.
    pub(super) prefetch: Option<Prefetch>,
    pub(super) slot: Slot,
    pub(super) progress: Progress,
    pub(super) version: i32,
    /// Priorities on their way, and how many of all were not finite.
    pub(super) priorities: Vec<f32>,
    pub(super) not_finite: u64,
    pub(super) saves: u64,
}

impl ReplayBuffer {
    /// Takes in a rollout: transitions in the order of its steps, then of its
    /// environments. The next observation is the true one: of a truncated episode the
    /// last before the reset. Where an episode terminated it is that of the next episode,
    /// whose value does not count.
    ///
    /// # Errors
    /// The rollout is of another layout, its device fails, or the storage is full.
    pub fn extend(&mut self, rollout: &Rollout) -> Result<(), ReplayError> {
        self.settle();
        self.core.extend_rollout(rollout, self.version)
    }

    /// Takes in transitions by field, in the order of the layout: `[T*N,width]` as 32-bit
    /// words (`bytemuck::cast_slice` of floats), step by step of `envs` environments.
    ///
    /// # Errors
    /// The fields are not those of the layout, or the storage is full.
    pub fn extend_rows(&mut self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        self.settle();
        self.core.extend_fields(fields, envs)
    }

    /// The version of the policy that transitions are marked with from now on, of rollouts
    /// that do not know it.
    pub fn set_version(&mut self, version: i32) {
        self.version = version;
    }

    /// The next rollout does not go on from the last: the environments were reset,
    /// or are others. No n-step return goes across.
    pub fn cut(&mut self) {
        self.core.write().window.cut();
    }

    /// How far the run is, 0..1: where `beta` is on its way to `beta_end`.
    pub fn set_progress(&mut self, progress: f64) {
        self.settle();
        if let Some(priorities) = &mut self.core.write().priorities {
            priorities.set_progress(progress);
        }
    }

    /// The next batch. It depends only on the seed, the
    /// number of earlier draws, and the buffer's content.
    ///
    /// # Errors
    /// Nothing is there; the storage or the device fails.
    #[allow(clippy::should_implement_trait, reason = "the next draw, without end")]
    pub fn next(&mut self) -> Result<&Batch, ReplayError> {
        let ready = self.prefetch.as_mut().and_then(|p| p.take(&mut self.slot));
        match ready {
            Some(made) => {
                made?;
                self.progress = self.slot.after;
            }
            None => self.maker.make(&mut self.progress, &mut self.slot)?,
        }
        Ok(self.slot.batch())
    }

    /// Says that `count` batches will be drawn before the next transitions come, so that
    /// they can be drawn ahead. A number too large costs draws in vain, one too small draws
    /// that are not made ahead; the batches are the same.
    pub fn begin_update(&mut self, count: usize) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.announce(count, self.progress);
        }
    }

    /// Draws made ahead are thrown away: the buffer is about to change.
    pub(super) fn settle(&mut self) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.settle();
        }
    }

    /// Sets the priorities of the transitions drawn last, `[B]`, 0 or more. Values that are
    /// not finite change nothing; they are [counted](Self::not_finite). Without prioritised
    /// draws nothing happens.
    ///
    /// # Errors
    /// They are not as many, or their device fails.
    pub fn update_priorities(&mut self, priorities: &Tensor) -> Result<(), ReplayError> {
        let expected = self.slot.rows.len();
        if priorities.numel() != expected {
            let got = format!("{:?}", priorities.size());
            return Err(ReplayError::shape("priorities of a batch", expected, got));
        }
        let inner = &mut *self.core.write();
        if let Some(tree) = &mut inner.priorities {
            self.priorities.resize(expected, 0.0);
            let floats = priorities.f_detach()?.f_to_kind(Kind::Float)?.f_reshape([-1])?;
            self.core.crossed.fetched();
            read_into(&floats, &mut self.priorities)?;
            let wrong = tree.update(&inner.window, &self.slot.rows, &self.priorities);
            self.not_finite += wrong as u64;
        }
        Ok(())
    }

    /// Traffic between host and device, and how often the host waited, since it was
    /// made: by this thread, or by the one that draws ahead. With batches on the host, only
    /// what would cross if they were not.
    pub fn traffic(&self) -> Traffic {
        self.core.crossed.traffic()
    }

    /// Priorities that were not finite or below 0, and were left out.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// Where it stands now.
    pub fn mark(&mut self) -> Mark {
        let (place, priorities) = self.core.mark();
        Mark { place, progress: self.progress, priorities, version: self.version }
    }

    /// Goes back to a mark: the same transitions are there, and where the same come again,
    /// the same batches follow. Returns how many of the oldest were overwritten since: none
    /// where no more than [`Setup::margin`] came. Priorities go back to the last mark only.
    ///
    /// # Errors
    /// The mark is not of the past of this buffer, and nothing has changed; or the storage
    /// fails.
    pub fn rewind(&mut self, mark: &Mark) -> Result<u64, ReplayError> {
        self.settle();
        let lost = self.core.rewind(&mark.place, mark.priorities.as_ref())?;
        (self.progress, self.version) = (mark.progress, mark.version);
        if let Some(keeper) = &mut self.keeper {
            keeper.went_back(mark.place.end);
        }
        Ok(lost)
    }

    /// Transitions that can be drawn.
    pub fn len(&self) -> usize {
        self.core.read().window.len() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most that can be.
    pub fn capacity(&self) -> usize {
        self.core.read().window.capacity() as usize
    }

    /// Bytes of a transition.
    pub fn bytes_per_transition(&self) -> usize {
        self.core.layout.bytes_per_transition()
    }

    /// Fields of a transition.
    pub fn layout(&self) -> &Layout {
        &self.core.layout
    }

    /// Device of the batches that come out of the transforms.
    pub fn device(&self) -> Device {
        self.maker.chain.device()
    }
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
pub(super) mod tests;
