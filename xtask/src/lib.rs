//! Set-up without libtorch: what the launcher `train` and the developer's
//! `xtask` share.
//!
//! Reading order: `bin/train.rs` -> [`libtorch::ensure`] -> [`libtorch::fetch`],
//! then [`cargo`].

pub mod cargo;
pub mod checks;
mod counts;
mod error;
pub mod gpu_bundle;
pub mod libtorch;
#[path = "../../tests/support/need.rs"]
mod need;
pub mod place;
pub mod python;
mod reads;
pub mod referee;

pub use counts::Counts;
pub use error::SetupError;
