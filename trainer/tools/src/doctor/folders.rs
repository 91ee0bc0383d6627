//! Where the program writes: caches, and the folder that it is started in.

use super::finding::Finding;
use super::wanted::Wanted;
use ostler_machine::memory::{Disk, MemoryConfig};
use ostler_run::log::progress::bytes;
use ostler_sim::physics::native::specialize::Cache;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn findings(wanted: &Wanted) -> [Finding; 2] {
    [cache(), runs(wanted)]
}

fn cache() -> Finding {
    let variable = |name: &str| std::env::var_os(name);
    let kernels = match Cache::from_environment(&variable) {
        Ok(cache) => cache.folder().to_path_buf(),
        Err(e) => {
            let remedy = "kernels are compiled anew for every run: set OSTLER_CACHE to a folder";
            return Finding::lack("cache", false, e.to_string(), remedy);
        }
    };
    let root = kernels.parent().unwrap_or(&kernels);
    let mut parts = Vec::new();
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for folder in entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        let name = folder.file_name().to_string_lossy().into_owned();
        parts.push(format!("{name} {}", bytes(size(&folder.path()))));
    }
    parts.sort();
    let holds = match parts.as_slice() {
        [] => "empty".to_string(),
        parts => parts.join(", "),
    };
    let found = format!("{}: {holds}", root.display());
    match writable(root) {
        Ok(()) => match Cache::refused(&variable) {
            None => Finding::ok("cache", found),
            Some(why) => Finding::lack(
                "cache",
                false,
                format!("{found}, in place of the one that is named"),
                why.to_string(),
            ),
        },
        Err(e) => Finding::lack(
            "cache",
            false,
            format!("{found}; it cannot be written: {e}"),
            "kernels are compiled anew for every run: set OSTLER_CACHE to a folder that can be written",
        ),
    }
}

fn runs(wanted: &Wanted) -> Finding {
    let folder = std::path::absolute(&wanted.runs).unwrap_or_else(|_| wanted.runs.clone());
    let disk = Disk::of(&folder);
    let free = disk.map_or_else(String::new, |d| format!(", {} free", bytes(d.free)));
    let found = format!("{}{free}", folder.display());
    let least = MemoryConfig::default().disk_warn_mib << 20;
    match writable(&folder) {
        Err(e) => Finding::lack(
            "runs",
            wanted.given,
            format!("{found}; it cannot be written: {e}"),
            "start runs in another folder, or set log.dir",
        ),
        // A file system that counts nothing has room.
        Ok(()) if disk.is_some_and(|d| d.total > 0 && d.free < least) => Finding::lack(
            "runs",
            false,
            found,
            "a run stops when the disk is full: make room, or set log.dir",
        ),
        Ok(()) => Finding::ok("runs", found),
    }
}

/// Tries it in the folder, or in the nearest one above that is there.
fn writable(folder: &Path) -> std::io::Result<()> {
    let there = folder.ancestors().find(|p| p.is_dir());
    let there = there.unwrap_or(Path::new("/"));
    let file: PathBuf = there.join(format!(".ostler-doctor-{}", std::process::id()));
    ostler_sim::files::create(&file)?;
    fs::remove_file(&file)
}

/// Bytes of the files below a folder; links are not followed.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_folder_that_is_not_there_yet_is_tried_above() {
        let dir = tempfile::tempdir().unwrap();
        assert!(writable(&dir.path().join("a/b")).is_ok());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing stays");
        assert!(writable(Path::new("/proc/ostler")).is_err());
    }

    #[test]
    fn runs_that_cannot_be_written_are_a_problem_for_a_configuration() {
        for (given, verdict) in [(true, Verdict::Problem), (false, Verdict::Warning)] {
            let wanted = Wanted { given, runs: "/proc/ostler".into(), ..Wanted::default() };
            let found = runs(&wanted);
            assert_eq!(found.verdict, verdict, "{found:?}");
        }
    }

    #[test]
    fn files_are_counted_through_all_folders() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/one"), [0; 10]).unwrap();
        fs::write(dir.path().join("a/b/two"), [0; 5]).unwrap();
        assert_eq!(size(dir.path()), 15);
    }
}
