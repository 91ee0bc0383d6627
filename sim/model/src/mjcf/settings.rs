//! The settings of each of a model's files.

use super::compiler::{Compiler, Dir};
use super::element::At;
use super::reach::{Candidate, Reach};
use std::path::{Path, PathBuf};

/// The settings of each file: a model's includes share its own, an attached model keeps
/// its own.
#[derive(Default)]
pub(super) struct Settings {
    models: Vec<(Compiler, Reach)>,
    /// Each file's model, and the folder it lies in.
    of_file: Vec<(usize, PathBuf)>,
}

impl Settings {
    /// Gives the files of a model, those read since the last call, its settings; `files`
    /// are all that were read.
    pub(crate) fn add(&mut self, files: &[PathBuf], compiler: Compiler, reach: Reach) {
        let model = self.models.len();
        self.models.push((compiler, reach));
        for file in files.iter().skip(self.of_file.len()) {
            let folder = file.parent().unwrap_or(Path::new(""));
            self.of_file.push((model, folder.to_path_buf()));
        }
    }

    /// Impossible moments of inertia become their mean in all files, whatever these say.
    pub(crate) fn balance_inertia(&mut self) {
        for (compiler, _) in &mut self.models {
            compiler.balance_inertia = true;
            compiler.balance_all = true;
        }
    }

    /// Settings for the element at `at`.
    pub(crate) fn of(&self, at: At) -> &Compiler {
        &self.models[self.of_file[at.file()].0].0
    }

    /// Where files lie that are named at `at`.
    pub(crate) fn reach(&self, at: At) -> &Reach {
        &self.models[self.of_file[at.file()].0].1
    }

    /// Where the file `name`, which stands at `at`, may be.
    pub(crate) fn candidates(&self, at: At, dir: Dir, name: &str) -> Vec<Candidate> {
        let beside = &self.of_file[at.file()].1;
        self.reach(at).candidates(self.of(at), beside, dir, name)
    }

    /// The file `name`, which stands at `at`; the first place if it is nowhere.
    ///
    /// # Errors
    /// It is out of reach.
    pub(crate) fn file(&self, at: At, dir: Dir, name: &str) -> Result<PathBuf, String> {
        let candidates = self.candidates(at, dir, name);
        Ok(self.reach(at).first(&candidates, name)?.path)
    }
}
