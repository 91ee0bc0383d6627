//! Robots' files and the engine that moves them, beside MuJoCo and by themselves; what of it is
//! compiled for GPUs, and the code that calls their driver.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod collide_referee;
mod cuda;
mod lower_referee;
mod mjcf_cross_check;
mod mjcf_referee;
mod motion_peers;
mod mujoco_worlds;
mod native_engine;
mod native_referee;
mod nvrtc;
mod specialised_kernels;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod terrain_peers;
