//! Checks of properties that only show over many runs or many hours. A short share of each runs
//! with the other tests; the rest is asked for by name:
//!
//! ```text
//! OSTLER_KILLS=200 cargo test --workspace --test run killed_at_random -- --nocapture
//! cargo test --workspace --test run long::soak -- --ignored --nocapture
//! (or long::learning, long::limit, long::instructions)
//! ```
//!
//! Figures are in docs/robustness.md.

mod instructions;
mod kills;
mod learning;
mod limit;
mod soak;

use crate::common::{ostler, root};
use std::path::PathBuf;

/// A number from the environment, for more than the tests of every day.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// A configuration of the repository.
fn config(name: &str) -> PathBuf {
    root().join(format!("configs/{name}.toml"))
}

/// Ends a process when the test does, whatever becomes of the test.
struct Guarded(std::process::Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
