//! `package://NAME/FILE` and `model://NAME/FILE`: files of ROS' packages.
//!
//! ROS knows a package by the `<name>` in its `package.xml`, and installs it in a folder of that
//! name; here it is looked for from the robot's folder upwards, as far as files may lie.

use super::reach::{By, Candidate, Reach, joined};
use ostler_base::files;
use std::path::{Path, PathBuf};

/// The file that describes a package of ROS, in its folder.
pub const MANIFEST: &str = "package.xml";
/// Bytes of a manifest that is read.
const MOST_BYTES: u64 = 1 << 16;
/// Folders beside one another that are asked for their manifests.
const MOST_FOLDERS: usize = 1000;

/// Where the file at `address`, `NAME/FILE`, may be: in folders of that name, in those whose
/// manifests say so, and last in those of which nothing is known.
pub(super) fn candidates(reach: &Reach, address: &str) -> Vec<Candidate> {
    let (package, file) = address.split_once('/').unwrap_or((address, ""));
    let place = |folder: PathBuf, known: bool| Candidate {
        path: joined(&folder, Path::new(file)),
        by: By::Package { folder, name: package.to_string(), known },
    };
    let own = reach.folder();
    let named = files::plain(own);
    // A link may lead deeper than its name does.
    let real = named.canonicalize().unwrap_or_else(|_| named.clone());
    let called = |up: usize| {
        let at = |path: &Path| {
            path.ancestors().nth(up).and_then(Path::file_name).is_some_and(|n| n == package)
        };
        at(&named) || at(&real)
    };
    let is = |names: &[String]| names.iter().any(|n| n == package);
    let levels = named.ancestors().count().max(real.ancestors().count());
    let (mut found, mut unknown, mut aboves) = (Vec::new(), Vec::new(), Vec::new());
    for up in 0..levels {
        let above = match up {
            0 => own.to_path_buf(),
            _ => joined(own, &PathBuf::from("../".repeat(up))),
        };
        found.push(place(above.join(package), true));
        if joined(&above, Path::new(file)).is_file() {
            match manifest(&above) {
                _ if called(up) => found.push(place(above.clone(), true)),
                Some(names) if is(&names) => found.push(place(above.clone(), true)),
                Some(_) => {}
                None => unknown.push(place(above.clone(), false)),
            }
        }
        aboves.push(above);
    }
    if !found.iter().any(|c| c.path.is_file() && reach.has(&c.path)) {
        let aboves = aboves.iter().filter(|above| reach.has(above));
        let folders = aboves.flat_map(|above| below(above));
        let described = folders.filter(|f| manifest(f).is_some_and(|names| is(&names)));
        let described = described.map(|f| place(f, true));
        found.extend(described.filter(|c| c.path.is_file()));
    }
    found.extend(unknown);
    found
}

/// The folders in a folder, by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let entries = entries.into_iter().flatten().flatten().take(MOST_FOLDERS);
    let folders = entries.map(|e| folder.join(e.file_name()));
    let mut folders: Vec<_> = folders.filter(|f| f.join(MANIFEST).is_file()).collect();
    folders.sort();
    folders
}

/// The names that a folder's manifest gives its package; those of a run's copy may be several.
fn manifest(folder: &Path) -> Option<Vec<String>> {
    let text = files::read_text(&folder.join(MANIFEST), MOST_BYTES).ok()?;
    let document = roxmltree::Document::parse(&text).ok()?;
    let parts = document.root_element().children();
    let names = parts.filter(|e| e.tag_name().name() == "name");
    let names = names.filter_map(|e| e.text()).map(|n| n.trim().to_string());
    Some(names.collect())
}
