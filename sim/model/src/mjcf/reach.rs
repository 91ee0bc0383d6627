//! Where a model's files may lie, and which of them a name means.
//!
//! One rule for all kinds of files: what a name means lies in the model's folder, or in the one
//! that was named, links followed. As in MuJoCo `..` takes the name before it off, wherever a
//! link of that name leads; where nothing is there, the system's reading counts.

use super::compiler::{Compiler, Dir};
use super::package;
use crate::Naming;
use ostler_base::files;
use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Where a model's files may lie: in its folder, or anywhere in one that was named.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach {
    /// The main file's folder, from which names count.
    folder: PathBuf,
    /// The folder that was named.
    within: Option<PathBuf>,
    /// The files that were found.
    met: Rc<RefCell<Met>>,
}

/// Files that were found, and how they were named.
#[derive(Debug, Default)]
struct Met {
    files: Vec<PathBuf>,
    naming: Naming,
}

/// A place where a name's file may be.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub path: PathBuf,
    pub by: By,
}

/// How a place follows from a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// From a folder of the model's.
    Name,
    /// The whole name, which begins with `/`.
    Root(PathBuf),
    /// The file in a folder that is the package of this name, or may be: nothing says so.
    Package { folder: PathBuf, name: String, known: bool },
    /// Its last part in the folder for its kind.
    Last,
}

impl By {
    /// Whether another file may be meant.
    pub(crate) fn is_guess(&self) -> bool {
        matches!(self, By::Last | By::Package { known: false, .. })
    }
}

impl Candidate {
    pub(crate) fn named(path: PathBuf) -> Self {
        Self { path, by: By::Name }
    }
}

impl Reach {
    pub(crate) fn new(main: &Path, within: Option<&Path>) -> Self {
        let within = within.map(Path::to_path_buf);
        let mut met = Met::default();
        met.naming.within.clone_from(&within);
        Self {
            folder: main.parent().unwrap_or(Path::new("")).to_path_buf(),
            within,
            met: Rc::new(RefCell::new(met)),
        }
    }

    /// Where the files of a model in this reach may lie: names count from its folder and
    /// stay within the same bound.
    pub(crate) fn of(&self, file: &Path) -> Self {
        Self {
            folder: file.parent().unwrap_or(Path::new("")).to_path_buf(),
            within: Some(self.bound().to_path_buf()),
            met: Rc::clone(&self.met),
        }
    }

    /// The folder from which names count.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the files were named that were found so far.
    pub(crate) fn naming(&self) -> Naming {
        self.met.borrow().naming.clone()
    }

    /// The files that were found so far, by each of their names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.met.borrow().files.clone()
    }

    /// Where the file `name` may be, seen from `folder`.
    pub(crate) fn seen(&self, folder: &Path, name: &Path) -> Vec<Candidate> {
        let Ok(inner) = name.strip_prefix("/") else {
            return vec![Candidate::named(joined(folder, name))];
        };
        // A run keeps such files in its robot's folder, as if that was the root.
        let places = [files::plain(name), joined(self.bound(), inner)];
        let by = || By::Root(name.to_path_buf());
        places.map(|path| Candidate { path, by: by() }).into()
    }

    /// Where the file `name` may be that stands in a file in `beside`: as MuJoCo, in the folder
    /// for its kind, else beside the file that names it.
    pub(crate) fn candidates(
        &self,
        compiler: &Compiler,
        beside: &Path,
        dir: Dir,
        name: &str,
    ) -> Vec<Candidate> {
        let dir = Path::new(match dir {
            Dir::Mesh => &compiler.mesh_dir,
            Dir::Texture => &compiler.texture_dir,
        });
        let in_dir = |name: &str| self.seen(&self.folder, &dir.join(name));
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        if compiler.strip_path {
            return in_dir(last);
        }
        if let Some((_, address)) = name.split_once("://") {
            if address.starts_with('/') {
                return self.seen(&self.folder, Path::new(address));
            }
            let mut found = package::candidates(self, address);
            found.extend(in_dir(last).into_iter().map(|c| Candidate { by: By::Last, ..c }));
            return found;
        }
        let mut found = in_dir(name);
        found.extend(self.seen(beside, Path::new(name)));
        found.dedup_by(|a, b| a.path == b.path);
        found
    }

    /// The first of these that is a file in reach, else the first. A guess is none where
    /// something better is there, but out of reach. `name` is what they are called by.
    ///
    /// # Errors
    /// It is out of reach.
    pub(crate) fn first(&self, candidates: &[Candidate], name: &str) -> Result<Candidate, String> {
        let files = || candidates.iter().filter(|c| c.path.is_file());
        let guess = files().all(|c| c.by.is_guess());
        let found = files().find(|c| self.has(&c.path) && (guess || !c.by.is_guess()));
        let found = found.or_else(|| files().next()).or(candidates.first());
        let there = found.map(|c| c.path.as_path()).filter(|path| path.is_file());
        let Some(found) = found.filter(|c| !name.is_empty() && self.has(&c.path)) else {
            return Err(self.outside(name, there));
        };
        let mut met = self.met.borrow_mut();
        if found.path.is_file() {
            put(&mut met.files, found.path.clone());
        }
        match &found.by {
            By::Root(name) => put(&mut met.naming.absolute, (name.clone(), found.path.clone())),
            By::Package { folder, name, .. } => {
                put(&mut met.naming.packages, (folder.clone(), name.clone()));
            }
            By::Name | By::Last => {}
        }
        Ok(found.clone())
    }

    /// The file `name`, seen from `folder` or else from the model's; the first place if it is
    /// nowhere.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    pub(crate) fn file(&self, name: &str, folder: Option<&Path>) -> Result<PathBuf, String> {
        let mut candidates = self.seen(&self.folder, Path::new(name));
        if let Some(folder) = folder {
            candidates.extend(self.seen(folder, Path::new(name)));
        }
        Ok(self.first(&candidates, name)?.path)
    }

    /// Whether a path lies in reach.
    pub(crate) fn has(&self, path: &Path) -> bool {
        files::lies_within(path, self.bound())
    }

    /// The model's folder and those above it, as far as the reach goes: for messages.
    pub(crate) fn looked(&self) -> String {
        let folder = files::plain(&self.folder);
        let above = folder.ancestors().take_while(|f| self.has(f));
        let above: Vec<_> = above.map(|f| f.display().to_string()).collect();
        above.join(", ")
    }

    fn bound(&self) -> &Path {
        match self.within.as_ref().unwrap_or(&self.folder) {
            here if here.as_os_str().is_empty() => Path::new("."),
            bound => bound,
        }
    }

    /// `met`: the file that was found there.
    fn outside(&self, name: &str, met: Option<&Path>) -> String {
        let holds = met.and_then(|path| self.holds(path));
        match (&self.within, holds) {
            (Some(within), None) => format!("\"{name}\" is outside {}", within.display()),
            (Some(within), Some(above)) => format!(
                "\"{name}\" is outside {}; the folder that holds it, too, is {}",
                within.display(),
                above.display()
            ),
            (None, holds) => format!(
                "\"{name}\" is outside the model's folder; a model's files stay together, or \
                 the folder that holds them all is named: task.robot_folder in a \
                 configuration, --folder for ostler compare, physics and bench physics{}",
                holds.map_or_else(String::new, |f| format!("; here that is {}", f.display()))
            ),
        }
    }

    /// The folder that holds the model's folder and this file, as seen from where the program
    /// runs; the whole file system is none.
    fn holds(&self, path: &Path) -> Option<PathBuf> {
        let folder = files::plain(&self.folder);
        let above = folder.ancestors().find(|f| files::lies_within(path, f))?;
        above.parent()?;
        let here = std::env::current_dir().ok()?;
        Some(match above.strip_prefix(here) {
            Ok(short) if short.as_os_str().is_empty() => PathBuf::from("."),
            short => short.unwrap_or(above).to_path_buf(),
        })
    }
}

fn put<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// `name` seen from `folder`.
pub(super) fn joined(folder: &Path, name: &Path) -> PathBuf {
    let path = folder.join(name);
    if !name.components().any(|c| c == Component::ParentDir) {
        return path;
    }
    let plain = files::plain(&path);
    match (path.canonicalize(), plain.canonicalize()) {
        (Ok(a), Ok(b)) if a == b => path,
        (_, Ok(_)) => plain,
        (_, Err(_)) => path,
    }
}
