//! The machine: libtorch and its devices ([`torch`]), and a watch over memory ([`memory`]).

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod memory;
pub mod torch;
