//! What a task is written in.
//!
//! Reading order: [`config`] (the tables of a run's TOML as plain data; `config::file` reads them
//! and shows every mistake in its line) -> [`expr`] (expressions with units: text -> checked
//! program -> values of a block of environments) -> [`draw`] (distributions, for all that is
//! drawn).

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod config;
pub mod draw;
pub mod expr;
mod number;

pub use draw::{Distribution, DrawConfig};
pub use number::{clip_range, exact, number, open, range};
