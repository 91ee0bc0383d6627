//! A run's file, read and checked.

use super::{Config, leave, schema};
use crate::environments::Foreign;
use ostler_sim::Model;
use ostler_sim::config::file::{self, ConfigErrors, Diagnostic, Document, Override, Places};
use ostler_sim::model::looks::Looks;
use ostler_sim::model::mjcf::MjcfError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A configuration as read, checked, with overrides applied.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// The file.
    pub path: PathBuf,
    /// Files that it includes, in the order in which they count.
    pub files: Vec<PathBuf>,
    /// Where the values were written.
    pub places: Places,
    /// `env.num_envs` is "auto": the number in `config` is only there to be replaced.
    pub auto_envs: bool,
    /// Environments in the place of a robot's.
    pub foreign: Option<Arc<Foreign>>,
}

impl Loaded {
    /// The robot's MJCF file.
    pub fn robot(&self) -> PathBuf {
        self.config.task.robot_file(&self.path)
    }

    /// Reads the robot.
    ///
    /// # Errors
    /// Its file, or one that it names, is missing, out of reach or wrong.
    pub fn model(&self) -> Result<Model, MjcfError> {
        self.config.task.model(&self.path)
    }

    /// Reads the robot's looks, and the robot again.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn looks(&self) -> Result<(Model, Looks), MjcfError> {
        self.config.task.looks(&self.path)
    }
}

/// Reads a configuration, applies overrides in order, checks everything that can be
/// checked without the robot.
///
/// # Errors
/// Every mistake that one pass can find, each with its place.
pub fn load(path: &Path, overrides: &[Override]) -> Result<Loaded, ConfigErrors> {
    let text = file::read(path)?;
    parse(&text, path, overrides).map_err(|e| case(&e, path).unwrap_or(e))
}

/// What is said of a case of `ostler regress` in place of these mistakes, if the file is one.
fn case(errors: &ConfigErrors, path: &Path) -> Option<ConfigErrors> {
    let unknown = |key: &str| {
        let message = format!("unknown key \"{key}\"");
        errors.0.iter().any(|mistake| mistake.message == message)
    };
    if !unknown("config") || !unknown("expect") {
        return None;
    }
    let path = path.display();
    let said = format!("{path} is a case of `ostler regress`, and no configuration");
    let help = format!("`ostler regress {path}` trains and judges what its `config` names");
    Some(Diagnostic::plain(said).help(help).into())
}

/// [`load`] for text that was already read; `path` gives the name and the base of
/// relative paths.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, path: &Path, overrides: &[Override]) -> Result<Loaded, ConfigErrors> {
    let document = Document::read(text, path, overrides, schema::rules())?;
    let mut config: Config = document.value()?;
    if config.name.is_empty() {
        config.name =
            path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    }
    // A table of its own in the file; the simulation has it with its task.
    config.task.agents = config.agents.clone();
    let files_read = document.read_files(&mut config.task, leave::leave());
    let (files, auto_envs) = (document.files.clone(), document.auto_envs);
    let places = document.into_places();
    let errors = config.validate();
    if !errors.is_empty() {
        return Err(places.explain_all(&errors));
    }
    files_read.map_err(|e| places.explain(&e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let foreign = Foreign::of(config.gymnasium.as_mut(), config.custom.as_ref(), folder);
    let foreign = foreign.map_err(|e| places.explain(&e))?;
    Ok(Loaded { config, path: path.to_path_buf(), files, places, auto_envs, foreign })
}
