//! Environments of Gymnasium: numbers, faults of Python, whole runs by the program.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod runs;
#[path = "../support/mod.rs"]
mod support;
mod worlds;
