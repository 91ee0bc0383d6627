//! Checks of properties that only show over many runs or many hours. A short share of each runs
//! with the other tests; the rest is asked for by name:
//!
//! ```text
//! OSTLER_KILLS=200 cargo test --test long random -- --nocapture
//! cargo test --test long -- --ignored --nocapture [soak|learning|limit|instructions]
//! ```
//!
//! Figures are in docs/robustness.md.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod instructions;
mod kills;
mod learning;
mod limit;
mod soak;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A number from the environment, for more than the tests of every day.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// A configuration of the repository.
fn config(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/{name}.toml"))
}

/// `ostler ARGS`, wherever.
fn ostler() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ostler"))
}

/// Ends a process when the test does, whatever becomes of the test.
struct Guarded(std::process::Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
