//! What a collector needs of environments that write into tensors.

use super::Traffic;
use crate::policy::Noise;
use crate::{CollectError, Policy, Rollout};
use ostler_sim::EpisodeStats;
use ostler_sim::env::EnvSpec;
use tch::Tensor;

/// The random numbers of a policy's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Numbers per environment and step.
    pub width: usize,
    /// Their distribution.
    pub kind: Noise,
    /// What keys them, with environment and step.
    pub seed: u64,
}

impl NoiseSpec {
    /// What a policy wants.
    pub fn of(policy: &dyn Policy, seed: u64) -> Self {
        let (width, kind) = policy.noise();
        Self {
            width: usize::try_from(width).unwrap_or(0),
            kind,
            seed,
        }
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

    /// Takes the actions in row `t` of the rollout and writes what follows from them: row
    /// `t + 1` of the policy's observations, and row `t` of what else a step gives, at the
    /// latest with [`end_rollout`](Self::end_rollout).
    ///
    /// # Errors
    /// The device refuses.
    fn step(&mut self, t: usize) -> Result<(), CollectError>;

    /// After the last step. Waits for the device, for the statistics of the rollout.
    ///
    /// # Errors
    /// The device refuses, or something that was started has failed.
    fn end_rollout(&mut self, into: &mut EpisodeStats) -> Result<(), CollectError>;

    /// As [`Collector::save`](crate::Collector::save), for the environments alone. Waits.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    fn save(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// The reverse; after an error nothing has changed.
    ///
    /// # Errors
    /// It does not fit, or the device refuses.
    fn restore(&mut self, blob: &[u8]) -> Result<(), CollectError>;

    /// As [`Collector::keep`](crate::Collector::keep), appended to `out`. Waits.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    fn keep(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// The reverse; after an error nothing has changed.
    ///
    /// # Errors
    /// It does not fit, or the device refuses.
    fn revert(&mut self, kept: &[u8]) -> Result<(), CollectError>;

    /// As [`Collector::note`](crate::Collector::note): where the state is.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    fn note(&mut self) -> Result<(), CollectError>;

    /// Goes back to what was noted, which stays.
    ///
    /// # Errors
    /// Nothing was noted, or the device refuses.
    fn go_back(&mut self) -> Result<(), CollectError>;

    /// Appends what [`keep`](Self::keep) would have written when the state was noted.
    ///
    /// # Errors
    /// Nothing was noted; no memory, or the device refuses.
    fn noted(&self, out: &mut Vec<u8>) -> Result<(), CollectError>;

    /// As [`Collector::adopt`](crate::Collector::adopt). Writes row 0 of the observations
    /// of environments that begin anew.
    ///
    /// # Errors
    /// It does not fit, or the device refuses; nothing has changed then.
    fn adopt(&mut self, blob: &[u8], spread: bool) -> Result<usize, CollectError>;

    /// What crossed between host and device, and how often the host waited, beside what
    /// the collector's [`Queue`](super::Queue) counts.
    fn traffic(&self) -> Traffic;
}
