//! Everything a machine with a GPU needs to run the GPU's tests and benchmarks, without
//! Rust: programs, configurations, one driver script (`xtask/gpu/run.py`).

use crate::place::Place;
use crate::{SetupError, cargo, libtorch, referee};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes that one part may have.
const PART: u64 = 60 << 20;
const DRIVER: &str = include_str!("../gpu/run.py");
const VERSUS: &str = include_str!("../gpu/versus.py");
const ITEMS: &str = include_str!("../gpu/bundle.json");

/// Builds the programs and packs them below `out`, in one folder `part-K` or several;
/// returns the folders.
///
/// # Errors
/// Something does not build, or cannot be written.
pub fn bundle(place: &Place, out: &Path) -> Result<Vec<PathBuf>, SetupError> {
    libtorch::ensure(place)?;
    let programs = [
        ("ostler", cargo::build_ostler(place, None)?),
        (
            "gpu",
            build_tests(place, &["--workspace", "--test", "gpu"])?,
        ),
        (
            "cuda",
            build_tests(place, &["-p", "ostler-sim", "--test", "cuda"])?,
        ),
    ];
    let parts = pack(
        &programs,
        &place.root.join("configs"),
        &commit(place),
        out,
        PART,
    )?;
    match humanoid(place) {
        Ok(model) => {
            for part in &parts {
                let to = part.join("configs/robots/humanoid.xml");
                fs::copy(&model, &to).map_err(SetupError::io("write", &to))?;
            }
        }
        Err(why) => eprintln!("the humanoid is not packed and not measured: {why}"),
    }
    Ok(parts)
}

/// Gymnasium's, among the tests' referees: not ours to ship, but what others publish
/// figures of.
fn humanoid(place: &Place) -> Result<PathBuf, SetupError> {
    const FIND: &str = "import importlib.util, os
home = os.path.dirname(importlib.util.find_spec('gymnasium').origin)
print(os.path.join(home, 'envs', 'mujoco', 'assets', 'humanoid.xml'))";
    let python = referee::ensure(place)?;
    let out = Command::new(&python).args(["-c", FIND]).output();
    let out = out.map_err(SetupError::io("start", &python))?;
    if !out.status.success() {
        let python = python.display();
        return Err(SetupError::Referee(format!("{python} has no Gymnasium")));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().into())
}

/// A program of tests, as `cargo test` builds it.
fn build_tests(place: &Place, which: &[&str]) -> Result<PathBuf, SetupError> {
    let args = [&["test", "--no-run"], which].concat();
    cargo::build(place, &args, |line| line.contains("\"kind\":[\"test\"]"))
}

/// The commit that is packed, with a mark where files differ from it.
fn commit(place: &Place) -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git")
            .args(args)
            .current_dir(&place.root)
            .output();
        let out = out.ok().filter(|o| o.status.success());
        out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "-uno"]).is_some_and(|s| !s.is_empty());
    let mark = if changed { "+changes" } else { "" };
    commit.map_or("unknown".into(), |c| format!("{c}{mark}"))
}

/// Writes the folders: programs in the order given, as many in one as there is room for.
///
/// # Errors
/// A program is larger than a part; something cannot be written.
pub fn pack(
    programs: &[(&str, PathBuf)],
    configs: &Path,
    commit: &str,
    out: &Path,
    limit: u64,
) -> Result<Vec<PathBuf>, SetupError> {
    if out.join("part-1").exists() {
        fs::remove_dir_all(out).map_err(SetupError::io("remove", out))?;
    }
    let (mut parts, mut used): (Vec<PathBuf>, u64) = (Vec::new(), u64::MAX);
    for (name, from) in programs {
        let stripped = out.join(name);
        fs::create_dir_all(out).map_err(SetupError::io("make", out))?;
        strip(from, &stripped)?;
        let size = fs::metadata(&stripped)
            .map_err(SetupError::io("look at", &stripped))?
            .len();
        if size > limit {
            return Err(SetupError::Usage(format!(
                "{name} has {} MiB, a part may have {}: build it without debug information",
                size >> 20,
                limit >> 20
            )));
        }
        let part = match parts.last() {
            Some(part) if used.saturating_add(size) <= limit => part.clone(),
            _ => {
                let part = out.join(format!("part-{}", parts.len() + 1));
                used = frame(&part, configs, commit)?;
                parts.push(part.clone());
                part
            }
        };
        used += size;
        let to = part.join("bin").join(name);
        fs::rename(&stripped, &to).map_err(SetupError::io("write", &to))?;
    }
    Ok(parts)
}

/// A part without programs; returns its bytes.
fn frame(part: &Path, configs: &Path, commit: &str) -> Result<u64, SetupError> {
    let bin = part.join("bin");
    fs::create_dir_all(&bin).map_err(SetupError::io("make", &bin))?;
    let items = ITEMS.replace("$COMMIT", commit);
    for (name, text) in [
        ("run.py", DRIVER),
        ("versus.py", VERSUS),
        ("bundle.json", &items),
    ] {
        let path = part.join(name);
        fs::write(&path, text).map_err(SetupError::io("write", &path))?;
    }
    copy(configs, &part.join("configs"))
}

/// A folder with all that is in it; returns its bytes.
fn copy(from: &Path, to: &Path) -> Result<u64, SetupError> {
    fs::create_dir_all(to).map_err(SetupError::io("make", to))?;
    let mut bytes = 0;
    for entry in fs::read_dir(from).map_err(SetupError::io("read", from))? {
        let path = entry.map_err(SetupError::io("read", from))?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        let to = to.join(name);
        bytes += match path.is_dir() {
            true => copy(&path, &to)?,
            false => fs::copy(&path, &to).map_err(SetupError::io("copy", &path))?,
        };
    }
    Ok(bytes)
}

/// A program without symbols; as it is where there is no `strip`.
fn strip(from: &Path, to: &Path) -> Result<(), SetupError> {
    let done = Command::new("strip")
        .arg("-o")
        .arg(to)
        .arg(from)
        .stderr(Stdio::null())
        .status();
    if done.is_ok_and(|s| s.success()) {
        return Ok(());
    }
    fs::copy(from, to)
        .map(drop)
        .map_err(SetupError::io("copy", from))
}
