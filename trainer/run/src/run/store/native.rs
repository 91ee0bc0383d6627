//! Copies of the headers of native functions in a run's folder: the texts that were read and
//! compiled, whatever became of the files since.

use super::write::{make, write_if_other};
use crate::run::error::RunError;
use ostler_sim::config::TaskConfig;
use std::path::Path;
use std::sync::Arc;

/// Folder of the copies in a run's.
pub(super) const FOLDER: &str = "native";

/// Writes the headers into `run`, a folder for each, and names the copies in `task`.
///
/// # Errors
/// A copy cannot be written.
pub(super) fn copy(run: &Path, task: &mut TaskConfig) -> Result<(), RunError> {
    let headers = &task.native_code.headers;
    for (term, own) in task.native.iter_mut().zip(headers) {
        // Terms of one header share its copy.
        let first = headers.iter().position(|h| Arc::ptr_eq(h, own));
        let folder = Path::new(FOLDER).join(first.unwrap_or(0).to_string());
        for (name, text) in &own.files {
            let to = run.join(&folder).join(name);
            if let Some(parent) = to.parent() {
                make(parent)?;
            }
            write_if_other(&to, text.as_bytes())?;
        }
        if let Some((name, _)) = own.files.first() {
            term.file = folder.join(name).to_string_lossy().into_owned();
        }
    }
    Ok(())
}
