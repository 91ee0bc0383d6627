//! Other files of the program, read as configurations are: unknown keys and wrong kinds
//! all at once, every mistake with its place.

use super::error::{ConfigErrors, Diagnostic};
use super::source::{self, Node, Sources};
use super::{Places, Rules, locate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads `path` as a `T`. `exemplar` has every key set once, as [`Rules`] take it.
///
/// # Errors
/// Every mistake that one pass can find, each with its place.
pub fn parse_as<T: DeserializeOwned + Serialize>(
    path: &Path,
    exemplar: &T,
) -> Result<(T, Places), ConfigErrors> {
    let text = source::read(path)?;
    let mut sources = Sources::default();
    sources.add(&path.display().to_string(), &text, false);
    let root = sources.parse(0)?;
    let wrong = Rules::of(exemplar).check(&root, &sources);
    if !wrong.is_empty() {
        return Err(ConfigErrors::sorted(wrong));
    }
    let value = deserialize(&root, &sources, path)?;
    Ok((value, Places::new(root, sources)))
}

/// An error of serde with its place.
pub(super) fn deserialize<T: DeserializeOwned>(
    root: &Node,
    sources: &Sources,
    path: &Path,
) -> Result<T, Diagnostic> {
    T::deserialize(root).map_err(|e| match &e.origin {
        Some(origin) => {
            let message = match locate::path_of(root, origin) {
                Some(key) => format!("{key}: {}", e.message),
                None => e.message,
            };
            Diagnostic::at(sources, origin, message)
        }
        None => Diagnostic::plain(format!("{}: {}", path.display(), e.message)),
    })
}
