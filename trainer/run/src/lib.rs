//! A run: its loop, guards and files.
//!
//! Reading order: [`run`] (the loop) -> [`supervise`] (the process that watches it) -> [`forecast`]
//! (how much memory it will take) -> [`log`] -> [`export`] (its policy for others) -> [`stats`].

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod export;
pub mod forecast;
pub mod log;
#[doc(hidden)]
pub mod readers;
pub mod run;
pub mod stats;
pub mod supervise;

/// What tests hold that set, or hang on, the precision of products, which is the process's.
#[cfg(test)]
static PRECISION: std::sync::Mutex<()> = std::sync::Mutex::new(());
