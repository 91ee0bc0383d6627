//! Other files of the program, read as configurations are: unknown keys and wrong kinds
//! all at once, every mistake with its place.

use super::error::{ConfigErrors, Diagnostic};
use super::source::{self, Node, Sources};
use super::{Places, Rules};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads `path` as a `T`.
///
/// # Errors
/// Every mistake that one pass can find, each with its place.
pub fn parse_as<T: DeserializeOwned + JsonSchema>(
    path: &Path,
) -> Result<(T, Places), ConfigErrors> {
    let text = source::read(path)?;
    let mut sources = Sources::default();
    sources.add(&path.display().to_string(), &text, false);
    let root = sources.parse(0)?;
    let wrong = Rules::of::<T>().check_whole(&root, &sources);
    if !wrong.is_empty() {
        return Err(ConfigErrors::sorted(wrong));
    }
    let value = deserialize(&root, path)?;
    Ok((value, Places::new(root, sources)))
}

/// The values of a tree that has been checked.
///
/// # Errors
/// The type refuses what its own schema allows.
pub(super) fn deserialize<T: DeserializeOwned>(root: &Node, path: &Path) -> Result<T, Diagnostic> {
    T::deserialize(root.plain())
        .map_err(|e| Diagnostic::plain(format!("{}: {}", path.display(), e.message())))
}
