//! A rollout on a device: the numbers, states and bytes of the collector on the host. The
//! device is the host here, which the code does not know of.

#![allow(clippy::disallowed_methods)]

mod bridge;
mod kernel;
mod support;
