//! A Python of its own for the tests' referees: MuJoCo, Gymnasium, numpy,
//! TensorBoard, as `tests/referee/requirements.txt` pins them; and, on request, one for the
//! learners of other libraries.

use crate::libtorch::fetch;
use crate::owner::Trust;
use crate::place::{Place, REFEREE};
use crate::{SetupError, python};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that tells tests where the peers' own code is.
pub const PEERS: &str = "OSTLER_PEERS";

/// The variable that tells tests where a Python with the learners of other libraries is.
pub const LEARNERS: &str = "OSTLER_LEARNERS_PYTHON";

/// The environment in a cache for a list of requirements. One for each list: an older
/// checkout keeps its own.
pub fn folder(cache: &Path, requirements: &str) -> PathBuf {
    named(cache, "referee", requirements)
}

fn named(cache: &Path, prefix: &str, requirements: &str) -> PathBuf {
    cache.join(format!("{prefix}-{:016x}", fnv1a(requirements.as_bytes())))
}

/// The interpreter: the one named by [`REFEREE`], which is the user's own choice, or that
/// of an environment in the cache, which is built the first time.
///
/// # Errors
/// No Python that can build one, or pip fails; others than trusted users could have written
/// something of the environment.
pub fn ensure(place: &Place) -> Result<PathBuf, SetupError> {
    if let Some(named) = std::env::var_os(REFEREE).filter(|v| !v.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let list = place.root.join("tests/referee/requirements.txt");
    environment(place, "referee", &list, "the tests' referees")
}

/// Installs the learners of other libraries, some gigabytes, that the adapters of `python/` are
/// tested with, as `python/tests/learners.txt` pins them. Returns the interpreter.
///
/// # Errors
/// As [`ensure`].
pub fn install_learners(place: &Place) -> Result<PathBuf, SetupError> {
    let list = place.root.join(LEARNERS_LIST);
    environment(place, "learners", &list, "learners of other libraries")
}

const LEARNERS_LIST: &str = "python/tests/learners.txt";

/// The interpreter that [`install_learners`] has installed before; nothing is installed here.
///
/// # Errors
/// Others than trusted users could have written something of it.
pub fn learners(place: &Place) -> Result<Option<PathBuf>, SetupError> {
    let Ok(wanted) = fs::read_to_string(place.root.join(LEARNERS_LIST)) else {
        return Ok(None);
    };
    let folder = named(&place.cache, "learners", &wanted);
    let interpreter = folder.join("bin/python");
    if !folder.join("complete").is_file() || !interpreter.is_file() {
        return Ok(None);
    }
    let trust = Trust::from_environment(&|name| std::env::var_os(name));
    let trust = trust.map_err(SetupError::TrustOwner)?;
    trusted(&trust, &folder).map(|()| Some(interpreter))
}

/// A Python environment of its own in the cache, `PREFIX-HASH`, with what `list` pins; built the
/// first time. Returns its interpreter.
///
/// # Errors
/// As [`ensure`].
pub fn environment(
    place: &Place,
    prefix: &str,
    list: &Path,
    what: &str,
) -> Result<PathBuf, SetupError> {
    let wanted = fs::read_to_string(list).map_err(SetupError::io("read", list))?;
    let trust = Trust::from_environment(&|name| std::env::var_os(name));
    let trust = trust.map_err(SetupError::TrustOwner)?;
    let folder = named(&place.cache, prefix, &wanted);
    let interpreter = folder.join("bin/python");
    // Written last: an environment without it was cut short.
    let complete = folder.join("complete");
    let there = || complete.is_file() && interpreter.is_file();
    if there() {
        return trusted(&trust, &folder).map(|()| interpreter);
    }
    fs::create_dir_all(&place.cache).map_err(SetupError::io("create", &place.cache))?;
    // Where others may write, they could change what is installed.
    let cache = trust.check(&place.cache);
    cache.map_err(SetupError::DistrustedReferee)?;
    let _lock = fetch::lock(&place.cache.join("referee.lock"))?;
    if there() {
        return trusted(&trust, &folder).map(|()| interpreter);
    }
    let _ = fs::remove_dir_all(&folder);
    let python = python::interpreters().next().ok_or_else(|| {
        SetupError::Referee(
            "neither python3 nor python is in PATH; install Python 3.11 or newer".into(),
        )
    })?;
    eprintln!("setting up {what} in {}", folder.display());
    step(
        python::command(python).args(["-m", "venv"]).arg(&folder),
        "the module venv fails (Debian: apt install python3-venv)",
    )?;
    let mut pip = python::command(&interpreter);
    pip.args([
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--quiet",
        "--only-binary=:all:",
        "--require-hashes",
    ])
    .env("PIP_REQUIRE_VIRTUALENV", "false")
    .arg("--requirement")
    .arg(list);
    step(
        &mut pip,
        "pip fails (its words are above; Python 3.11 or newer and a network are needed)",
    )?;
    fs::write(&complete, wanted).map_err(SetupError::io("write", complete))?;
    forget_others(&place.cache, prefix, &folder);
    Ok(interpreter)
}

/// The folder with the peers' own code: the one named by [`PEERS`], or one in the cache, which is
/// filled the first time by the referees' `interpreter`. None of an older checkout, which has no
/// list of it.
///
/// # Errors
/// As [`ensure`].
pub fn ensure_peers(place: &Place, interpreter: &Path) -> Result<Option<PathBuf>, SetupError> {
    if let Some(named) = std::env::var_os(PEERS).filter(|v| !v.is_empty()) {
        return Ok(Some(PathBuf::from(named)));
    }
    let list = place.root.join("tests/referee/peers.txt");
    if !list.is_file() {
        return Ok(None);
    }
    let wanted = fs::read_to_string(&list).map_err(SetupError::io("read", &list))?;
    let trust = Trust::from_environment(&|name| std::env::var_os(name));
    let trust = trust.map_err(SetupError::TrustOwner)?;
    let folder = place.cache.join(format!("peers-{:016x}", fnv1a(wanted.as_bytes())));
    let complete = folder.join("complete");
    fs::create_dir_all(&place.cache).map_err(SetupError::io("create", &place.cache))?;
    let cache = trust.check(&place.cache);
    cache.map_err(SetupError::DistrustedReferee)?;
    let _lock = fetch::lock(&place.cache.join("referee.lock"))?;
    if complete.is_file() {
        return trusted(&trust, &folder).map(|()| Some(folder));
    }
    let _ = fs::remove_dir_all(&folder);
    eprintln!("fetching the peers' own code into {}", folder.display());
    let mut pip = python::command(interpreter);
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"])
        .args(["--only-binary=:all:", "--require-hashes", "--no-deps"])
        // Nothing of it is compiled for a Python or a machine, whatever the wheels are called.
        .args(["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"])
        .args(["--abi", "none", "--platform", "manylinux_2_35_x86_64", "--platform", "any"])
        .arg("--target")
        .arg(&folder)
        .arg("--requirement")
        .arg(&list)
        .env("PIP_REQUIRE_VIRTUALENV", "false");
    step(&mut pip, "pip fails (its words are above; a network is needed)")?;
    fs::write(&complete, wanted).map_err(SetupError::io("write", complete))?;
    Ok(Some(folder))
}

/// Refuses an environment of which others than trusted users could have written anything:
/// Python runs whatever module it finds there.
fn trusted(trust: &Trust, folder: &Path) -> Result<(), SetupError> {
    let checked = trust.check(folder).and_then(|()| trust.below(folder));
    checked.map_err(SetupError::DistrustedReferee)
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo): the same under every Rust.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn step(command: &mut Command, trouble: &str) -> Result<(), SetupError> {
    // Standard output stays the caller's.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(SetupError::Referee(trouble.to_owned())),
        Err(error) => Err(SetupError::Referee(format!("{trouble}: {error}"))),
    }
}

/// Removes environments that were cut short; complete ones may serve others.
fn forget_others(cache: &Path, prefix: &str, current: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(&format!("{prefix}-"));
        if ours && path != current && path.is_dir() && !path.join("complete").exists() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_gives_the_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
