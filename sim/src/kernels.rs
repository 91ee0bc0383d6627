//! What Rust and the kernels share, as the headers in `sim/kernels` declare it: structs, tables
//! of functions and numbers, read from there by `sim/build/mirrors.rs`.
#![allow(dead_code, reason = "Rust does not need every number")]

use crate::device::Address;
use crate::state::{EpisodeAddresses, StepBufferAddresses, TableAddresses};
use crate::state::{TaskSizes, WorldAddresses};

include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));

const _: () = assert!(size_of::<EnvArgs>() <= crate::device::MAX_ARGUMENTS);
