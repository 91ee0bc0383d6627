//! Finds the Python in which the referees (MuJoCo, Gymnasium, numpy, TensorBoard)
//! are installed. Shared by the tests of several packages through `#[path]`.
//!
//! `cargo xtask test` builds that environment from `tests/referee/requirements.txt`
//! and names its interpreter in `OSTLER_REFEREE_PYTHON`.

use std::path::PathBuf;

/// The referees' interpreter, or `None` after saying on standard error that the
/// calling test is skipped.
///
/// # Panics
/// Where `OSTLER_REQUIRE_REFEREE=1` and there is no referee: a check that must
/// not be skipped may not pass by being skipped.
pub fn referee_python() -> Option<PathBuf> {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let why = match std::env::var_os("OSTLER_REFEREE_PYTHON") {
        Some(path) if PathBuf::from(&path).is_file() => return Some(PathBuf::from(path)),
        Some(path) => format!(
            "OSTLER_REFEREE_PYTHON={} is no file",
            PathBuf::from(path).display()
        ),
        None => "OSTLER_REFEREE_PYTHON is not set".to_owned(),
    };
    let way_out = "run `cargo xtask test`, which sets the referees up";
    if std::env::var_os("OSTLER_REQUIRE_REFEREE").is_some_and(|v| v == "1") {
        panic!("{test} needs the Python referees, but {why}; {way_out}");
    }
    // Past the test harness's capture: whoever reads the log must see it.
    let line = format!("SKIPPED: {test}: {why}; {way_out}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    None
}
