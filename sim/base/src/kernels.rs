//! Purposes of draws, as `sim/kernels/env/rng.cuh` numbers them.
#![allow(dead_code, unreachable_pub, reason = "Rust does not need every number")]

include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));
