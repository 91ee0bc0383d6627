//! Fetches libtorch with pip into the user's cache.
//!
//! ```text
//! CACHE/lock                   held while fetching: one process at a time
//! CACHE/wheels/*.whl           finished wheels, kept until all are unpacked
//! CACHE/wheels/.part-PID/      one pip at work; never trusted, removed later
//! CACHE/.libtorch-VERSION.PID/ being unpacked
//! CACHE/libtorch-VERSION/      complete: it came here by one rename
//! CACHE/libtorch-VERSION/cuda.txt  the libraries of a GPU are there, too: these
//! ```

use super::pip;
use super::wheels::VERSION;
use super::wheels::{List, Wheel};
use crate::place::Place;
use crate::{SetupError, python};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Unpacks wheels; Python is there anyway, for pip.
const UNPACK: &str = include_str!("unpack.py");
/// In the folder of a finished fetch: which wheels for GPUs it holds.
const CUDA: &str = "cuda.txt";

/// The folder of a finished fetch.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("libtorch-{VERSION}"))
}

/// Fetches and unpacks, unless another process has done so meanwhile; returns
/// whether it was needed.
///
/// # Errors
/// No Python, pip, network or space; a wheel with another hash.
pub fn fetch(place: &Place) -> Result<bool, SetupError> {
    let done = folder(&place.cache);
    let there = || super::check(&done.join("torch")).is_ok();
    let list = List::processor(&place.root)?;
    fetch_unless(&place.cache, there, &list.wheels, |fresh| {
        if done.exists() {
            // It did not serve, or nobody would have come here.
            fs::remove_dir_all(&done).map_err(SetupError::io("remove", &done))?;
        }
        fs::rename(fresh, &done).map_err(SetupError::io("move", &done))
    })
}

/// Whether the fetched libtorch has all that a GPU takes.
///
/// # Errors
/// The checkout lacks the list of what that is.
pub fn has_cuda(place: &Place) -> Result<bool, SetupError> {
    Ok(holds(&place.cache, &List::cuda(&place.root)?))
}

fn holds(cache: &Path, list: &List) -> bool {
    fs::read_to_string(folder(cache).join(CUDA)).is_ok_and(|text| text == list.text)
}

/// Adds what a GPU takes to a finished fetch. Programs that run with it meanwhile notice
/// nothing: files are added, none changes.
///
/// # Errors
/// As [`fetch`].
pub fn fetch_cuda(place: &Place) -> Result<bool, SetupError> {
    let done = folder(&place.cache);
    let list = List::cuda(&place.root)?;
    fetch_unless(
        &place.cache,
        || holds(&place.cache, &list),
        &list.wheels,
        |fresh| {
            merge(fresh, &done)?;
            // Last: whoever sees it finds everything.
            let (named, part) = (done.join(CUDA), done.join(".cuda.txt"));
            fs::write(&part, &list.text).map_err(SetupError::io("write", &part))?;
            fs::rename(&part, &named).map_err(SetupError::io("move", &named))?;
            let _ = fs::remove_dir_all(fresh);
            Ok(())
        },
    )
}

/// Gets the wheels, unpacks them side by side and has them moved into place.
fn fetch_unless(
    cache: &Path,
    there: impl Fn() -> bool,
    wheels: &[Wheel],
    place: impl FnOnce(&Path) -> Result<(), SetupError>,
) -> Result<bool, SetupError> {
    let store = cache.join("wheels");
    fs::create_dir_all(&store).map_err(SetupError::io("create", &store))?;
    let _lock = lock(&cache.join("lock"))?;
    if there() {
        return Ok(false);
    }
    remove_leftovers(cache, &store);
    let python = pip_python()?;
    let mut files = Vec::new();
    for wheel in wheels {
        files.push(kept(&store, wheel)?);
    }
    let missing = |(wheel, file): (&Wheel, &Option<PathBuf>)| {
        wheel.unpacked_mb + if file.is_some() { 0 } else { wheel.size_mb }
    };
    let need_mb = wheels.iter().zip(&files).map(missing).sum::<u64>();
    let have_mb = free_mb(cache);
    if have_mb.is_some_and(|have| have < need_mb) {
        return Err(SetupError::Space { folder: cache.into(), need_mb, have_mb });
    }
    let mut paths = Vec::new();
    for (wheel, file) in wheels.iter().zip(files) {
        paths.push(match file {
            Some(path) => path,
            None => pip::download(&store, wheel, python)?,
        });
    }
    let fresh = unpack(cache, &paths, python, need_mb)?;
    place(&fresh)?;
    let _ = fs::remove_dir_all(&store);
    Ok(true)
}

/// Moves every file below `from` to the same place below `to`.
fn merge(from: &Path, to: &Path) -> Result<(), SetupError> {
    fs::create_dir_all(to).map_err(SetupError::io("create", to))?;
    for entry in fs::read_dir(from).map_err(SetupError::io("read", from))? {
        let entry = entry.map_err(SetupError::io("read", from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        // A link is moved as it is.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            merge(&path, &target)?;
        } else {
            fs::rename(&path, &target).map_err(SetupError::io("move", &target))?;
        }
    }
    Ok(())
}

/// Holds other processes off until dropped.
///
/// # Errors
/// The file cannot be made.
pub fn lock(path: &Path) -> Result<File, SetupError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(SetupError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            eprintln!("another process is setting up in {}: waiting", path.display());
            file.lock().map_err(SetupError::io("lock", path))?;
        }
        // Some network file systems lock nothing. Renames keep the result whole.
        Err(fs::TryLockError::Error(error)) => {
            eprintln!("{} cannot be locked ({error}): going on without", path.display());
        }
    }
    Ok(file)
}

fn pip_python() -> Result<&'static str, SetupError> {
    let found: Vec<_> = python::interpreters().collect();
    let first = found.first().ok_or(SetupError::NoPython)?;
    let with_pip = found.iter().find(|python| python::has_pip(python));
    with_pip.copied().ok_or_else(|| SetupError::NoPip((*first).to_owned()))
}

/// The finished wheel of an earlier fetch, if its hash still holds.
fn kept(store: &Path, wheel: &Wheel) -> Result<Option<PathBuf>, SetupError> {
    // torch==2.11.0 is in torch-2.11.0-...whl; names have _ for -.
    let prefix = format!("{}-", wheel.requirement.replace('-', "_").replace("==", "-"));
    let entries = fs::read_dir(store).map_err(SetupError::io("read", store))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(&prefix) || !name.ends_with(".whl") {
            continue;
        }
        if wheel.is(&path)? {
            eprintln!("kept from an earlier fetch: {name}");
            return Ok(Some(path));
        }
        eprintln!("damaged, fetched again: {name}");
        let _ = fs::remove_file(&path);
    }
    Ok(None)
}

/// Unpacks all wheels side by side; returns where.
fn unpack(
    cache: &Path,
    wheels: &[PathBuf],
    python: &str,
    need_mb: u64,
) -> Result<PathBuf, SetupError> {
    let fresh = cache.join(format!(".libtorch-{VERSION}.{}", std::process::id()));
    let result = python::command(python)
        .args(["-c", UNPACK])
        .arg(&fresh)
        .args(wheels)
        .stdout(pip::stderr_as_output()?)
        .status()
        .map_err(SetupError::io("start", python));
    let trouble = match result?.code() {
        Some(0) => None,
        Some(28) => {
            Some(SetupError::Space { folder: cache.into(), need_mb, have_mb: free_mb(cache) })
        }
        _ => Some(SetupError::Unpack {
            folder: cache.into(),
            why: "Python's zipfile failed (its words are above); run the same command again".into(),
        }),
    };
    if let Some(trouble) = trouble {
        let _ = fs::remove_dir_all(&fresh);
        return Err(trouble);
    }
    Ok(fresh)
}

/// Files of processes that were killed: the lock is ours, so nobody works there.
fn remove_leftovers(cache: &Path, store: &Path) {
    let unpacking = format!(".libtorch-{VERSION}.");
    for (folder, prefix) in [(cache, unpacking.as_str()), (store, ".part-")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Free space for this user. (MB)
fn free_mb(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid statvfs.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a terminated string, and `stat` is live and written only.
    let code = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) };
    (code == 0).then(|| (stat.f_bavail * stat.f_frsize) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_known() {
        assert!(free_mb(Path::new("/")).is_some());
        assert_eq!(free_mb(Path::new("/no/such/folder")), None);
    }
}
