//! From a task to its robot's files.

use crate::config::TaskConfig;
use ostler_model::Model;
use ostler_model::edit::Edits;
use ostler_model::looks::Looks;
use ostler_model::mjcf::{MjcfError, Reading};
use std::path::{Path, PathBuf};

impl TaskConfig {
    /// The robot's file, for the configuration at `path`.
    pub fn robot_file(&self, path: &Path) -> PathBuf {
        path.parent().unwrap_or(Path::new("")).join(&self.robot)
    }

    /// The folder that holds all of the robot's files, if one is named.
    pub fn robot_within(&self, path: &Path) -> Option<PathBuf> {
        let base = path.parent().unwrap_or(Path::new(""));
        self.robot_folder.as_ref().map(|folder| base.join(folder))
    }

    /// Reads the robot, with what the task adds to it.
    ///
    /// # Errors
    /// Its file, or one that it names, is missing, out of reach or wrong.
    pub fn model(&self, path: &Path) -> Result<Model, MjcfError> {
        let (edits, within) = (self.robot_edits()?, self.robot_within(path));
        let reading =
            Reading { within: within.as_deref(), edits: Some(&edits), ..Reading::default() };
        reading.read(&self.robot_file(path)).map(|r| r.0)
    }

    /// Reads the robot's looks, and the robot again.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn looks(&self, path: &Path) -> Result<(Model, Looks), MjcfError> {
        let (edits, within) = (self.robot_edits()?, self.robot_within(path));
        let within = within.as_deref();
        Reading { within, edits: Some(&edits), looks: true, text: None }
            .read(&self.robot_file(path))
    }

    /// What the task adds to the robot's file; its mistakes are found when the configuration
    /// is read.
    fn robot_edits(&self) -> Result<Edits, MjcfError> {
        self.edits().map_err(|e| MjcfError::Invalid { place: e.path, message: e.message })
    }
}
