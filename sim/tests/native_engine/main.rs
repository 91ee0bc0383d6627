//! Guarantees of the native engine for every robot: bits that depend on the world alone, broken
//! worlds that break nobody else, snapshots, a specialised kernel that means the same as the
//! generic one.

#![allow(clippy::unwrap_used)]

mod common;
mod kernels;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod worlds;
