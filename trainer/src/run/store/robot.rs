//! The robot's files in a run's folder: all that the model names, as it names them.
//!
//! Names in a model count from folders of its own, so the copies lie to one another
//! as the names say, links in the original notwithstanding: where something lies above
//! the main file, the main file moves down.

use super::checkpoint::write_atomically;
use super::dir::make;
use crate::run::error::RunError;
use ostler_sim::files;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Folder of the copies in a run's.
pub(super) const FOLDER: &str = "robot";
/// A file of a robot's longer than this is not copied (bytes).
const LARGEST: u64 = 1 << 30;

/// Where the copies are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copies {
    /// The main file, relative to the run's folder.
    pub main: String,
    /// Some lie beside or above the main file's folder.
    pub spread: bool,
}

/// A path without `..`, by its parts, and the folders that names with `..` pass through.
#[derive(Debug, Default)]
struct Plain {
    parts: Vec<OsString>,
    passed: Vec<Vec<OsString>>,
}

impl Plain {
    fn new(path: &Path) -> Result<Plain, RunError> {
        let whole = std::path::absolute(path).map_err(RunError::file("find", path))?;
        let mut plain = Plain::default();
        for part in whole.components() {
            match part {
                Component::Normal(name) => plain.parts.push(name.to_os_string()),
                Component::ParentDir => {
                    plain.passed.push(plain.parts.clone());
                    plain.parts.pop();
                }
                _ => {}
            }
        }
        Ok(plain)
    }

    fn folder(&self) -> &[OsString] {
        self.parts.split_last().map_or(&[], |(_, folder)| folder)
    }
}

/// Copies `sources`, the main file first, into `run`.
///
/// # Errors
/// The main file cannot be read, or a copy cannot be written.
pub(super) fn copy(run: &Path, sources: &[PathBuf]) -> Result<Copies, RunError> {
    let plain = sources.iter().map(|s| Plain::new(s));
    let plain = plain.collect::<Result<Vec<_>, _>>()?;
    let own = plain.first().map(Plain::folder).unwrap_or_default();
    let mut base = own;
    while !plain.iter().all(|p| p.folder().starts_with(base)) {
        base = base.split_last().map_or(&[], |(_, above)| above);
    }
    let inside = |parts: &[OsString]| -> Option<PathBuf> {
        let inner: PathBuf = parts.strip_prefix(base)?.iter().collect();
        Some(Path::new(FOLDER).join(inner))
    };
    let mut main = String::new();
    for (i, (from, plain)) in sources.iter().zip(&plain).enumerate() {
        let Some(relative) = inside(&plain.parts) else {
            continue;
        };
        for folder in plain.passed.iter().filter_map(|p| inside(p)) {
            make(&run.join(folder))?;
        }
        put(from, &run.join(&relative), i == 0)?;
        if i == 0 {
            main = relative.to_string_lossy().into_owned();
        }
    }
    let spread = plain.iter().any(|p| !p.folder().starts_with(own));
    Ok(Copies { main, spread })
}

/// Copies one file, unless the copy is there already. One that vanished or must not be
/// read costs a warning: the robot was read, so a picture may miss it at worst.
fn put(from: &Path, to: &Path, needed: bool) -> Result<(), RunError> {
    // A resumed run reads the very files that lie here: copying a file onto itself
    // would empty it.
    if let (Ok(copy), Ok(from)) = (to.canonicalize(), from.canonicalize())
        && copy == from
    {
        return Ok(());
    }
    let bytes = match files::read(from, LARGEST) {
        Ok(bytes) => bytes,
        Err(_) if to.is_file() => return Ok(()),
        Err(e)
            if !needed && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) =>
        {
            tracing::warn!("the run keeps no copy of {}: {e}", from.display());
            return Ok(());
        }
        Err(e) => return Err(RunError::file("read", from)(e)),
    };
    // Written often, changed never: meshes are large.
    if files::read(to, bytes.len() as u64).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        make(parent)?;
    }
    write_atomically(to, &bytes).map_err(RunError::file("write", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn copies_lie_as_the_names_say_and_inside_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let robot = dir.path().join("lab/robots/dog");
        let run = dir.path().join("run");
        let main = write(&robot.join("dog.xml"), "main");
        write(&dir.path().join("lab/shared/x.stl"), "x");
        write(&robot.join("parts/y.stl"), "y");
        write(&dir.path().join("far/z.stl"), "z");
        // A folder that is a link: the copy is a folder of that name.
        std::os::unix::fs::symlink(dir.path().join("far"), robot.join("linked")).unwrap();
        let names = [
            "parts/y.stl",
            "linked/z.stl",
            "../../shared/x.stl",
            "parts/../dog.xml",
        ];
        let mut sources = vec![main.clone()];
        sources.extend(names.map(|n| robot.join(n)));
        let copies = copy(&run, &sources).unwrap();
        assert_eq!(copies.main, "robot/robots/dog/dog.xml");
        assert!(copies.spread);
        let copied = run.join(&copies.main);
        for name in names {
            let (a, b) = (robot.join(name), copied.parent().unwrap().join(name));
            assert_eq!(std::fs::read(a).unwrap(), std::fs::read(&b).unwrap());
            let real = b.canonicalize().unwrap();
            assert!(real.starts_with(run.canonicalize().unwrap()), "{name}");
        }
        // A run that goes on copies its own files: nothing moves or empties.
        let own: Vec<_> = std::iter::once(copied.clone())
            .chain(names.map(|n| copied.parent().unwrap().join(n)))
            .collect();
        assert_eq!(copy(&run, &own).unwrap(), copies);
        assert_eq!(std::fs::read(&copied).unwrap(), b"main");
        // What vanished since keeps its copy; what was never there is not missed.
        std::fs::remove_dir_all(dir.path().join("lab/shared")).unwrap();
        sources.push(robot.join("gone.png"));
        assert_eq!(copy(&run, &sources).unwrap(), copies);
        assert_eq!(std::fs::read(run.join("robot/shared/x.stl")).unwrap(), b"x");
        std::fs::remove_file(&main).unwrap();
        assert!(copy(&dir.path().join("other"), &sources).is_err());
    }

    #[test]
    fn a_folder_that_a_name_only_passes_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let robot = dir.path().join("robot");
        let main = write(&robot.join("a.xml"), "");
        write(&robot.join("assets/t.stl"), "t");
        std::fs::create_dir(robot.join("meshes")).unwrap();
        let name = "meshes/../assets/t.stl";
        let run = dir.path().join("run");
        let copies = copy(&run, &[main, robot.join(name)]).unwrap();
        assert_eq!(
            (copies.main.as_str(), copies.spread),
            ("robot/a.xml", false)
        );
        assert!(run.join("robot").join(name).is_file());
    }
}
