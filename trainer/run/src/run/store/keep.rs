//! Which checkpoints stay.

use ostler_sim::files;
use std::path::{Path, PathBuf};

/// Name of the best checkpoint.
pub const BEST: &str = "best.safetensors";

/// The file of an iteration.
pub fn file_of(dir: &Path, iteration: u64) -> PathBuf {
    dir.join(format!("iter_{iteration:08}.safetensors"))
}

/// Checkpoints by iteration, oldest first; files with other names are not ours.
pub fn list(dir: &Path) -> Vec<(u64, PathBuf)> {
    let mut found: Vec<(u64, PathBuf)> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| {
            let name = e.file_name();
            let number = name.to_str()?.strip_prefix("iter_")?.strip_suffix(".safetensors")?;
            Some((number.parse().ok()?, e.path()))
        })
        .collect();
    found.sort();
    found
}

/// Removes all but the newest `keep` and those at multiples of `interval`.
pub fn prune(dir: &Path, keep: usize, interval: u64) {
    let all = list(dir);
    let old = all.len().saturating_sub(keep.max(1));
    for (iteration, path) in &all[..old] {
        if interval == 0 || iteration % interval != 0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes `best` another name of the checkpoint at `path`.
///
/// # Errors
/// The file system refuses.
pub fn mark_best(dir: &Path, path: &Path) -> std::io::Result<()> {
    files::replace_by_link(path, &dir.join(BEST))
}

/// Sets aside what a run that goes on from `iteration` would replace: newer checkpoints
/// and, where `best` is newer too, the best one move into a folder of their own below
/// `dir`; the files in `copies` are copied beside them. Returns that folder, or nothing
/// where nothing is newer.
///
/// # Errors
/// The file system refuses; what was moved so far lies in the new folder.
pub fn set_aside(
    dir: &Path,
    iteration: u64,
    best: Option<u64>,
    copies: &[PathBuf],
) -> std::io::Result<Option<PathBuf>> {
    let newer: Vec<PathBuf> = list(dir)
        .into_iter()
        .filter(|f| f.0 > iteration)
        .map(|f| f.1)
        .chain(best.filter(|&b| b > iteration).map(|_| dir.join(BEST)))
        .collect();
    if newer.is_empty() {
        return Ok(None);
    }
    let folder = new_folder(dir, iteration)?;
    for from in copies.iter().filter(|f| f.exists()) {
        if let Some(name) = from.file_name() {
            // Not what is no file: a pipe would be waited for.
            let mut from = files::open(from)?;
            let mut to = files::create(&folder.join(name))?;
            std::io::copy(&mut from, &mut to)?;
        }
    }
    for from in newer {
        if let Some(name) = from.file_name() {
            std::fs::rename(&from, folder.join(name))?;
        }
    }
    Ok(Some(folder))
}

fn new_folder(dir: &Path, iteration: u64) -> std::io::Result<PathBuf> {
    let mut attempt = 1;
    loop {
        let path = dir.join(format!("replaced_from_{iteration}_{attempt}"));
        match std::fs::create_dir(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => attempt += 1,
            made => return made.map(|()| path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_and_the_multiples_stay() {
        let dir = tempfile::tempdir().unwrap();
        for i in [5, 10, 13, 15, 20, 21, 22] {
            std::fs::write(file_of(dir.path(), i), b"x").unwrap();
        }
        std::fs::write(dir.path().join("notes.txt"), b"x").unwrap();
        mark_best(dir.path(), &file_of(dir.path(), 13)).unwrap();
        prune(dir.path(), 2, 10);
        let left: Vec<u64> = list(dir.path()).into_iter().map(|f| f.0).collect();
        assert_eq!(left, [10, 20, 21, 22]);
        assert!(dir.path().join(BEST).exists() && dir.path().join("notes.txt").exists());
    }

    #[test]
    fn newer_checkpoints_are_set_aside_and_never_removed() {
        let dir = tempfile::tempdir().unwrap();
        for i in [10, 20, 30] {
            std::fs::write(file_of(dir.path(), i), i.to_string()).unwrap();
        }
        mark_best(dir.path(), &file_of(dir.path(), 30)).unwrap();
        let metrics = dir.path().join("metrics.jsonl");
        std::fs::write(&metrics, "lines").unwrap();
        let copies = [metrics.clone(), dir.path().join("none")];
        let aside = |n, best| set_aside(dir.path(), n, best, &copies).unwrap();
        assert_eq!(aside(30, Some(30)), None);
        let first = aside(20, Some(30)).unwrap();
        let read = |p: PathBuf| std::fs::read_to_string(p).unwrap();
        assert_eq!(read(file_of(&first, 30)), "30");
        assert_eq!(read(first.join(BEST)), "30");
        assert_eq!(read(first.join("metrics.jsonl")), "lines");
        assert_eq!(read(metrics.clone()), "lines");
        assert!(!dir.path().join(BEST).exists());
        let left: Vec<u64> = list(dir.path()).into_iter().map(|f| f.0).collect();
        assert_eq!(left, [10, 20]);
        // Once more from the same place: the first folder stays as it is.
        std::fs::write(file_of(dir.path(), 30), "again").unwrap();
        let second = aside(20, None).unwrap();
        assert_eq!(read(file_of(&first, 30)), "30");
        assert_eq!(read(file_of(&second, 30)), "again");
    }

    #[test]
    fn what_is_no_file_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(file_of(dir.path(), 9), "").unwrap();
        let pipe = dir.path().join("metrics.jsonl");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let e = set_aside(dir.path(), 5, None, &[pipe]).unwrap_err();
        assert_eq!(e.kind(), std::io::ErrorKind::InvalidInput);
        assert!(file_of(dir.path(), 9).exists(), "nothing has moved");
    }
}
