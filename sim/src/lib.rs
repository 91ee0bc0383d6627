//! Robot models, batched physics, and tasks written as data.
//!
//! This crate knows nothing of policies or libtorch. Reading order: [`model::Model`] (the robot)
//! -> [`physics::Physics`] (N copies of it, stepped together) -> [`task`] (its task) ->
//! [`env::BatchEnv`] (the two joined: actions in, observations and rewards out).

pub mod config;
pub mod device;
pub mod env;
pub mod files;
pub(crate) mod kernels;
pub mod math;
pub mod memory;
pub mod model;
pub mod names;
pub mod onnx;
pub mod owner;
pub mod physics;
pub mod process;
pub mod processor;
pub mod python;
pub mod referee;
pub mod rng;
pub mod snapshot;
pub mod state;
pub mod task;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../tests/support/mod.rs"]
mod test_support;
pub mod text;

pub use env::{BatchEnv, EpisodeStats, Groups, StepOut};
pub use model::Model;
pub use physics::{Physics, State};
