//! Checks that have to hold on a GPU. `OSTLER_GPU_TESTS=cuda:0` runs them there (the bundle of
//! `cargo xtask gpu-bundle` does); without it the host stands in for the GPU, so that the tests
//! themselves are tested, with smaller numbers.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod figures;
mod memory;
mod modes;
mod place;
mod precision;
mod pretend;
mod replay;
mod runtime;
mod same;
mod soak;
mod streams;
#[path = "../support/mod.rs"]
mod support;
