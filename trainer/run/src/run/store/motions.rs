//! Copies of a reference's files in a run's folder: what was read, whatever became of the files
//! since.

use super::write::{make, write_if_other};
use crate::run::error::RunError;
use ostler_sim::config::TaskConfig;
use std::path::Path;

/// Folder of the copies in a run's.
pub(super) const FOLDER: &str = "motions";

/// Writes the files into `run`, a folder for each term, and names the copies in `task`.
///
/// # Errors
/// A copy cannot be written.
pub(super) fn copy(run: &Path, task: &mut TaskConfig) -> Result<(), RunError> {
    for (t, (term, files)) in task.reference.iter_mut().zip(&task.motion_files).enumerate() {
        let folder = Path::new(FOLDER).join(t.to_string());
        make(&run.join(&folder))?;
        term.files.clear();
        for (place, file) in files.iter().enumerate() {
            // Files of several folders may have one name. A run that goes on has its own copies.
            let name = Path::new(&file.name).file_name().unwrap_or_default().to_string_lossy();
            let first = format!("{place:05}_");
            let name = name.strip_prefix(&first).unwrap_or(&name);
            let copy = folder.join(format!("{first}{name}"));
            write_if_other(&run.join(&copy), &file.bytes)?;
            term.files.push(copy.to_string_lossy().into_owned());
        }
    }
    Ok(())
}
