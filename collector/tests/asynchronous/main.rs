//! Collection in other threads keeps its promises, whatever the threads do.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod pace;
mod robots;
mod same;
mod support;
mod trouble;
