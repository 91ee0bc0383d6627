//! What every crate of the simulation stands on: files, memory, random numbers, names.

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod boxes;
mod error;
pub mod files;
mod kernels;
pub mod math;
pub mod memory;
pub mod names;
pub mod npz;
pub mod onnx;
pub mod owner;
pub mod process;
pub mod processor;
pub mod python;
pub mod rng;
pub mod snapshot;
pub mod text;

pub use error::ConfigError;
