//! A URDF in which every mesh has a plain name of its own: for MuJoCo, whose reader knows no
//! packages and, up to version 3, takes meshes for one whose files have the same stem.

use super::link::MeshFiles;
use crate::mjcf::element::{Attr, Element};
use crate::mjcf::error::MjcfError;
use crate::mjcf::reach::Reach;
use crate::mjcf::source::{Sources, read_text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A URDF's text, and the files of the meshes in it by their names.
pub type PlainUrdf = (String, BTreeMap<String, PathBuf>);

/// The text of the file `path` with plain names for its meshes, and the file of each of these
/// names; nothing if it is no URDF.
///
/// # Errors
/// It cannot be read.
pub fn plain(path: &Path, within: Option<&Path>) -> Result<Option<PlainUrdf>, MjcfError> {
    let text =
        read_text(path).map_err(|source| MjcfError::Read { path: path.to_path_buf(), source })?;
    let (mut sources, reach) = (Sources::default(), Reach::new(path, within));
    let root = sources.parse(path, text, &reach)?;
    if root.name != "robot" {
        return Ok(None);
    }
    let mut settings = Element::made("mujoco", root.at);
    let own = root.children_named("mujoco").flat_map(|m| &m.children);
    settings.children.extend(own.cloned());
    let mut plain = Plain {
        files: MeshFiles::new(&settings, &reach),
        names: BTreeMap::new(),
        changes: Vec::new(),
    };
    for e in settings.children_named("compiler") {
        for attr in ["meshdir", "assetdir"].iter().filter_map(|a| e.attr(a)) {
            plain.changes.push((attr, String::new()));
        }
    }
    for link in root.children_named("link") {
        for shape in &link.children {
            plain.meshes(shape);
        }
    }
    let Plain { names, changes, .. } = plain;
    let text = sources.with_values(changes);
    let files = names.into_iter().map(|((path, _), name)| (name, path));
    Ok(Some((text, files.collect())))
}

/// The text of the MJCF file `path`, whose files lie in its folder or `within`, with others for the
/// files that it attaches: what `other` gives for their paths. Nothing if it attaches none, or
/// `other` gives nothing.
///
/// # Errors
/// It cannot be read; `other`'s.
pub fn attached<E: From<MjcfError>>(
    path: &Path,
    within: Option<&Path>,
    mut other: impl FnMut(&Path) -> Result<Option<PathBuf>, E>,
) -> Result<Option<String>, E> {
    let text =
        read_text(path).map_err(|source| MjcfError::Read { path: path.to_path_buf(), source })?;
    let mut sources = Sources::default();
    let root = sources.parse(path, text, &Reach::new(path, within))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut changes = Vec::new();
    for model in root.children_named("asset").flat_map(|a| a.children_named("model")) {
        // Included files stay as they are.
        let own = model.attr("file").filter(|attr| attr.value_at(0).file() == 0);
        let Some(attr) = own else { continue };
        let file = folder.join(&attr.value);
        // What is no file here, MuJoCo says.
        if let Some(other) = if file.is_file() { other(&file)? } else { None } {
            changes.push((attr, other.display().to_string()));
        }
    }
    Ok((!changes.is_empty()).then(|| sources.with_values(changes)))
}

struct Plain<'a> {
    files: MeshFiles<'a>,
    /// Names by file and scale.
    names: BTreeMap<(PathBuf, String), String>,
    changes: Vec<(&'a Attr, String)>,
}

impl<'a> Plain<'a> {
    fn meshes(&mut self, e: &'a Element) {
        for mesh in e.children_named("geometry").flat_map(|g| &g.children) {
            let Some(attr) = mesh.attr("filename").filter(|_| mesh.name == "mesh") else {
                continue;
            };
            // MuJoCo says what it cannot read.
            let Ok(found) = self.files.find(&attr.value) else {
                continue;
            };
            let ending = found.path.extension().and_then(|e| e.to_str());
            let plain = |e: &&str| e.bytes().all(|b| b.is_ascii_alphanumeric());
            let Some(ending) = ending.filter(plain).filter(|_| found.path.is_file()) else {
                continue;
            };
            // MuJoCo knows obj and OBJ, but not Obj.
            let ending = ending.to_ascii_lowercase();
            let name = format!("mesh{}_.{ending}", self.names.len());
            let scale = mesh.text("scale").unwrap_or_default().to_string();
            let file = found.path.canonicalize().unwrap_or(found.path);
            let name = self.names.entry((file, scale)).or_insert(name);
            self.changes.push((attr, name.clone()));
        }
    }
}
