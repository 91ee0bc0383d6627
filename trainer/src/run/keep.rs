//! Which checkpoints stay.

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
            let number = name
                .to_str()?
                .strip_prefix("iter_")?
                .strip_suffix(".safetensors")?;
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
    let temporary = dir.join("best.tmp");
    let _ = std::fs::remove_file(&temporary);
    // Some file systems have no hard links.
    std::fs::hard_link(path, &temporary)
        .or_else(|_| std::fs::copy(path, &temporary).map(|_| ()))?;
    std::fs::rename(&temporary, dir.join(BEST))
}

/// Removes checkpoints after `iteration`: the run goes on from there.
pub fn forget_after(dir: &Path, iteration: u64) {
    for (n, path) in list(dir) {
        if n > iteration {
            let _ = std::fs::remove_file(path);
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
        forget_after(dir.path(), 20);
        let left: Vec<u64> = list(dir.path()).into_iter().map(|f| f.0).collect();
        assert_eq!(left, [10, 20]);
    }
}
