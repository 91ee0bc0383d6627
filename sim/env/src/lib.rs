//! Tasks written as data, and batches of environments.
//!
//! Reading order: [`config`] (the tables of a run's TOML) -> [`task`] (what they mean for a robot:
//! programs and tables) -> [`mod@env`] (N environments: actions in, observations and rewards out).

pub mod config;
pub mod env;
pub mod task;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod test_support;
