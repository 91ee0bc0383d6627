//! The launcher and the developer's tool against fakes of all that they call, and the bundle for
//! machines with a GPU.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod circles;
mod dry_run;
mod gpu_bundle;
mod launcher;
#[path = "../../../tests/support/need.rs"]
mod need;
mod peers;
mod referee;
mod skips;
mod support;
mod unpack;
