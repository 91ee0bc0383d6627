//! Replay memory: what off-policy learners remember of the past.
//!
//! A [`ReplayBuffer`] is a storage (where transitions lie), a sampler (which of them are
//! drawn), and transforms (what becomes of a batch). Reading order:
//! [`ReplayBuffer::extend`] -> [`core`] -> [`window`], [`store`];
//! [`ReplayBuffer::next`] -> [`draw`] -> [`gather`] -> [`Batch`].
//!
//! A transition is a record of 32-bit words, all its fields side by side: a draw reads one
//! run of memory per transition, not one per field.

#![allow(dead_code, reason = "the file follows")]

mod batch;
mod buffer;
mod config;
mod core;
mod draw;
mod error;
mod fit;
mod gather;
mod host;
mod layout;
mod rollout;
mod slot;
mod store;
mod window;

pub use batch::Batch;
pub use buffer::{Mark, ReplayBuffer, Setup};
pub use config::{OnFullDisk, ReplayConfig, SamplerKind, StorageKind};
pub use error::ReplayError;
pub use fit::Room;
pub use layout::{Field, FieldKind, Layout, names};
