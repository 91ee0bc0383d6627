//! Files of a terrain's tiles: found and read once.

use super::{ConfigError, TaskConfig};
use ostler_base::files;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of all files of a terrain: 64 MiB.
const MOST: u64 = 64 << 20;

/// What files of tiles hold, by the names that the plan has.
pub type TileFiles = BTreeMap<String, Arc<Vec<u8>>>;

/// Reads the files of `[task.terrain]` into `task.tile_files`. Paths count from `folder`, that of
/// the configuration.
///
/// # Errors
/// One is missing or cannot be read, or all are too large. Nothing has changed then.
pub fn read_tiles(task: &mut TaskConfig, folder: &Path) -> Result<(), ConfigError> {
    let kinds = task.terrain.iter().flat_map(|plan| &plan.kinds).enumerate();
    let mut read = TileFiles::new();
    let mut left = MOST;
    for (place, name) in kinds.filter_map(|(i, kind)| Some((i, kind.file.as_ref()?))) {
        if read.contains_key(name) {
            continue;
        }
        let path = folder.join(name);
        let bytes = files::read(&path, left).map_err(|e| {
            let shown = path.display();
            let (why, help) = match e.kind() {
                ErrorKind::NotFound => (
                    format!("there is no file {shown}"),
                    "the path is relative to the configuration's folder",
                ),
                ErrorKind::FileTooLarge => (
                    format!(
                        "{shown} is too large: all files of a terrain have {MOST} bytes at most"
                    ),
                    "a tile has no more detail than its cells; smaller pictures do",
                ),
                _ => (format!("cannot read {shown}: {e}"), "file = \"hill.png\", or .npy"),
            };
            ConfigError::new(format!("task.terrain.kinds[{place}].file"), why).help(help)
        })?;
        left -= bytes.len() as u64;
        read.insert(name.clone(), Arc::new(bytes));
    }
    task.tile_files = read;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(names: &[&str]) -> TaskConfig {
        let kinds = names.iter().map(|n| format!("{{ kind = \"file\", file = \"{n}\" }}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        toml::from_str(&format!("robot = \"\"\nterrain = {{ kinds = [{kinds}] }}")).unwrap()
    }

    #[test]
    fn files_are_read_from_the_folder_and_mistakes_name_the_kind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.npy"), b"heights").unwrap();
        let mut two = task(&["a.npy", "a.npy"]);
        read_tiles(&mut two, folder.path()).unwrap();
        let held: Vec<_> = two.tiles().collect();
        assert_eq!(held, [Some(("a.npy", &b"heights"[..])); 2]);
        let mut missing = task(&["a.npy", "b.png"]);
        let error = read_tiles(&mut missing, folder.path()).unwrap_err();
        assert_eq!(error.path, "task.terrain.kinds[1].file");
        assert!(error.message.contains("b.png") && missing.tile_files.is_empty(), "{error}");
    }

    #[test]
    fn files_are_bounded_together() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.png", "b.png"] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(MOST / 2 + 1).unwrap();
        }
        let mut large = task(&["a.png", "b.png"]);
        let error = read_tiles(&mut large, folder.path()).unwrap_err();
        assert_eq!(error.path, "task.terrain.kinds[1].file");
        assert!(error.message.contains("too large"), "{error}");
    }
}
