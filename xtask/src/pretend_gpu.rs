//! The pretend GPU of `tests/pretend`, for programs that are started by hand.

use crate::place::Place;
use crate::pretend::Pretend;
use crate::{SetupError, libtorch};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Builds it below `parent` and writes `variables.json` there, the variables of a process that
/// is to see it.
///
/// # Errors
/// There is no C++ compiler, or something cannot be written.
pub fn build(place: &Place, parent: &Path) -> Result<(Pretend, PathBuf), SetupError> {
    libtorch::ensure(place)?;
    std::fs::create_dir_all(parent).map_err(SetupError::io("make", parent))?;
    let torch = place.root.join(".libtorch/torch");
    let pretend = Pretend::build(parent, &place.root.join("tests/pretend"), &torch);
    let pretend = pretend.map_err(SetupError::Usage)?;
    let file = parent.join("variables.json");
    let row = |(name, value): &(&str, OsString)| format!("  {name:?}: {value:?}");
    let rows: Vec<String> = pretend.variables().iter().map(row).collect();
    let text = format!("{{\n{}\n}}\n", rows.join(",\n"));
    std::fs::write(&file, text).map_err(SetupError::io("write", &file))?;
    Ok((pretend, file))
}
