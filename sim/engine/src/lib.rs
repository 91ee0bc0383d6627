//! N copies of a robot, stepped together, on processors and GPUs.
//!
//! Reading order: [`physics::Physics`] (what an engine is) -> [`physics::native`] (a model becomes
//! tables, a kernel steps them; kernels are printed and compiled for a robot) -> [`state`] (columns
//! of environments) -> [`phases`] (the entries for a whole control step) -> [`device`] (where
//! memory is and programs run) -> [`referee`] (MuJoCo's answers beside ours).

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod config;
pub mod device;
pub mod kernels;
pub mod phases;
pub mod physics;
pub mod referee;
pub mod state;
pub mod stats;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod test_support;
