//! What the native engine promises whatever the robot: bits that depend on the world
//! alone, broken worlds that break nobody else, snapshots, a robot's own kernel that
//! means the same as the generic one.

#![allow(clippy::unwrap_used)]

mod common;
mod kernels;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod worlds;
