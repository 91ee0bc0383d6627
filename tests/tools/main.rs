//! All that is not a training: configurations and their mistakes, pages, `play`, `bench`, `export`,
//! `regress`, damaged files, the documentation and the workflows.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod config_errors;
mod configuration;
mod export;
#[cfg(feature = "rapier")]
mod fuzz;
mod motions;
mod pages;
mod physics_tools;
mod play_eval;
mod regress;
#[path = "../support/mod.rs"]
mod support;
mod view;
mod workflows;
