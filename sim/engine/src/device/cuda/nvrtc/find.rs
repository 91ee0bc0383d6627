//! Where NVRTC may be.
//!
//! In this order: the folder (or file) that `OSTLER_NVRTC` names, alone; a library that this
//! process has loaded; beside libtorch, loaded or named by `LIBTORCH`, where pip puts torch's
//! libraries; the CUDA toolkit that `CUDA_HOME` or `CUDA_PATH` names; the library that the
//! system's loader finds by name (`LD_LIBRARY_PATH`); `/usr/local/cuda`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchPlace {
    /// A folder, or the file itself.
    Folder(PathBuf),
    /// Loaded already.
    Loaded(PathBuf),
    /// Wherever the system's loader looks.
    Loader,
}

/// A library to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found(PathBuf);

impl Found {
    /// Its file, or its name for the loader.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl fmt::Display for SearchPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::Loaded(path) => write!(f, "{}", path.display()),
            Self::Loader => write!(f, "LD_LIBRARY_PATH and the system's folders"),
        }
    }
}

/// All places, the first first. `maps` is the text of `/proc/self/maps`.
pub fn places(variable: &dyn Fn(&str) -> Option<OsString>, maps: &str) -> Vec<SearchPlace> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut places = Vec::new();
    let mut add = |place: SearchPlace| {
        if !places.contains(&place) {
            places.push(place);
        }
    };
    for path in files(maps).filter(|p| is_nvrtc(p)) {
        add(SearchPlace::Loaded(path.to_path_buf()));
    }
    let loaded = files(maps).filter(|p| has_name(p, "libtorch_cpu.so"));
    let loaded = loaded.filter_map(|p| Some(p.parent()?.parent()?.to_path_buf()));
    for torch in loaded.chain(set("LIBTORCH")) {
        add(SearchPlace::Folder(torch.join("lib")));
        // A link's own neighbours are not those of what it leads to.
        let torch = torch.canonicalize().unwrap_or(torch);
        for folder in ["cu13", "cuda_nvrtc"] {
            if let Some(parent) = torch.parent() {
                add(SearchPlace::Folder(parent.join("nvidia").join(folder).join("lib")));
            }
        }
    }
    for toolkit in ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|n| set(n)) {
        add(SearchPlace::Folder(toolkit.join("lib64")));
    }
    add(SearchPlace::Loader);
    add(SearchPlace::Folder("/usr/local/cuda/lib64".into()));
    places
}

impl SearchPlace {
    /// The libraries there, the newest first.
    pub fn candidates(&self) -> Vec<Found> {
        match self {
            Self::Loaded(path) => vec![Found(path.clone())],
            Self::Folder(path) if path.is_file() => vec![Found(path.clone())],
            Self::Folder(path) => {
                let mut files = listed(path);
                files.retain(|p| is_nvrtc(p));
                files.sort_by_key(|p| std::cmp::Reverse(version(p)));
                files.into_iter().map(Found).collect()
            }
            Self::Loader => ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
                .map(|name| Found(name.into()))
                .into(),
        }
    }
}

/// The file of a library that was loaded by its path or by its name.
pub fn mapped(maps: &str, library: &Path) -> Option<PathBuf> {
    if library.components().count() > 1 {
        return std::path::absolute(library).ok();
    }
    let path = files(maps).find(|p| is_nvrtc(p))?;
    Some(path.to_path_buf())
}

/// The built-in functions that belong to a library of that version.
pub fn builtins(library: &Path, version: (u32, u32)) -> Vec<PathBuf> {
    let exact = format!(".so.{}.{}", version.0, version.1);
    let folder = library.parent().unwrap_or(Path::new("."));
    let mut files = listed(folder);
    files.retain(|p| {
        let name = name(p);
        name.starts_with("libnvrtc-builtins") && name.contains(&exact) && !name.contains(".alt.")
    });
    files
}

/// `libnvrtc.so.13`, `libnvrtc-b51b459d.so.12`; not its built-in functions, nor the
/// variant that pip brings as `.alt`.
fn is_nvrtc(path: &Path) -> bool {
    let name = name(path);
    name.starts_with("libnvrtc")
        && name.contains(".so")
        && !name.contains("builtins")
        && !name.contains(".alt.")
}

fn version(path: &Path) -> Vec<u32> {
    let name = name(path);
    let (_, version) = name.split_once(".so").unwrap_or_default();
    version.split('.').filter_map(|n| n.parse().ok()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
}

fn has_name(path: &Path, name: &str) -> bool {
    self::name(path) == name
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let list = std::fs::read_dir(folder);
    let mut files: Vec<_> = list
        .map(|list| list.filter_map(|f| f.ok().map(|f| f.path())).collect())
        .unwrap_or_default();
    files.sort();
    files
}

/// The files in `/proc/self/maps`, each once or more.
fn files(maps: &str) -> impl Iterator<Item = &Path> {
    maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_in_the_order_that_is_documented() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let torch = root.join("site/torch");
        std::fs::create_dir_all(torch.join("lib")).unwrap();
        let link = root.join("link");
        std::os::unix::fs::symlink(&torch, &link).unwrap();
        let maps = format!(
            "7f00-7f01 r-xp 00000000 08:01 12 {0}/libnvrtc.so.12
7f01-7f02 r--p 00000000 08:01 12 {0}/libnvrtc.so.12
7f02-7f03 r--p 00000000 08:01 13 {0}/libnvrtc-builtins.so.12.8
7f03-7f04 rw-p 00000000 00:00 0
7f04-7f05 r-xp 00000000 08:01 14 {1}/lib/libtorch_cpu.so\n",
            root.display(),
            torch.display()
        );
        let variable = |name: &str| match name {
            "LIBTORCH" => Some(link.clone().into_os_string()),
            "CUDA_HOME" => Some("/opt/cuda".into()),
            _ => None,
        };
        let site = root.join("site/nvidia");
        assert_eq!(
            places(&variable, &maps),
            [
                SearchPlace::Loaded(root.join("libnvrtc.so.12")),
                SearchPlace::Folder(torch.join("lib")),
                SearchPlace::Folder(site.join("cu13/lib")),
                SearchPlace::Folder(site.join("cuda_nvrtc/lib")),
                SearchPlace::Folder(link.join("lib")),
                SearchPlace::Folder("/opt/cuda/lib64".into()),
                SearchPlace::Loader,
                SearchPlace::Folder("/usr/local/cuda/lib64".into()),
            ]
        );
    }

    #[test]
    fn folders_are_searched_for_what_is_nvrtc_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libnvrtc.so",
            "libnvrtc.so.11.2",
            "libnvrtc.so.13",
            "libnvrtc-b51b459d.so.12",
            "libnvrtc.alt.so.13",
            "libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.12.8",
            "libnvrtc-builtins.alt.so.13.0",
            "libcaffe2_nvrtc.so",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = SearchPlace::Folder(folder.path().into()).candidates();
        let names: Vec<_> = found.iter().map(|f| name(f.path())).collect();
        assert_eq!(
            names,
            ["libnvrtc.so.13", "libnvrtc-b51b459d.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
        );
        let builtins = builtins(found[0].path(), (13, 0));
        assert_eq!(builtins, [folder.path().join("libnvrtc-builtins.so.13.0")]);
        assert!(SearchPlace::Folder(folder.path().join("no")).candidates().is_empty());
    }
}
