//! Environments that write into tensors, as a collector needs them.

use super::Traffic;
use crate::policy::Noise;
use crate::{CollectError, Policy, Rollout};
use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::{EnvError, EnvSpec};
use tch::Tensor;

/// The random numbers of a policy's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Numbers per environment and step.
    pub width: usize,
    /// Their distribution.
    pub kind: Noise,
    /// Their key, with environment and step.
    pub seed: u64,
}

impl NoiseSpec {
    /// Those of a policy.
    pub fn of(policy: &dyn Policy, seed: u64) -> Self {
        let (width, kind) = policy.noise();
        Self { width: usize::try_from(width).unwrap_or(0), kind, seed }
    }
}

/// N environments that write each step into a rollout of their own, on its device.
/// Nothing here waits for the device unless it says so.
pub trait TensorEnvironments {
    /// Sizes and names.
    fn spec(&self) -> &EnvSpec;

    /// The rollout that is written.
    fn rollout(&self) -> &Rollout;

    /// The action noise `[N, width]` of step `t` of this rollout; there once the step
    /// before it, or [`begin_rollout`](Self::begin_rollout), was called.
    fn noise(&self, t: usize) -> &Tensor;

    /// Begins all episodes, at random ages if `spread`; writes row 0 of the observations.
    ///
    /// # Errors
    /// The device refuses.
    fn reset(&mut self, spread: bool) -> Result<(), CollectError>;

    /// Before the first step of a rollout; `step` control steps were taken since the run
    /// began.
    ///
    /// # Errors
    /// The device refuses.
    fn begin_rollout(&mut self, step: u64) -> Result<(), CollectError>;

    /// Takes the actions in row `t` of the rollout and writes the results: row `t + 1` of the
    /// policy's observations, and row `t` of the other results, at the latest with
    /// [`end_rollout`](Self::end_rollout).
    ///
    /// # Errors
    /// The device refuses.
    fn step(&mut self, t: usize) -> Result<(), CollectError>;

    /// Which rows of step `t` ended an episode, or broke: booleans `[N]` on the device, before
    /// the end of the rollout. Asked for recurrent policies alone.
    ///
    /// # Errors
    /// The device refuses.
    fn ended(&mut self, t: usize) -> Result<Tensor, CollectError>;

    /// After the last step. Waits for the device, for the statistics of the rollout.
    ///
    /// # Errors
    /// The device refuses, or something that was started has failed.
    fn end_rollout(&mut self, into: &mut EpisodeStats) -> Result<(), CollectError>;

    /// As [`Collector::capture`](crate::Collector::capture), of the environments alone,
    /// appended to `out`. Waits.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// As [`Collector::restore`](crate::Collector::restore).
    ///
    /// # Errors
    /// It does not fit, or the device refuses; nothing has changed then.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), CollectError>;

    /// As [`Collector::restore_range`](crate::Collector::restore_range). Writes row 0 of
    /// the observations of environments that begin anew.
    ///
    /// # Errors
    /// It does not fit, or the device refuses; nothing has changed then.
    fn restore_range(&mut self, bytes: &[u8], spread: bool) -> Result<usize, CollectError>;

    /// Captures the state where it lies; the earlier capture is gone.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    fn capture_in_place(&mut self) -> Result<(), CollectError>;

    /// Goes back to the state that was captured in place, which stays.
    ///
    /// # Errors
    /// Nothing was captured, or the device refuses.
    fn restore_in_place(&mut self) -> Result<(), CollectError>;

    /// Appends the record that [`capture`](Self::capture) would have written when the state was
    /// captured in place.
    ///
    /// # Errors
    /// Nothing was captured; no memory, or the device refuses.
    fn captured_in_place(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// Copies between host and device, and how often the host waited, beside what
    /// the collector's [`Queue`](super::Queue) counts.
    fn traffic(&self) -> Traffic;

    /// As [`Collector::set_task`](crate::Collector::set_task).
    ///
    /// # Errors
    /// As there.
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError>;

    /// As [`Collector::device_kernel`](crate::Collector::device_kernel).
    fn kernel(&self) -> Option<String> {
        None
    }
}
