//! pip at work: one wheel at a time, its progress and its complaints.

use super::wheels::Wheel;
use crate::{SetupError, python};
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Runs pip for one wheel and moves what came into the store.
pub(super) fn download(store: &Path, wheel: &Wheel, python: &str) -> Result<PathBuf, SetupError> {
    let part = store.join(format!(".part-{}", std::process::id()));
    let scratch = part.join("scratch");
    fs::create_dir_all(&scratch).map_err(SetupError::io("create", &scratch))?;
    let list = part.join("requirements.txt");
    let line = format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256);
    fs::write(&list, line).map_err(SetupError::io("write", &list))?;
    eprintln!("fetching {} ({} MB) with {python} -m pip", wheel.requirement, wheel.size_mb);
    let result = pip(&part, &scratch, &list, wheel, python).and_then(|()| {
        let entries = fs::read_dir(&part).map_err(SetupError::io("read", &part))?;
        let come =
            entries.flatten().map(|e| e.path()).find(|p| p.extension().is_some_and(|x| x == "whl"));
        let come = come.ok_or_else(|| SetupError::Pip {
            package: wheel.requirement.clone(),
            tail: "nothing, but left no wheel".into(),
        })?;
        // pip has checked already; a pip that ignores --require-hashes is caught here.
        if !wheel.is(&come)? {
            return Err(SetupError::Hash { package: wheel.requirement.clone() });
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
    let mut child = python::command(python)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"])
        .args(["--no-cache-dir", "--disable-pip-version-check", "--no-input"])
        .args(["--python-version", "3.12", "--implementation", "cp"])
        .args(["--platform", wheel.platform.as_str(), "--requirement"])
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
        if let Some(status) = child.try_wait().map_err(SetupError::io("wait for", python))? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
        if !shown {
            complaint.report_growth(scratch, wheel);
        }
    };
    let said = complaint.finish();
    if status.success() { Ok(()) } else { Err(understand(&said, part, wheel)) }
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
    Complaint { reader, told: std::cell::Cell::new(Instant::now()) }
}

impl Complaint {
    /// Where no bar can be shown: a line every five seconds.
    fn report_growth(&self, scratch: &Path, wheel: &Wheel) {
        if self.told.get().elapsed() >= Duration::from_secs(5) {
            self.told.set(Instant::now());
            eprintln!("  {}: {} of {} MB", wheel.requirement, size(scratch) >> 20, wheel.size_mb);
        }
    }

    fn finish(self) -> String {
        self.reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    }
}

/// Which of the known troubles pip's words describe.
fn understand(said: &str, part: &Path, wheel: &Wheel) -> SetupError {
    let package = wheel.requirement.clone();
    let low = said.to_lowercase();
    let any = |needles: &[&str]| needles.iter().any(|needle| low.contains(needle));
    if any(&["do not match the hashes", "hash mismatch"]) {
        return SetupError::Hash { package };
    }
    let cache = part.ancestors().nth(2).unwrap_or(part);
    if any(&["no space left", "errno 28", "disk quota exceeded"]) {
        let need_mb = wheel.unpacked_mb + wheel.size_mb;
        return SetupError::Space { folder: cache.into(), need_mb, have_mb: None };
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
        return SetupError::Network { package, kept: cache.join("wheels") };
    }
    let lines: Vec<_> = said.lines().collect();
    let tail = lines[lines.len().saturating_sub(8)..].join("\n");
    SetupError::Pip { package, tail }
}

pub(super) fn stderr_as_output() -> Result<Stdio, SetupError> {
    use std::os::fd::AsFd;
    let copy = std::io::stderr().as_fd().try_clone_to_owned();
    Ok(Stdio::from(copy.map_err(SetupError::io("duplicate", "standard error"))?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pips_words_are_understood() {
        let wheel = Wheel {
            requirement: "torch==2.11.0".into(),
            sha256: "0".repeat(64),
            platform: "manylinux".into(),
            size_mb: 531,
            unpacked_mb: 1160,
        };
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
        let network = of("WARNING: Retrying after connection broken by 'NewConnectionError'\n\
             ERROR: No matching distribution found for torch==2.11.0");
        assert!(
            matches!(&network, SetupError::Network { kept, .. } if kept == Path::new("/c/wheels"))
        );
        let other = of("ERROR: something new").to_string();
        assert!(other.contains("something new") && other.contains("LIBTORCH="), "{other}");
    }
}
