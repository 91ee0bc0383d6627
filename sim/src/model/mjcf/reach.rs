//! Where a model's files may lie.

use std::path::{Path, PathBuf};

/// Where a model's files may lie: in its folder, or anywhere in one that was named.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach {
    /// The main file's folder, from which names count.
    folder: PathBuf,
    /// The folder that was named.
    within: Option<PathBuf>,
}

impl Reach {
    pub fn new(main: &Path, within: Option<&Path>) -> Self {
        Self {
            folder: main.parent().unwrap_or(Path::new("")).to_path_buf(),
            within: within.map(Path::to_path_buf),
        }
    }

    /// Where the files of a model in this reach may lie: names count from its folder and
    /// stay within the same bound.
    pub fn of(&self, file: &Path) -> Self {
        let here = Path::new(".");
        let bound = match self.bound() {
            b if b.as_os_str().is_empty() => here,
            b => b,
        };
        Self::new(file, Some(bound))
    }

    /// The file `name`, or why it is out of reach.
    pub fn file(&self, name: &Path) -> Result<PathBuf, String> {
        use std::path::Component;
        let mut parts = name.components();
        let up = self.within.is_some();
        let named = |c| match c {
            Component::Normal(_) | Component::CurDir => true,
            Component::ParentDir => up,
            _ => false,
        };
        let path = self.folder.join(name);
        if name.as_os_str().is_empty() || !parts.all(named) {
            return Err(self.outside(name));
        }
        let real = |folder: &Path| match folder.as_os_str().is_empty() {
            true => Path::new(".").canonicalize(),
            false => folder.canonicalize(),
        };
        // A link may lead outside although its name does not.
        match (path.canonicalize(), real(self.bound())) {
            (Ok(file), Ok(bound)) if !file.starts_with(&bound) => Err(self.outside(name)),
            (Ok(_), Err(_)) if self.within.is_some() => Err(self.outside(name)),
            _ => Ok(path),
        }
    }

    /// The file `name`, wherever that is.
    pub fn path(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    /// The first of `names` that is a file, else the first, or why that is out of reach.
    pub fn first(&self, names: &[PathBuf]) -> Result<PathBuf, String> {
        let there = names.iter().find(|n| self.path(n).is_file());
        let name = there.or(names.first());
        self.file(name.map_or(Path::new(""), |n| n))
    }

    /// A folder of the model's as names have it; `None` for one that lies elsewhere.
    pub fn inner(&self, folder: &Path) -> Option<PathBuf> {
        folder
            .strip_prefix(&self.folder)
            .ok()
            .map(Path::to_path_buf)
    }

    fn bound(&self) -> &Path {
        self.within.as_ref().unwrap_or(&self.folder)
    }

    fn outside(&self, name: &Path) -> String {
        let name = name.display();
        match &self.within {
            Some(within) => format!("\"{name}\" is outside {}", within.display()),
            None => format!(
                "\"{name}\" is outside the model's folder; a model's files stay together, or \
                 the folder that holds them all is named: task.robot_folder in a \
                 configuration, --folder for ostler compare, physics and bench physics"
            ),
        }
    }
}
