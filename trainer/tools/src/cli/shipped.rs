//! Configurations that come with the program, by their names.

use std::path::{Path, PathBuf};

/// Names the folder of these configurations.
const VARIABLE: &str = "OSTLER_CONFIGS";

/// Their folder: the one that is named, as an installed package does; `configs` here, as in a
/// checkout; `configs` beside the program's folder, as in the tarball.
pub(crate) fn folder() -> PathBuf {
    let here = PathBuf::from("configs");
    if let Some(named) = std::env::var_os(VARIABLE).filter(|n| !n.is_empty()) {
        return named.into();
    }
    let program = std::env::current_exe().ok();
    let beside = program.and_then(|p| Some(p.parent()?.parent()?.join("configs")));
    match beside {
        Some(beside) if !here.is_dir() && beside.is_dir() => beside,
        _ => here,
    }
}

/// The file that is meant by `given`: itself or, where there is none of that name, the
/// configuration that comes with the program and is called so.
pub(crate) fn find(given: &str) -> PathBuf {
    in_folder(given, &folder())
}

fn in_folder(given: &str, folder: &Path) -> PathBuf {
    let path = PathBuf::from(given);
    let is_name = path.components().count() == 1 && path.extension().is_none();
    let own = folder.join(format!("{given}.toml"));
    match is_name && !path.exists() && own.is_file() {
        true => own,
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_configuration_unless_there_is_a_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let find = |given: &str| in_folder(given, &folder);
        assert_eq!(find("hopper"), folder.join("hopper.toml"));
        // The folder of this package's sources.
        assert_eq!(find("src"), PathBuf::from("src"));
        for other in ["nothing", "hopper.toml", "configs/hopper", "./hopper"] {
            assert_eq!(find(other), PathBuf::from(other));
        }
    }
}
