//! Copies of a terrain's files in a run's folder: what was read, whatever became of the files
//! since.

use super::write::{make, write_if_other};
use crate::run::error::RunError;
use ostler_sim::config::TaskConfig;
use std::path::Path;

/// Folder of the copies in a run's.
pub(super) const FOLDER: &str = "terrain";

/// Writes the files into `run`, a folder for each kind of tiles, and names the copies in `task`.
///
/// # Errors
/// A copy cannot be written.
pub(super) fn copy(run: &Path, task: &mut TaskConfig) -> Result<(), RunError> {
    let kinds = task.terrain.iter_mut().flat_map(|plan| &mut plan.kinds);
    for (place, kind) in kinds.enumerate() {
        let own = kind.file.as_ref().and_then(|name| Some((name, task.tile_files.get(name)?)));
        let Some((name, bytes)) = own else { continue };
        let folder = Path::new(FOLDER).join(place.to_string());
        let copy = folder.join(Path::new(name).file_name().unwrap_or(name.as_ref()));
        make(&run.join(&folder))?;
        write_if_other(&run.join(&copy), bytes)?;
        kind.file = Some(copy.to_string_lossy().into_owned());
    }
    Ok(())
}
