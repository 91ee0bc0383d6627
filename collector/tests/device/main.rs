//! A rollout on a device: the numbers, states and bytes of the collector on the host. The
//! device is the host here, which the code does not know of.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod bridge;
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod support;
