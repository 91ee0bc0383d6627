//! Environments as the collector needs them, so that other programs' and tests' can take
//! the place of a robot's.

use crate::CollectError;
use ostler_sim::env::EnvSpec;
use ostler_sim::physics::SnapshotError;
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};

/// N environments stepped together; see [`BatchEnv`] for each contract.
#[allow(missing_docs)]
pub trait Environments {
    fn spec(&self) -> &EnvSpec;

    /// # Errors
    /// Another process that has the environments cannot go on.
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError>;

    fn begin_rollout(&mut self);

    /// # Errors
    /// As for [`reset`](Self::reset).
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError>;

    /// Whether [`capture`](Self::capture) has all that a later step depends on. Where it has
    /// not, episodes begin anew after [`restore_range`](Self::restore_range), which takes
    /// over none, and after [`restore`](Self::restore), which a [`reset`](Self::reset) follows.
    fn keeps_state(&self) -> bool {
        true
    }

    fn take_stats(&mut self, into: &mut EpisodeStats);
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError>;
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError>;
    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError>;
}

/// Environments that can be a part of a batch, in a thread of its own.
pub trait Shards: Environments + Send + 'static {
    /// Steps and resets so far: keys the draws, and is the same in all parts of a batch.
    fn clock(&self) -> u64;

    /// Lets so many steps pass without anything happening.
    fn skip(&mut self, steps: u64);

    /// Appends what [`capture`](Environments::capture) of the whole batch would write, from
    /// what it wrote of its parts in their order.
    ///
    /// # Errors
    /// They are not parts of one batch at one time; no memory.
    fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError>;
}

impl Shards for BatchEnv {
    fn clock(&self) -> u64 {
        self.clock()
    }
    fn skip(&mut self, steps: u64) {
        self.skip(steps);
    }
    fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        Self::join(parts, out)
    }
}

impl Environments for BatchEnv {
    fn spec(&self) -> &EnvSpec {
        self.spec()
    }
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.reset(spread, obs);
        Ok(())
    }
    fn begin_rollout(&mut self) {
        self.begin_rollout();
    }
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.step(actions, out);
        Ok(())
    }
    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.take_stats(into);
    }
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.capture(out)
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.restore(bytes)
    }
    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        self.restore_range(bytes, spread, obs)
    }
}
