//! Other threads' parts in a replay buffer.

use super::core::Core;
use super::draw::Progress;
use super::prefetch::Maker;
use super::slot::Slot;
use super::{Batch, ReplayBuffer, ReplayError};
use crate::Rollout;
use std::sync::Arc;

/// Puts transitions into a replay buffer from any thread. Transitions of several threads come in
/// an order of their own: draws do not repeat then.
#[derive(Debug, Clone)]
pub struct Writer {
    core: Arc<Core>,
}

/// Draws from a replay buffer in any thread, beside its owner.
#[derive(Debug)]
pub struct Sampler {
    maker: Arc<Maker>,
    seed: u64,
    progress: Progress,
    slot: Slot,
}

impl ReplayBuffer {
    /// For a thread that writes.
    pub fn writer(&self) -> Writer {
        Writer { core: Arc::clone(&self.core) }
    }

    /// For a thread that draws, with draws of its own for each `seed`.
    ///
    /// # Errors
    /// No room for a batch.
    pub fn sampler(&self, seed: u64) -> Result<Sampler, ReplayError> {
        let pinner = self.maker.pinner.as_deref();
        let (layout, plan) = (&self.core.layout, &self.core.plan);
        Ok(Sampler {
            slot: Slot::new(layout, plan, self.slot.base.device(), pinner, &self.core.crossed)?,
            maker: Arc::clone(&self.maker),
            seed,
            progress: Progress::default(),
        })
    }
}

impl Writer {
    /// As [`ReplayBuffer::extend`]; all of it or nothing.
    ///
    /// # Errors
    /// As there.
    pub fn extend(&self, rollout: &Rollout, version: i32) -> Result<(), ReplayError> {
        self.core.extend_rollout(rollout, version)
    }

    /// As [`ReplayBuffer::extend_rows`].
    ///
    /// # Errors
    /// As there.
    pub fn extend_rows(&self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        self.core.extend_fields(fields, envs)
    }
}

impl Sampler {
    /// As [`ReplayBuffer::next`].
    ///
    /// # Errors
    /// As there.
    #[allow(clippy::should_implement_trait, reason = "the next draw, without end")]
    pub fn next(&mut self) -> Result<&Batch, ReplayError> {
        let Self { maker, seed, progress, slot } = self;
        maker.make_with(*seed, progress, slot)?;
        Ok(slot.batch())
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
