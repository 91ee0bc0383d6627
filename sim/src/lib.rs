//! Robot models, batched physics, and tasks written as data, as one crate.
//!
//! This crate knows nothing of policies or libtorch. It holds nothing of its own; reading order:
//! `ostler-base` (files, memory, random numbers) -> `ostler-model` (the robot: [`Model`]) ->
//! `ostler-engine` (N copies of it, stepped together: [`physics::Physics`]) -> `ostler-env` (its
//! [`task`], and the two joined: [`env::BatchEnv`], actions in, observations and rewards out).
#![warn(missing_docs)]

pub use ostler_base::{
    files, math, memory, names, npz, onnx, owner, process, processor, python, rng, snapshot, text,
};
pub use ostler_engine::{device, referee, state};
pub use ostler_env::{config, env, task};
pub use ostler_model as model;

/// N copies of a model, stepped together.
pub mod physics {
    pub use ostler_engine::physics::*;
    #[cfg(feature = "rapier")]
    pub use ostler_rapier as rapier;
}

pub use env::{BatchEnv, EpisodeStats, Groups, StepOut};
pub use model::Model;
pub use physics::{Physics, State};
