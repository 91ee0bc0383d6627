//! Environments whose step is one program, run by the host's stand-in for a device, held
//! against environments on the host.

#![allow(clippy::unwrap_used)]

mod exchange;
mod same;
#[path = "../../../tests/support/mod.rs"]
mod shared;
mod support;
