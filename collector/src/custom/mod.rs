//! Environments that are written in Rust, in the place of a robot and a task.
//!
//! An author says how one environment starts and steps: [`CustomEnv`]. [`CustomEnvs`] makes a batch
//! of them, with all that learners rely on: time-outs apart from ends, new episodes in
//! the same step, the last observation of an episode that was cut short, environments whose
//! numbers are not finite masked and counted, statistics, snapshots. It is an
//! [`Environments`](crate::env::Environments), so every collector and learner takes it.
//! `examples/custom_env.rs` trains one.
//!
//! ```
//! use ostler_collector::custom::{CustomEnv, CustomEnvs, Draws, Outcome, Sizes};
//! use ostler_sim::env::ActionSpace;
//!
//! /// A cart on a line that is to stand at 0; the action is its velocity.
//! struct Line(f32);
//!
//! impl CustomEnv for Line {
//!     fn reset(&mut self, draws: &mut Draws, obs: &mut [f32]) {
//!         self.0 = draws.uniform(-1.0, 1.0);
//!         obs[0] = self.0;
//!     }
//!     fn step(&mut self, action: &[f32], _: &mut Draws, obs: &mut [f32]) -> Outcome {
//!         self.0 += 0.1 * action[0].clamp(-1.0, 1.0);
//!         obs[0] = self.0;
//!         Outcome { reward: -self.0.abs(), terminated: self.0.abs() > 2.0 }
//!     }
//!     fn save(&self, out: &mut Vec<u8>) {
//!         out.extend(self.0.to_le_bytes());
//!     }
//!     fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
//!         let bytes = bytes.try_into().map_err(|_| "four bytes expected")?;
//!         self.0 = f32::from_le_bytes(bytes);
//!         Ok(())
//!     }
//! }
//!
//! let sizes = Sizes { obs: 1, action: ActionSpace::Continuous(1), step_dt: 0.1, episode_steps: 50 };
//! let envs = CustomEnvs::new(sizes, (0..8).map(|_| Line(0.0)), 1)?;
//! # Ok::<(), ostler_sim::memory::MemoryError>(())
//! ```

mod batch;
mod draws;
pub(crate) mod ledger;
#[cfg(test)]
mod tests;

pub use batch::CustomEnvs;
pub(crate) use batch::{OF, join};
pub use draws::Draws;

use ostler_sim::env::ActionSpace;

/// One environment.
pub trait CustomEnv {
    /// Begins an episode; writes its first observation `[O]`.
    fn reset(&mut self, draws: &mut Draws, obs: &mut [f32]);

    /// One control step. `action` `[A]`: unbounded numbers, which the environment clips, or the
    /// index of a choice as one float; always finite. Writes the observation after the step
    /// `[O]`. An episode that lasts `episode_steps` is ended by the batch.
    fn step(&mut self, action: &[f32], draws: &mut Draws, obs: &mut [f32]) -> Outcome;

    /// Appends all that a later step depends on.
    fn save(&self, out: &mut Vec<u8>);

    /// Goes back to what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// These bytes are none of its own, with the reason.
    fn load(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Reward of the step.
    pub reward: f32,
    /// The task ended: the value of what follows is 0.
    pub terminated: bool,
}

/// Sizes of all environments of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Numbers of an observation, `O`, 1 or more.
    pub obs: usize,
    /// Actions.
    pub action: ActionSpace,
    /// Control step (s), for logs.
    pub step_dt: f64,
    /// Control steps until the time-out, 1 or more.
    pub episode_steps: u32,
}
