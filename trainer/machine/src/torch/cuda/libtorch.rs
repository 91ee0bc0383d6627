//! Where this process has libtorch from, and its CUDA part.

use super::NoCuda;
use super::driver::Version;
use crate::torch::library::{Library, file_of};
use std::path::{Path, PathBuf};

/// A symbol of `libtorch_cpu`: `at::globalContext()`.
const SYMBOL: &std::ffi::CStr = c"_ZN2at13globalContextEv";
/// libtorch's CUDA part.
const NAME: &str = "libtorch_cuda.so";

/// The folder with libtorch's libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibtorchFolder(pub PathBuf);

impl LibtorchFolder {
    /// Where this process's own libtorch lies: a CUDA part of another one would not fit.
    pub fn of_this_process() -> Self {
        let folder = file_of(SYMBOL).and_then(|file| Some(file.parent()?.to_path_buf()));
        Self(folder.unwrap_or_default())
    }

    /// Whether libtorch was built with CUDA.
    ///
    /// # Errors
    /// It was not.
    pub fn has_cuda(&self) -> Result<(), NoCuda> {
        match self.0.join(NAME).is_file() {
            true => Ok(()),
            false => Err(NoCuda::ProcessorOnly { folder: self.0.clone() }),
        }
    }

    /// The CUDA that libtorch was built for, where its files tell.
    pub fn built_for(&self) -> Option<Version> {
        let root = self.0.parent()?;
        let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
        let wheel = || version_py(&read("version.py")?);
        let archive = || build_version(&read("build-version")?);
        wheel().or_else(archive)
    }

    /// Loads libtorch's CUDA part with all that it needs, for libtorch to find.
    ///
    /// # Errors
    /// Something it needs is missing or does not fit.
    pub fn load(&self) -> Result<(), NoCuda> {
        let file = self.0.join(NAME);
        // Global: libtorch's other libraries look for it by its symbols.
        match Library::open_path(&file, libc::RTLD_NOW | libc::RTLD_GLOBAL) {
            Ok(_) => Ok(()),
            Err(said) => Err(understand(&file, said)),
        }
    }
}

/// glibc names the library that it cannot open, whoever needs it.
fn understand(file: &Path, said: String) -> NoCuda {
    let name = said.split(": cannot open shared object file").next();
    match name.filter(|name| *name != said && Path::new(name) != file) {
        Some(library) => NoCuda::Missing { library: library.into() },
        None => NoCuda::Unloadable { said },
    }
}

/// `cuda: Optional[str] = '13.0'` of a wheel's `version.py`.
fn version_py(text: &str) -> Option<Version> {
    let line = text.lines().find(|line| line.starts_with("cuda"))?;
    let value = line.split_once('=')?.1.trim().trim_matches(['\'', '"']);
    let (major, minor) = value.split_once('.')?;
    Some(Version { major: major.parse().ok()?, minor: minor.split('.').next()?.parse().ok()? })
}

/// `2.11.0+cu130` of an archive's `build-version`.
fn build_version(text: &str) -> Option<Version> {
    let digits = text.trim().split_once("+cu")?.1;
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtorch_says_what_it_was_built_for() {
        let v = |major, minor| Some(Version { major, minor });
        for (text, expected) in [
            ("cuda: Optional[str] = '13.0'\nhip = None", v(13, 0)),
            ("__version__ = '2'\ncuda = '12.8'\n", v(12, 8)),
            ("cuda: Optional[str] = None", None),
            ("", None),
        ] {
            assert_eq!(version_py(text), expected, "{text}");
        }
        for (text, expected) in [
            ("2.11.0+cu130\n", v(13, 0)),
            ("2.11.0+cu128", v(12, 8)),
            ("2.11.0+cpu", None),
            ("2.11.0+cu", None),
            ("2.11.0", None),
        ] {
            assert_eq!(build_version(text), expected, "{text}");
        }
    }

    #[test]
    fn libtorch_of_this_process_is_found() {
        let place = LibtorchFolder::of_this_process();
        assert!(place.0.join("libtorch_cpu.so").is_file(), "{place:?}");
    }

    #[test]
    fn a_folder_without_the_cuda_part_is_for_the_processor_only() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_path_buf();
        let place = LibtorchFolder(folder.clone());
        assert_eq!(place.has_cuda(), Err(NoCuda::ProcessorOnly { folder }));
    }

    #[test]
    fn a_file_that_is_no_library_is_not_a_missing_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), "not a library").unwrap();
        let place = LibtorchFolder(dir.path().to_path_buf());
        assert_eq!(place.has_cuda(), Ok(()));
        assert!(matches!(place.load(), Err(NoCuda::Unloadable { .. })));
    }

    #[test]
    fn what_the_loader_misses_is_named() {
        let file = Path::new("/t/lib/libtorch_cuda.so");
        let of = |said: &str| understand(file, said.to_string());
        let text = ": cannot open shared object file: No such file or directory";
        let library = "libcudnn.so.9".to_string();
        assert_eq!(of(&format!("{library}{text}")), NoCuda::Missing { library });
        let itself = of(&format!("{}{text}", file.display()));
        assert!(matches!(itself, NoCuda::Unloadable { .. }), "{itself}");
        let other = of("libcublas.so.13: undefined symbol: x");
        assert!(matches!(other, NoCuda::Unloadable { .. }), "{other}");
    }
}
