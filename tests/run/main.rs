//! A run and what may happen to it, by the real program: faults, memory, disks, signals, devices,
//! logs.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod allocator;
mod back_off;
mod bad_luck;
#[path = "../common/mod.rs"]
mod common;
mod devices;
mod disk;
mod faults;
mod foreign_runs;
mod logs;
mod long;
mod memory;
mod out_of_memory;
mod pretend_gpu;
mod processes;
mod ptx;
mod supervise;
#[path = "../support/mod.rs"]
mod support;
mod tensorboard;
mod wandb;
