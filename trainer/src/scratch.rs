//! A folder for the time being.

use std::path::{Path, PathBuf};

/// A new folder in the system's temporary one, which goes with this value.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `what` is part of its name.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn new(what: &str) -> std::io::Result<Self> {
        let name = format!("ostler-{what}-{}", std::process::id());
        for attempt in 0.. {
            let path = std::env::temp_dir().join(format!("{name}-{attempt}"));
            match std::fs::create_dir(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && attempt < 100 => {}
                made => return made.map(|()| Self(path)),
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
