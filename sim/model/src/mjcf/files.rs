//! Files that a model names: MuJoCo reads them all, so that a run keeps them all.

use super::compiler::Dir;
use super::element::{At, Element};
use super::reach::By;
use super::settings::Settings;
use std::path::{Path, PathBuf};

/// Attributes of a texture that name files.
pub(super) const TEXTURE: [&str; 7] =
    ["file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback"];

/// Endings of files that a robot may have outside of the folder that was named for it.
/// A file of another kind is not carried away from where it lies because a model names it.
const ASSETS: [&str; 8] = ["stl", "obj", "msh", "dae", "ply", "png", "ktx", "skn"];

/// Files that `<asset>` of `root` names and that are there.
pub(super) fn named(root: &Element, settings: &Settings) -> Vec<PathBuf> {
    let assets = root.children_named("asset").flat_map(|a| &a.children);
    let mut found = Vec::new();
    for e in assets {
        let (dir, attrs): (Dir, &[&str]) = match e.name.as_str() {
            "mesh" | "hfield" | "skin" => (Dir::Mesh, &["file"]),
            "texture" => (Dir::Texture, &TEXTURE),
            _ => continue,
        };
        for name in attrs.iter().filter_map(|a| e.text(a)) {
            found.extend(there(settings, e.at, dir, name));
        }
    }
    found
}

/// The file that `name` at `at` means, and what else of the model's folders MuJoCo may take for
/// it: that is its own affair.
fn there(settings: &Settings, at: At, dir: Dir, name: &str) -> Vec<PathBuf> {
    let reach = settings.reach(at);
    let asset = |path: &Path| {
        let ending = path.extension().and_then(|e| e.to_str());
        ending.is_some_and(|e| ASSETS.contains(&e.to_ascii_lowercase().as_str()))
    };
    let candidates = settings.candidates(at, dir, name);
    let meant = reach.first(&candidates, name).ok().map(|c| c.path);
    let others = candidates.into_iter().filter(|c| c.by == By::Name);
    let others = others.map(|c| c.path).filter(|p| asset(p) || reach.has(p));
    let mut found: Vec<PathBuf> = others.chain(meant).filter(|p| p.is_file()).collect();
    found.dedup();
    found
}
