//! Rollouts of every collector, and the replay buffer: each number where it belongs, whatever
//! threads, disks and processes do.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod allocations;
mod asynchronous;
mod common;
mod device;
mod keep;
mod replay;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod sync_collector;

/// Counts for the tests of what allocates nothing.
#[global_allocator]
static ALLOCATOR: support::count::Counting = support::count::Counting;
