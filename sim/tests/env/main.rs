//! Tasks and batches of environments, on processors and as a device would run them: the numbers,
//! the bits, the mistakes that are refused.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod activations;
mod agents;
mod batch_env;
mod configs;
mod events;
mod mirror;
mod on_device;
mod one_sided;
mod out_of_memory;
mod parts;
#[cfg(feature = "rapier")]
mod physics_allocations;
mod recommended;
mod reference;
mod state;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod task_robot;
mod terrain;

/// Counts for the tests of what allocates nothing.
#[global_allocator]
static ALLOCATOR: support::count::Counting = support::count::Counting;
