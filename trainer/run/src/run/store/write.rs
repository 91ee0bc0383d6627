//! Folders and whole files in a run's folder.

use crate::run::error::RunError;
use ostler_sim::files;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes a file so that after a crash the old or the new one is there, whole.
///
/// # Errors
/// The system's; the temporary file is removed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_atomically_with(path, |file| file.write_all(bytes))
}

pub(super) fn write_atomically_with(
    path: &Path,
    put: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    ostler_learn::drill::before_write()?;
    files::replace_with(path, files::SHARED, put)
}

/// Writes what is written often and changed never, unless it is there.
pub(super) fn write_if_other(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    if files::read(path, bytes.len() as u64).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    write_atomically(path, bytes).map_err(RunError::file("write", path))
}

pub(super) fn make(path: &Path) -> Result<(), RunError> {
    std::fs::create_dir_all(path).map_err(RunError::file("make the folder", path))
}
