//! Finds the Python in which the referees (MuJoCo, Gymnasium, numpy, TensorBoard, onnxruntime) are
//! installed. Shared by the tests of several packages through `#[path]`, beside
//! `need.rs`.
//!
//! `cargo xtask test` builds that environment from `tests/referee/requirements.txt`
//! and names its interpreter in `OSTLER_REFEREE_PYTHON`.

use super::need::Need;
use std::path::PathBuf;

/// The referees' interpreter, or `None` after saying that the calling test is skipped.
///
/// # Panics
/// There is none, and `OSTLER_REQUIRE` names the referees.
pub fn referee_python() -> Option<PathBuf> {
    Need::Referee.or_skip(find())
}

/// The folder with the peers' own code (`tests/referee/peers.txt`), or `None` after saying that
/// the calling test is skipped.
///
/// # Panics
/// There is none, and `OSTLER_REQUIRE` names the peers.
pub fn peers() -> Option<PathBuf> {
    let found = match std::env::var_os("OSTLER_PEERS").map(PathBuf::from) {
        Some(path) if path.is_dir() => Ok(path),
        Some(path) => Err(format!("OSTLER_PEERS={} is no folder", path.display())),
        None => Err("OSTLER_PEERS is not set".to_owned()),
    };
    Need::Peers.or_skip(found)
}

/// The referees' interpreter, or why there is none.
pub fn find() -> Result<PathBuf, String> {
    match std::env::var_os("OSTLER_REFEREE_PYTHON").map(PathBuf::from) {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(format!("OSTLER_REFEREE_PYTHON={} is no file", path.display())),
        None => Err("OSTLER_REFEREE_PYTHON is not set".to_owned()),
    }
}
