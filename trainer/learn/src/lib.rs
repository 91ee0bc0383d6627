//! Configurations and learners.
//!
//! Reading order: [`config`] (a run's TOML) -> [`learner`] (what a learner is, its registry, each
//! in a folder) -> [`environments`] (those that are no robot's) -> [`drill`] (faults on purpose).

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod config;
pub mod drill;
pub mod environments;
pub mod learner;

#[cfg(test)]
#[path = "../../../tests/support/need.rs"]
mod need;
