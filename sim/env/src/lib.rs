//! Tasks written as data, and batches of environments.
//!
//! Reading order: [`config`] (the tables of a run's TOML, of `ostler-lang`) -> [`task`] (what they
//! mean for a robot: programs and tables) -> [`mod@env`] (N environments: actions in, observations
//! and rewards out).

#![cfg_attr(not(test), warn(unreachable_pub))]

mod demonstrations;
pub mod env;
mod reflection;
mod spaces;
pub mod task;

pub use ostler_lang::config;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod test_support;

#[cfg(test)]
use ostler_lang::expr;
