//! TOML files of configurations: text to a tree whose every value knows its place, and from
//! there to plain data, with every mistake shown where it stands.
//!
//! Reading order: [`Document::read`] -> `source` (text to a tree with places) -> `include` (other
//! files under it) -> `profile`, `overrides` (`--set`) -> `walk` (unknown keys, values that a key does not
//! take, missing keys: all at once, by [`Rules`], whose `keys` come from the types) ->
//! [`Document::value`] (serde). [`Places`] find the line of an error
//! about a path. [`Simulation`] is what a simulation takes from a run's file.

mod error;
mod foreign;
mod include;
mod keys;
mod locate;
mod overrides;
mod places;
mod profile;
mod robot;
mod simulation;
mod source;
mod typed;
mod walk;

pub use error::{ConfigErrors, Diagnostic};
pub use foreign::{Foreign, NAMES, recognise};
pub use keys::{Keys, plain};
pub use overrides::Override;
pub use places::Places;
pub use simulation::{ELSEWHERE, LoadedSimulation, Simulation, load_simulation};
pub use source::read;
pub use typed::parse_as;
pub use walk::Rules;

use super::{ConfigError, Leave, TaskConfig};
use serde::de::DeserializeOwned;
use source::{Node, Sources, Value};
use std::path::{Path, PathBuf};

/// A configuration's text, with its files and overrides applied and its keys checked.
#[derive(Debug, Clone)]
pub struct Document {
    root: Node,
    sources: Sources,
    path: PathBuf,
    /// Files that it includes, in the order in which they count.
    pub files: Vec<PathBuf>,
    /// `env.num_envs` is "auto": the number in the values is only there to be replaced.
    pub auto_envs: bool,
}

impl Document {
    /// Reads `text`, that of the file `path`, which gives the name and the base of relative
    /// paths; applies `overrides` in order.
    ///
    /// # Errors
    /// Every unknown key and every value of a wrong kind, each with its place; a file cannot be
    /// read or is no TOML.
    pub fn read(
        text: &str,
        path: &Path,
        overrides: &[Override],
        rules: &Rules,
    ) -> Result<Self, ConfigErrors> {
        let mut sources = Sources::default();
        sources.add(&path.display().to_string(), text, false);
        let mut root = sources.parse(0)?;
        let files = include::expand(&mut root, &mut sources, path)?;
        let mut wrong = Vec::new();
        let overrides = profile::apply(&mut root, &mut sources, overrides, rules, &mut wrong);
        include::drop_disabled(&mut root);
        for o in &overrides {
            if let Err(d) = overrides::apply(&mut root, &mut sources, o) {
                wrong.push(d);
            }
        }
        let auto_envs = take_auto_envs(&mut root);
        wrong.extend(rules.check_whole(&root, &sources));
        if !wrong.is_empty() {
            return Err(ConfigErrors::sorted(wrong));
        }
        if let Value::Table(entries) = &mut root.value {
            let elsewhere = rules.others();
            entries.retain(|e| !elsewhere.contains(&e.key.as_str()));
        }
        Ok(Self { root, sources, path: path.to_path_buf(), files, auto_envs })
    }

    /// Its values.
    ///
    /// # Errors
    /// The type refuses what its own schema allows.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Diagnostic> {
        typed::deserialize(&self.root, &self.path)
    }

    /// Where its values were written.
    pub fn into_places(self) -> Places {
        Places::new(self.root, self.sources)
    }

    /// Reads the headers of native functions, which lie beside one of the files or below it, and
    /// the files of a terrain and of motions.
    ///
    /// # Errors
    /// One is missing or too large; a header lies elsewhere or includes what it cannot have.
    pub fn read_files(&self, task: &mut TaskConfig, leave: Leave) -> Result<(), ConfigError> {
        let folder = |file: &PathBuf| file.parent().unwrap_or(Path::new("")).to_path_buf();
        super::read_tiles(task, &folder(&self.path))?;
        super::read_motions(task, &folder(&self.path))?;
        if task.native.is_empty() {
            return Ok(());
        }
        let files = std::iter::once(&self.path).chain(&self.files);
        let within: Vec<PathBuf> = files.map(folder).collect();
        super::read_headers(task, &folder(&self.path), &within, leave)
    }
}

/// Stands for `env.num_envs = "auto"` until the number is known: large enough for any
/// number of minibatches that makes sense.
const ENVS_TO_BE_KNOWN: i64 = 4096;

/// Puts a number where `env.num_envs` is "auto"; returns whether it was.
fn take_auto_envs(root: &mut Node) -> bool {
    let Value::Table(tables) = &mut root.value else {
        return false;
    };
    let env = tables.iter_mut().find(|e| e.key == "env");
    let Some(Value::Table(keys)) = env.map(|e| &mut e.node.value) else {
        return false;
    };
    let Some(entry) = keys.iter_mut().find(|e| e.key == "num_envs") else {
        return false;
    };
    let auto = matches!(&entry.node.value, Value::Str(s) if s == "auto");
    if auto {
        entry.node.value = Value::Int(ENVS_TO_BE_KNOWN);
    }
    auto
}
