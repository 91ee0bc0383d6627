//! The robot's files in a run's folder: all that the model names, as it names them.
//!
//! Names in a model count from folders of its own, so the copies lie to one another
//! as the names say, links in the original notwithstanding: where something lies above
//! the main file, the main file moves down. A package's folder keeps its name, or a manifest
//! says it; what a name from the root means lies below the robot's folder as below the root.

use super::write::{make, write_atomically, write_if_other};
use crate::run::error::RunError;
use ostler_sim::Model;
use ostler_sim::files::{self, plain};
use ostler_sim::model::Naming;
use ostler_sim::model::mjcf::MANIFEST;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Folder of the copies in a run's.
pub(super) const FOLDER: &str = "robot";
/// A file of a robot's longer than this is not copied (bytes).
const LARGEST: u64 = 1 << 30;

/// Where the copies are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// The main file, relative to the run's folder.
    pub main: String,
    /// Some lie, or are looked for, beside or above the main file's folder.
    pub spread: bool,
}

/// Where the originals lie, by their names, from the root.
struct Originals {
    /// The main file's folder as it is written, and where it is taken to be.
    folder: [PathBuf; 2],
    /// The folder in which files may lie.
    bound: PathBuf,
}

impl Originals {
    fn new(main: &Path, naming: &Naming) -> Self {
        let folder = main.parent().unwrap_or(Path::new(""));
        let mut place = plain(folder);
        let mut bound = naming.within.as_ref().map_or(place.clone(), |w| plain(w));
        // Of two names for one folder the ones that fit together.
        if let (false, Ok(real), Ok(outer)) =
            (place.starts_with(&bound), place.canonicalize(), bound.canonicalize())
            && real.starts_with(&outer)
        {
            (place, bound) = (real, outer);
        }
        Self { folder: [folder.to_path_buf(), place], bound }
    }

    /// Where a file or folder of the model's lies.
    fn place(&self, path: &Path) -> PathBuf {
        let [folder, place] = &self.folder;
        match path.strip_prefix(folder) {
            Ok(inner) => plain(&place.join(inner)),
            Err(_) => plain(path),
        }
    }
}

/// The folders, relative to the run's, that names with `..` pass through.
fn passed(originals: &Originals, path: &Path) -> Vec<PathBuf> {
    let mut passed = Vec::new();
    let mut so_far = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            passed.push(originals.place(&so_far));
        }
        so_far.push(part);
    }
    passed
}

/// The outermost folder that a name passes through on its way from the main file's.
fn outermost(originals: &Originals, path: &Path) -> PathBuf {
    let [folder, place] = &originals.folder;
    let mut outermost = place.clone();
    let mut at = place.clone();
    for part in path.strip_prefix(folder).unwrap_or(Path::new("")).components() {
        match part {
            Component::ParentDir => {
                at.pop();
                if outermost.starts_with(&at) {
                    outermost.clone_from(&at);
                }
            }
            Component::Normal(name) => at.push(name),
            _ => {}
        }
    }
    outermost
}

/// Copies the files of `model` into `run`.
///
/// # Errors
/// The main file cannot be read, or a copy cannot be written.
pub(super) fn copy(run: &Path, model: &Model) -> Result<Copies, RunError> {
    let (sources, naming) = (&model.sources, &model.naming);
    let Some(main) = sources.first() else {
        return Ok(Copies::default());
    };
    let originals = Originals::new(main, naming);
    let places: Vec<PathBuf> = sources.iter().map(|s| originals.place(s)).collect();
    let own = originals.folder[1].as_path();
    let mut base = own;
    // A package is looked for as far as files may lie.
    if !naming.packages.is_empty() && own.starts_with(&originals.bound) {
        base = &originals.bound;
    }
    let from_root = |file: &PathBuf| naming.absolute.iter().any(|(_, f)| f == file);
    let named = sources.iter().zip(&places).filter(|(s, _)| !from_root(s));
    for (name, place) in named {
        // A name that leaves the folder and comes back has the folder's own name in it.
        let outer = outermost(&originals, name);
        while !place.starts_with(base) || !outer.starts_with(base) {
            base = base.parent().unwrap_or(Path::new("/"));
        }
    }
    let inside = |place: &Path| match place.strip_prefix(base).ok()? {
        here if here.as_os_str().is_empty() => Some(run.join(FOLDER)),
        inner => Some(run.join(FOLDER).join(inner)),
    };
    let mut copies = Copies { main: String::new(), spread: base != own || naming.within.is_some() };
    for (i, (from, place)) in sources.iter().zip(&places).enumerate() {
        let Some(to) = inside(place) else {
            continue;
        };
        for folder in passed(&originals, from).iter().filter_map(|p| inside(p)) {
            make(&folder)?;
        }
        put(from, &to, i == 0)?;
        if i == 0 {
            let main = to.strip_prefix(run).unwrap_or(&to);
            copies.main = main.to_string_lossy().into_owned();
        }
    }
    let root = match copies.spread {
        true => run.join(FOLDER),
        false => inside(own).unwrap_or_default(),
    };
    for (name, file) in &naming.absolute {
        let inner = plain(name);
        put(file, &root.join(inner.strip_prefix("/").unwrap_or(&inner)), false)?;
    }
    for (folder, _) in &naming.packages {
        if let Some(copy) = inside(&originals.place(folder)) {
            describe(folder, &naming.packages, &copy)?;
        }
    }
    Ok(copies)
}

/// Gives the copy of a package's folder its manifest, where its name does not say what it is.
fn describe(folder: &Path, packages: &[(PathBuf, String)], copy: &Path) -> Result<(), RunError> {
    let (manifest, to) = (folder.join(MANIFEST), copy.join(MANIFEST));
    if manifest.is_file() {
        return put(&manifest, &to, false);
    }
    let names = packages.iter().filter(|(f, _)| f == folder).map(|(_, n)| n);
    if names.clone().all(|n| copy.file_name().is_some_and(|own| own == n.as_str())) {
        return Ok(());
    }
    let names = names.map(|n| n.replace('&', "&amp;").replace('<', "&lt;"));
    let names: String = names.map(|n| format!("<name>{n}</name>")).collect();
    let text = format!("<package>{names}</package>\n");
    write_atomically(&to, text.as_bytes()).map_err(RunError::file("write", &to))
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
    if let Some(parent) = to.parent() {
        make(parent)?;
    }
    write_if_other(to, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        path.to_path_buf()
    }

    /// A model of these files, in folders without bounds.
    fn model(sources: &[PathBuf]) -> Model {
        let mut model = ostler_sim::model::mjcf::parse(&sources[0], "<mujoco/>".into()).unwrap();
        model.sources = sources.to_vec();
        model
    }

    #[test]
    fn a_folder_that_a_name_leads_back_into_keeps_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let main = write(&dir.path().join("lab/urdf/bot.urdf"), "main");
        write(&dir.path().join("lab/urdf/meshes/a.stl"), "a");
        let (run, around) = (dir.path().join("run"), "lab/urdf/../urdf/meshes/a.stl");
        let copies = copy(&run, &model(&[main, dir.path().join(around)])).unwrap();
        assert_eq!(copies.main, "robot/urdf/bot.urdf");
        assert!(copies.spread && run.join("robot/urdf/meshes/a.stl").is_file());
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
        let names = ["parts/y.stl", "linked/z.stl", "../../shared/x.stl", "parts/../dog.xml"];
        let mut sources = vec![main.clone()];
        sources.extend(names.map(|n| robot.join(n)));
        let copies = copy(&run, &model(&sources)).unwrap();
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
        assert_eq!(copy(&run, &model(&own)).unwrap(), copies);
        assert_eq!(std::fs::read(&copied).unwrap(), b"main");
        // What vanished since keeps its copy; what was never there is not missed.
        std::fs::remove_dir_all(dir.path().join("lab/shared")).unwrap();
        sources.push(robot.join("gone.png"));
        assert_eq!(copy(&run, &model(&sources)).unwrap(), copies);
        assert_eq!(std::fs::read(run.join("robot/shared/x.stl")).unwrap(), b"x");
        std::fs::remove_file(&main).unwrap();
        assert!(copy(&dir.path().join("other"), &model(&sources)).is_err());
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
        let copies = copy(&run, &model(&[main, robot.join(name)])).unwrap();
        assert_eq!((copies.main.as_str(), copies.spread), ("robot/a.xml", false));
        assert!(run.join("robot").join(name).is_file());
    }
}
