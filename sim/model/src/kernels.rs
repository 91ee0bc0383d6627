//! Kinds of joints and activations, as the headers in `sim/kernels` number them.
#![allow(dead_code, unreachable_pub, reason = "Rust does not need every number")]

include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));
