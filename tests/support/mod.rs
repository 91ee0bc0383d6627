//! Code that tests of several packages share, through `#[path]`.

#![allow(dead_code, reason = "no program uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

pub mod alone;
pub mod count;
pub mod disk;
pub mod hostile;
pub mod meshes;
pub mod need;
pub mod nvrtc;
pub mod page;
pub mod pretend;
pub mod pretended;
pub mod referee;
pub mod script;
pub mod share;
