//! The machine: libtorch and its devices ([`torch`]), and a watch over memory ([`memory`]).

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod memory;
pub mod torch;

#[cfg(test)]
#[path = "../../../tests/support/alone.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared by the tests of all packages")]
mod alone;
#[cfg(test)]
#[path = "../../../tests/support/need.rs"]
mod need;
