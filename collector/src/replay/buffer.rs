//! The replay memory as a learner sees it.

use super::core::Core;
use super::draw::Progress;
use super::fit;
use super::gather::{Plan, Shape};
use super::host::HostRing;
use super::rollout::HostRollout;
use super::slot::Slot;
use super::store::Store;
use super::window::{Place, Window};
use super::{Batch, Layout, ReplayConfig, ReplayError, Room, StorageKind};
use crate::Rollout;
use std::path::Path;
use std::sync::Arc;
use tch::{Device, Tensor};

/// What a [`ReplayBuffer`] needs to know beyond its configuration.
#[derive(Debug, Clone, Copy)]
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
    /// So many transitions are kept that fell out of the memory: those that come between
    /// two marks, or between two checkpoints where the storage is saved with them. With
    /// fewer, going back loses the oldest transitions.
    pub margin: usize,
    /// What is free.
    pub room: Room,
}

/// Where a replay memory stood, to [go back](ReplayBuffer::revert) to.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    place: Place,
    progress: Progress,
}

/// Transitions of the past, and batches of them.
#[derive(Debug)]
pub struct ReplayBuffer {
    core: Arc<Core>,
    storage: StorageKind,
    device: Device,
    progress: Progress,
    slot: Slot,
    version: i32,
}

impl ReplayBuffer {
    /// Allocates the storage and the batches. `config` is
    /// [resolved](ReplayConfig::resolve) and valid.
    ///
    /// # Errors
    /// The capacity does not fit, or the system refuses the memory or the file.
    pub fn new(
        config: &ReplayConfig,
        layout: Layout,
        setup: &Setup<'_>,
    ) -> Result<Self, ReplayError> {
        let device = setup.device;
        let built = matches!(config.storage, StorageKind::Host)
            || (config.storage == StorageKind::Device && device == Device::Cpu);
        if !built || config.sampler == super::SamplerKind::Prioritized {
            let got = format!("{:?}, {:?}", config.storage, config.sampler);
            return Err(ReplayError::shape(
                "storage and sampler of this version",
                "host",
                got,
            ));
        }
        fit::check(config, &layout, device, setup.margin, &setup.room, 0)?;
        let powers = 0..=config.n_step as i32;
        let shape = Shape {
            batch: setup.batch_size,
            n_step: config.n_step,
            slice_len: config.slice_len,
            discounts: powers.map(|k| setup.gamma.powi(k) as f32).collect(),
        };
        let plan = Plan::new(&layout, shape)?;
        let capacity = config.capacity as u64;
        let window = Window::new(capacity, capacity.saturating_add(setup.margin as u64));
        let store = Store::Host(HostRing::new(window.physical(), layout.words())?);
        let slot = Slot::new(&layout, &plan, device, config.pin_memory)?;
        let core = Core::new(layout, plan, config.sampler, setup.seed, window, store);
        Ok(Self {
            core: Arc::new(core),
            storage: config.storage,
            device,
            progress: Progress::default(),
            slot,
            version: 0,
        })
    }

    /// Takes in a rollout: transitions in the order of its steps, then of its
    /// environments. The next observation is the true one: of a truncated episode the
    /// last before the reset. Where an episode terminated it is that of the next episode,
    /// whose value does not count.
    ///
    /// # Errors
    /// The rollout is of another layout, its device fails, or the storage is full.
    pub fn extend(&mut self, rollout: &Rollout) -> Result<(), ReplayError> {
        let host = HostRollout::new(rollout)?;
        let (count, envs) = (host.rows(), host.envs());
        let core = &self.core;
        host.rows_for(&core.layout, self.version, |fill| {
            core.extend(count, envs, fill)
        })
    }

    /// Takes in transitions by field, in the order of the layout: `[T*N,width]` as 32-bit
    /// words (`bytemuck::cast_slice` of floats), step by step of `envs` environments.
    ///
    /// # Errors
    /// The fields are not those of the layout, or the storage is full.
    pub fn extend_rows(&mut self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        extend_rows(&self.core, fields, envs)
    }

    /// The version of the policy that transitions of rollouts are marked with from now on.
    pub fn set_version(&mut self, version: i32) {
        self.version = version;
    }

    /// What comes next does not go on from what came before: the environments were reset,
    /// or are others. No n-step return or trajectory goes across.
    pub fn cut(&mut self) {
        self.core.write().window.cut();
    }

    /// The next batch. It depends on the seed, on how many were drawn before, and on what
    /// is there; on nothing else.
    ///
    /// # Errors
    /// Nothing is there; the storage or the device fails.
    #[allow(clippy::should_implement_trait, reason = "the next draw, without end")]
    pub fn next(&mut self) -> Result<&Batch, ReplayError> {
        self.core.draw(&mut self.progress, &mut self.slot)?;
        Ok(self.slot.batch())
    }

    /// Says that `count` batches will be drawn before the next transitions come, so that
    /// they can be drawn ahead.
    pub fn begin_update(&mut self, count: usize) {
        let _ = count;
    }

    /// Sets the priorities of the transitions drawn last, `[B]`, 0 or more.
    ///
    /// # Errors
    /// They are not as many, or their device fails.
    pub fn update_priorities(&mut self, priorities: &Tensor) -> Result<(), ReplayError> {
        let _ = priorities;
        Ok(())
    }

    /// Where it stands now.
    pub fn mark(&mut self) -> Mark {
        Mark {
            place: self.core.place(),
            progress: self.progress,
        }
    }

    /// Goes back to a mark: the same transitions are there, and where the same come again,
    /// the same batches follow. Returns how many of the oldest were overwritten since: none
    /// where no more than [`Setup::margin`] came.
    ///
    /// # Errors
    /// The mark is not of the past of this memory; nothing has changed.
    pub fn revert(&mut self, mark: &Mark) -> Result<u64, ReplayError> {
        let lost = self.core.write().window.go_back(&mark.place);
        let lost = lost.ok_or_else(|| {
            ReplayError::Saved("the mark lies in the future of this memory".into())
        })?;
        self.progress = mark.progress;
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

    /// A line for the start of a run.
    pub fn describe(&self) -> String {
        let each = self.bytes_per_transition();
        let capacity = self.capacity();
        format!(
            "replay memory: {each} bytes per transition, {capacity} transitions ({} MiB), storage \
             {:?}, batches of {} on {:?}",
            (each * capacity).div_ceil(1 << 20),
            self.storage.name(),
            self.core.plan.shape.batch,
            self.device,
        )
    }
}

/// [`ReplayBuffer::extend_rows`] for all that write.
pub(super) fn extend_rows(core: &Core, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
    let layout = core.layout.fields();
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
    let offsets = core.layout.offsets();
    core.extend(rows, envs, |i, row| {
        for ((words, field), &to) in fields.iter().zip(layout).zip(&offsets) {
            row[to..to + field.width].copy_from_slice(&words[i * field.width..][..field.width]);
        }
    })
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
