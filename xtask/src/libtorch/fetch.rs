//! Fetches libtorch with pip into the user's cache.
//!
//! ```text
//! CACHE/lock                   held while fetching: one process at a time
//! CACHE/wheels/*.whl           finished wheels, kept until all are unpacked
//! CACHE/wheels/.part-PID/      one pip at work; never trusted, removed later
//! CACHE/.libtorch-VERSION.PID/ being unpacked
//! CACHE/libtorch-VERSION/      complete: it came here by one rename
//! ```

use super::VERSION;
use crate::{SetupError, python};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The wheels with their hashes: pip's requirements, one a line.
const WHEELS: &str = include_str!("wheels.txt");
/// Verifies and unpacks; Python is there anyway, for pip.
const UNPACK: &str = include_str!("unpack.py");
/// What the unpacked wheels take. (MB)
const UNPACKED_MB: u64 = 1200;

/// One wheel to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wheel {
    /// `torch==2.11.0`
    requirement: &'static str,
    /// Lower-case hexadecimal.
    sha256: &'static str,
    /// pip's name of the platform it was built for: pip matches it exactly.
    platform: &'static str,
    /// How many megabytes will come.
    size_mb: u64,
}

/// The folder of a finished fetch.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("libtorch-{VERSION}"))
}

/// Fetches and unpacks, unless another process has done so meanwhile; returns
/// whether it was needed.
///
/// # Errors
/// No Python, pip, network or space; a wheel with another hash.
pub fn fetch(cache: &Path) -> Result<bool, SetupError> {
    let store = cache.join("wheels");
    fs::create_dir_all(&store).map_err(SetupError::io("create", &store))?;
    let _lock = lock(&cache.join("lock"))?;
    if super::check(&folder(cache).join("torch")).is_ok() {
        return Ok(false);
    }
    remove_leftovers(cache, &store);
    let python = pip_python()?;
    let wheels = wheels();
    let mut files = Vec::new();
    for wheel in &wheels {
        files.push(kept(&store, wheel, python)?);
    }
    let missing = |(wheel, file): (&Wheel, &Option<PathBuf>)| {
        if file.is_some() { 0 } else { wheel.size_mb }
    };
    let need_mb = UNPACKED_MB + wheels.iter().zip(&files).map(missing).sum::<u64>();
    let have_mb = free_mb(cache);
    if have_mb.is_some_and(|have| have < need_mb) {
        return Err(SetupError::Space {
            folder: cache.into(),
            need_mb,
            have_mb,
        });
    }
    let mut paths = Vec::new();
    for (wheel, file) in wheels.iter().zip(files) {
        paths.push(match file {
            Some(path) => path,
            None => download(&store, wheel, python)?,
        });
    }
    unpack(cache, &paths, python, need_mb)?;
    let _ = fs::remove_dir_all(&store);
    Ok(true)
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
            eprintln!(
                "another process is setting up in {}: waiting",
                path.display()
            );
            file.lock().map_err(SetupError::io("lock", path))?;
        }
        // Some network file systems lock nothing. Renames keep the result whole.
        Err(fs::TryLockError::Error(error)) => {
            eprintln!(
                "{} cannot be locked ({error}): going on without",
                path.display()
            );
        }
    }
    Ok(file)
}

fn wheels() -> Vec<Wheel> {
    WHEELS.lines().filter_map(wheel).collect()
}

fn wheel(line: &'static str) -> Option<Wheel> {
    let (requirement, sha256) = line.split_once(" --hash=sha256:")?;
    let (platform, size_mb) = match requirement.split("==").next()? {
        "nvidia-cuda-cupti" => ("manylinux_2_25_x86_64", 11),
        "nvidia-cuda-runtime" => ("manylinux2014_x86_64", 3),
        _ => ("manylinux_2_28_x86_64", 531),
    };
    Some(Wheel {
        requirement,
        sha256,
        platform,
        size_mb,
    })
}

fn pip_python() -> Result<&'static str, SetupError> {
    let found: Vec<_> = python::interpreters().collect();
    let first = found.first().ok_or(SetupError::NoPython)?;
    let with_pip = found.iter().find(|python| python::has_pip(python));
    with_pip
        .copied()
        .ok_or_else(|| SetupError::NoPip((*first).to_owned()))
}

/// The finished wheel of an earlier fetch, if its hash still holds.
fn kept(store: &Path, wheel: &Wheel, python: &str) -> Result<Option<PathBuf>, SetupError> {
    // torch==2.11.0 is in torch-2.11.0-...whl; names have _ for -.
    let prefix = format!(
        "{}-",
        wheel.requirement.replace('-', "_").replace("==", "-")
    );
    let entries = fs::read_dir(store).map_err(SetupError::io("read", store))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(&prefix) || !name.ends_with(".whl") {
            continue;
        }
        if verified(&path, wheel, python)? {
            eprintln!("kept from an earlier fetch: {name}");
            return Ok(Some(path));
        }
        eprintln!("damaged, fetched again: {name}");
        let _ = fs::remove_file(&path);
    }
    Ok(None)
}

fn verified(path: &Path, wheel: &Wheel, python: &str) -> Result<bool, SetupError> {
    let status = Command::new(python)
        .args(["-c", UNPACK, "verify", wheel.sha256])
        .arg(path)
        .status()
        .map_err(SetupError::io("start", python))?;
    Ok(status.success())
}

/// Runs pip for one wheel and moves what came into the store.
fn download(store: &Path, wheel: &Wheel, python: &str) -> Result<PathBuf, SetupError> {
    let part = store.join(format!(".part-{}", std::process::id()));
    let scratch = part.join("scratch");
    fs::create_dir_all(&scratch).map_err(SetupError::io("create", &scratch))?;
    let list = part.join("requirements.txt");
    let line = format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256);
    fs::write(&list, line).map_err(SetupError::io("write", &list))?;
    eprintln!(
        "fetching {} ({} MB) with {python} -m pip",
        wheel.requirement, wheel.size_mb
    );
    let result = pip(&part, &scratch, &list, wheel, python).and_then(|()| {
        let entries = fs::read_dir(&part).map_err(SetupError::io("read", &part))?;
        let come = entries
            .flatten()
            .map(|e| e.path())
            .find(|p| p.extension().is_some_and(|x| x == "whl"));
        let come = come.ok_or_else(|| SetupError::Pip {
            package: wheel.requirement.into(),
            tail: "nothing, but left no wheel".into(),
        })?;
        // pip has checked already; a pip that ignores --require-hashes is caught here.
        if !verified(&come, wheel, python)? {
            return Err(SetupError::Hash {
                package: wheel.requirement.into(),
            });
        }
        let path = store.join(come.file_name().unwrap_or_default());
        fs::rename(&come, &path).map_err(SetupError::io("move", &path))?;
        Ok(path)
    });
    let _ = fs::remove_dir_all(&part);
    result
}

fn pip(
    part: &Path,
    scratch: &Path,
    list: &Path,
    wheel: &Wheel,
    python: &str,
) -> Result<(), SetupError> {
    // pip's own progress goes where ours goes: standard output is the program's.
    let progress = std::io::stderr();
    let shown = progress.is_terminal();
    let mut child = Command::new(python)
        .args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
        ])
        .args([
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args(["--python-version", "3.12", "--implementation", "cp"])
        .args(["--platform", wheel.platform, "--requirement"])
        .arg(list)
        .arg("--dest")
        .arg(part)
        // Half a gigabyte: not in a small /tmp.
        .env("TMPDIR", scratch)
        .env("PIP_REQUIRE_VIRTUALENV", "false")
        .stdin(Stdio::null())
        .stdout(stderr_as_output()?)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(SetupError::io("start", python))?;
    let complaint = listen(&mut child);
    let status = loop {
        if let Some(status) = child
            .try_wait()
            .map_err(SetupError::io("wait for", python))?
        {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
        if !shown {
            complaint.report_growth(scratch, wheel);
        }
    };
    let said = complaint.finish();
    if status.success() {
        Ok(())
    } else {
        Err(understand(&said, part, wheel))
    }
}

/// pip's standard error, echoed and remembered.
struct Complaint {
    reader: Option<std::thread::JoinHandle<String>>,
    told: std::cell::Cell<Instant>,
}

fn listen(child: &mut Child) -> Complaint {
    let reader = child.stderr.take().map(|stream| {
        std::thread::spawn(move || {
            let mut said = String::new();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                eprintln!("{line}");
                said.push_str(&line);
                said.push('\n');
            }
            said
        })
    });
    Complaint {
        reader,
        told: std::cell::Cell::new(Instant::now()),
    }
}

impl Complaint {
    /// Where no bar can be shown: a line every five seconds.
    fn report_growth(&self, scratch: &Path, wheel: &Wheel) {
        if self.told.get().elapsed() >= Duration::from_secs(5) {
            self.told.set(Instant::now());
            eprintln!(
                "  {}: {} of {} MB",
                wheel.requirement,
                size(scratch) >> 20,
                wheel.size_mb
            );
        }
    }

    fn finish(self) -> String {
        self.reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    }
}

/// Which of the known troubles pip's words describe.
fn understand(said: &str, part: &Path, wheel: &Wheel) -> SetupError {
    let package = wheel.requirement.to_owned();
    let low = said.to_lowercase();
    let any = |needles: &[&str]| needles.iter().any(|needle| low.contains(needle));
    if any(&["do not match the hashes", "hash mismatch"]) {
        return SetupError::Hash { package };
    }
    let cache = part.ancestors().nth(2).unwrap_or(part);
    if any(&["no space left", "errno 28", "disk quota exceeded"]) {
        let need_mb = UNPACKED_MB + wheel.size_mb;
        return SetupError::Space {
            folder: cache.into(),
            need_mb,
            have_mb: None,
        };
    }
    if any(&[
        "max retries exceeded",
        "newconnectionerror",
        "failed to establish",
        "name resolution",
        "network is unreachable",
        "timed out",
        "timeout",
        "connection broken",
        "connection reset",
        "connectionerror",
        "incompleteread",
        "proxyerror",
        "cannot connect to proxy",
        "certificate verify failed",
        "ssl error",
    ]) {
        return SetupError::Network {
            package,
            kept: cache.join("wheels"),
        };
    }
    let lines: Vec<_> = said.lines().collect();
    let tail = lines[lines.len().saturating_sub(8)..].join("\n");
    SetupError::Pip { package, tail }
}

/// Unpacks all wheels side by side and moves the result into place at once.
fn unpack(cache: &Path, wheels: &[PathBuf], python: &str, need_mb: u64) -> Result<(), SetupError> {
    let fresh = cache.join(format!(".libtorch-{VERSION}.{}", std::process::id()));
    let result = Command::new(python)
        .args(["-c", UNPACK, "unpack"])
        .arg(&fresh)
        .args(wheels)
        .stdout(stderr_as_output()?)
        .status()
        .map_err(SetupError::io("start", python));
    let trouble = match result?.code() {
        Some(0) => None,
        Some(28) => Some(SetupError::Space {
            folder: cache.into(),
            need_mb,
            have_mb: free_mb(cache),
        }),
        _ => Some(SetupError::Unpack {
            folder: cache.into(),
            why: "Python's zipfile failed (its words are above); run the same command again".into(),
        }),
    };
    if let Some(trouble) = trouble {
        let _ = fs::remove_dir_all(&fresh);
        return Err(trouble);
    }
    let done = folder(cache);
    if done.exists() {
        // It did not serve, or nobody would have come here.
        fs::remove_dir_all(&done).map_err(SetupError::io("remove", &done))?;
    }
    fs::rename(&fresh, &done).map_err(SetupError::io("move", &done))
}

/// What processes left that were killed: the lock is ours, so nobody works there.
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

fn stderr_as_output() -> Result<Stdio, SetupError> {
    use std::os::fd::AsFd;
    let copy = std::io::stderr().as_fd().try_clone_to_owned();
    Ok(Stdio::from(
        copy.map_err(SetupError::io("duplicate", "standard error"))?,
    ))
}

/// Bytes below `folder`.
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
    fn every_wheel_has_a_version_a_hash_and_a_platform() {
        let wheels = wheels();
        assert_eq!(wheels.len(), 3);
        assert!(
            wheels
                .iter()
                .any(|w| w.requirement == format!("torch=={VERSION}"))
        );
        for wheel in wheels {
            assert_eq!(wheel.sha256.len(), 64, "{wheel:?}");
            assert!(
                wheel.sha256.bytes().all(|b| b.is_ascii_hexdigit()),
                "{wheel:?}"
            );
        }
    }

    #[test]
    fn pips_words_are_understood() {
        let wheel = wheels().remove(0);
        let part = Path::new("/c/wheels/.part-1");
        let of = |said: &str| understand(said, part, &wheel);
        assert!(matches!(
            of("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
            SetupError::Hash { .. }
        ));
        assert!(matches!(
            of("OSError: [Errno 28] No space left on device"),
            SetupError::Space { .. }
        ));
        let network = of(
            "WARNING: Retrying after connection broken by 'NewConnectionError'\n\
             ERROR: No matching distribution found for torch==2.11.0",
        );
        assert!(
            matches!(&network, SetupError::Network { kept, .. } if kept == Path::new("/c/wheels"))
        );
        let other = of("ERROR: something new").to_string();
        assert!(
            other.contains("something new") && other.contains("LIBTORCH="),
            "{other}"
        );
    }

    #[test]
    fn free_space_is_known() {
        assert!(free_mb(Path::new("/")).is_some());
        assert_eq!(free_mb(Path::new("/no/such/folder")), None);
    }
}
