//! The replay buffer: transitions that off-policy learners draw from.
//!
//! A [`ReplayBuffer`] is a storage (where transitions lie), a sampler (which of them are
//! drawn), and transforms (changes of a batch). Reading order:
//! [`ReplayBuffer::extend`] -> `core` -> `window`, `store`;
//! [`ReplayBuffer::next`] -> `draw` -> `gather` -> [`Batch`].
//!
//! A transition is a record of 32-bit words, all its fields side by side: a draw reads one
//! run of memory per transition, not one per field. Observations may take half a word each.

mod batch;
mod buffer;
mod checksum;
mod config;
mod core;
mod device;
mod disk;
mod draw;
mod error;
mod file;
mod fit;
mod format;
mod gather;
mod host;
mod layout;
mod make;
mod open;
mod pin;
mod prefetch;
mod priority;
mod resume;
mod rollout;
mod rows;
mod saved;
mod shared;
mod slot;
mod stages;
mod store;
mod sum_tree;
pub mod transform;
mod window;

pub use batch::Batch;
pub use buffer::{Mark, ReplayBuffer, Setup};
pub use config::{OnFullDisk, ReplayConfig, SamplerKind, StorageKind};
pub use error::ReplayError;
pub use fit::{Places, Room, places};
pub use layout::{Field, FieldKind, Layout, names};
pub use open::FOLDER;
pub use pin::Pinner;
pub use saved::{Restored, Saved};
pub use shared::{Sampler, Writer};
pub use stages::{TransformConfig, TransformKind};
pub use transform::Transform;
