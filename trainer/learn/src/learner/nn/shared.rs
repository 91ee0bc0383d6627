//! What Rust and the learner's kernels share, as the headers in `trainer/kernels` declare it:
//! structs, a table of functions and numbers, read from there by `sim/build/mirrors.rs`.
#![allow(dead_code, unreachable_pub, reason = "Rust does not need every number")]

use ostler_sim::device::Address;

include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));
