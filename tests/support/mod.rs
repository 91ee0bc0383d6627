//! What tests of several packages share, through `#[path]`.

#![allow(dead_code, reason = "no program uses all of it")]

pub mod disk;
pub mod need;
pub mod nvrtc;
pub mod referee;
pub mod script;
