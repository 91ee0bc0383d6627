//! Environments as the collector needs them, so that tests can use ones whose
//! numbers can be recognised.

use ostler_sim::env::EnvSpec;
use ostler_sim::physics::SnapshotError;
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};

/// N environments stepped together; see [`BatchEnv`] for each contract.
#[allow(missing_docs)]
pub trait Environments {
    fn spec(&self) -> &EnvSpec;
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>);
    fn begin_rollout(&mut self);
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>);
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
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) {
        self.reset(spread, obs);
    }
    fn begin_rollout(&mut self) {
        self.begin_rollout();
    }
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) {
        self.step(actions, out);
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
