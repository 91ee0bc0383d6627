//! Finds libtorch, or fetches it, and links it as `.libtorch/torch`.

//!
//! Reading order: [`ensure`] -> [`fetch`] -> `wheels` (what) -> `pip` (how).

mod driver;
pub mod fetch;
mod pip;
pub mod wheels;

use crate::owner::Trust;
use crate::place::Place;
use crate::{SetupError, python};
use std::path::{Path, PathBuf};
pub use wheels::VERSION;

/// Where libtorch came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The variable `LIBTORCH`.
    Variable,
    /// `.libtorch/torch` stood already.
    Link,
    /// A Python that has torch.
    Python,
    /// An earlier fetch of this user.
    Cache,
    /// Fetched now.
    Fetched,
}

/// Makes `.libtorch/torch` a libtorch of the right version: the first of
/// `LIBTORCH`, a link that serves already, Python's torch, the cache, pip.
///
/// # Errors
/// The named libtorch does not serve, or nothing was found and nothing could be
/// fetched.
pub fn ensure(place: &Place) -> Result<Source, SetupError> {
    let source = ensure_processor(place)?;
    // A torch of Python's or the user's own came with what it needs, or without.
    let fetched = fetch::folder(&place.cache).join("torch");
    let ours = std::fs::read_link(place.link()).is_ok_and(|target| target == fetched);
    if !ours || place.cuda == Some(false) || fetch::has_cuda(place)? {
        return Ok(source);
    }
    if place.cuda == Some(true) {
        fetch::fetch_cuda(place)?;
    } else if driver::is_here() {
        eprintln!("an NVIDIA driver is here: what libtorch needs for it is fetched, too");
        if let Err(e) = fetch::fetch_cuda(place) {
            // Everything but a GPU works.
            eprintln!(
                "GPUs cannot be used: {e}\ngoing on for the processor; OSTLER_CUDA=0 does not try again, OSTLER_CUDA=1 insists"
            );
        }
    }
    Ok(source)
}

fn ensure_processor(place: &Place) -> Result<Source, SetupError> {
    let link = place.link();
    if let Some(named) = &place.libtorch {
        let path = std::path::absolute(named).map_err(SetupError::io("find", named))?;
        check(&path).map_err(|why| SetupError::Libtorch { path: path.clone(), why })?;
        set_link(&link, &path)?;
        return Ok(Source::Variable);
    }
    let standing = check(&link);
    if standing.is_ok() {
        let cached = fetch::folder(&place.cache).join("torch");
        if std::fs::read_link(&link).is_ok_and(|target| target == cached) {
            trust(&cached)?;
        }
        return Ok(Source::Link);
    }
    if let (Err(why), Ok(meta)) = (standing, link.symlink_metadata())
        && !meta.is_symlink()
    {
        return Err(SetupError::LinkTaken { path: link, why });
    }
    let (path, source) = find_or_fetch(place)?;
    set_link(&link, &path)?;
    eprintln!("libtorch {VERSION}: {}", path.display());
    Ok(source)
}

fn find_or_fetch(place: &Place) -> Result<(PathBuf, Source), SetupError> {
    for python in python::interpreters() {
        let Some(folder) = python::torch_folder(python) else {
            continue;
        };
        match check(&folder) {
            Ok(()) => return Ok((folder, Source::Python)),
            Err(why) => eprintln!("{python}'s torch is not used: {why}"),
        }
    }
    let cached = fetch::folder(&place.cache).join("torch");
    if check(&cached).is_ok() {
        trust(&cached)?;
        return Ok((cached, Source::Cache));
    }
    let fetched_now = fetch::fetch(place)?;
    check(&cached).map_err(|why| SetupError::Unpack { folder: place.cache.clone(), why })?;
    Ok((cached, if fetched_now { Source::Fetched } else { Source::Cache }))
}

/// Refuses a libtorch of the cache that others than this user, root and whom the
/// environment names could have written: libraries, and headers, which are compiled.
fn trust(folder: &Path) -> Result<(), SetupError> {
    let trust = Trust::from_environment(&|name| std::env::var_os(name));
    let trust = trust.map_err(SetupError::TrustOwner)?;
    trust.check(folder).map_err(SetupError::Distrusted)?;
    for part in ["lib", "include"] {
        trust.below(&folder.join(part)).map_err(SetupError::Distrusted)?;
    }
    Ok(())
}

/// Whether `folder` holds what a build and a run need, in the right version.
///
/// # Errors
/// The missing or different part, as a phrase.
pub fn check(folder: &Path) -> Result<(), String> {
    let version = version(folder)?;
    if version.split('+').next() != Some(VERSION) {
        return Err(format!("{} is version {version}, not {VERSION}", folder.display()));
    }
    for file in ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/Context.h"] {
        if !folder.join(file).is_file() {
            return Err(format!("{} is missing", folder.join(file).display()));
        }
    }
    Ok(())
}

/// `2.11.0+cu130`, from `version.py` of a wheel or `build-version` of an archive.
fn version(folder: &Path) -> Result<String, String> {
    if let Ok(text) = std::fs::read_to_string(folder.join("version.py")) {
        let quoted = text.lines().find_map(|line| line.strip_prefix("__version__ = "));
        if let Some(version) = quoted {
            return Ok(version.trim().trim_matches(['\'', '"']).to_owned());
        }
    }
    std::fs::read_to_string(folder.join("build-version"))
        .map(|text| text.trim().to_owned())
        .map_err(|_| {
            format!("neither version.py nor build-version in {} names a version", folder.display())
        })
}

/// Points `link` at `target` in one step: other processes see the old or the new.
fn set_link(link: &Path, target: &Path) -> Result<(), SetupError> {
    if std::fs::read_link(link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    if link.symlink_metadata().is_ok_and(|meta| !meta.is_symlink()) {
        let why = "LIBTORCH names another".to_owned();
        return Err(SetupError::LinkTaken { path: link.into(), why });
    }
    let folder = link.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(SetupError::io("create", folder))?;
    let fresh = folder.join(format!(".torch.{}", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(target, &fresh).map_err(SetupError::io("link", &fresh))?;
    std::fs::rename(&fresh, link).map_err(SetupError::io("link", link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libtorch(folder: &Path, version: &str) {
        for file in ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/Context.h"] {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        std::fs::write(folder.join("version.py"), format!("x = 1\n__version__ = '{version}'\n"))
            .unwrap();
    }

    #[test]
    fn a_libtorch_serves_when_version_libraries_and_headers_do() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check(dir.path()).unwrap_err().contains("version.py"));
        libtorch(dir.path(), "2.11.0+cu130");
        assert_eq!(check(dir.path()), Ok(()));
        libtorch(dir.path(), "2.11.01");
        assert!(check(dir.path()).unwrap_err().contains("2.11.01, not 2.11.0"));
        std::fs::remove_file(dir.path().join("version.py")).unwrap();
        std::fs::write(dir.path().join("build-version"), "2.11.0+cpu\n").unwrap();
        assert_eq!(check(dir.path()), Ok(()));
        std::fs::remove_file(dir.path().join("include/ATen/Context.h")).unwrap();
        assert!(check(dir.path()).unwrap_err().contains("Context.h is missing"));
    }

    #[test]
    fn the_link_is_replaced_and_a_folder_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join(".libtorch/torch");
        set_link(&link, Path::new("/one")).unwrap();
        set_link(&link, Path::new("/two")).unwrap();
        assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/two"));
        assert_eq!(std::fs::read_dir(link.parent().unwrap()).unwrap().count(), 1);

        let place = Place {
            root: dir.path().join("other"),
            cache: dir.path().join("cache"),
            libtorch: None,
            cuda: None,
        };
        std::fs::create_dir_all(place.link()).unwrap();
        std::fs::write(place.link().join("mine"), "").unwrap();
        let error = ensure(&place).unwrap_err();
        assert!(matches!(error, SetupError::LinkTaken { .. }), "{error}");
        assert!(place.link().join("mine").exists());
    }
}
