//! Set-up without libtorch: what the launcher `train` and the developer's
//! `xtask` share.
//!
//! Reading order: `bin/train.rs` -> [`libtorch::ensure`] -> [`libtorch::fetch`],
//! then [`cargo`].

pub mod cargo;
pub mod changed;
pub mod checks;
mod copy;
mod counts;
pub mod dist;
mod error;
pub mod gpu_bundle;
mod json;
pub mod libtorch;
mod meaning;
pub mod mutants;
#[path = "../../tests/support/need.rs"]
mod need;
// The same rule for all code that is loaded; the crate it belongs to is too large here.
#[path = "../../sim/base/src/owner.rs"]
pub mod owner;
pub mod parts;
pub mod peers;
pub mod place;
#[path = "../../tests/support/pretend.rs"]
pub mod pretend;
pub mod pretend_gpu;
#[path = "../../sim/base/src/processor.rs"]
pub mod processor;
pub mod proofs;
pub mod python;
mod reads;
pub mod recipes;
pub mod referee;
#[path = "../../tests/support/share.rs"]
mod share;
pub mod unused;

pub use counts::Counts;
pub use error::SetupError;
