//! Guarantees of the native engine for every robot: bits that depend on the world alone, broken
//! worlds that break nobody else, snapshots, a specialised kernel that means the same as the
//! generic one.

mod common;
mod kernels;
mod worlds;
