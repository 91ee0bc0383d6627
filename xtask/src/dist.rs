//! `cargo xtask dist`: the wheel and the tarball, for machines without Rust.
//!
//! The wheel has the Python package `ostler` with its extension, the shipped configurations and
//! the program, which finds libtorch in the PyTorch beside it. The tarball has the program and the
//! configurations; its `INSTALL.txt` says where libtorch belongs. `dist/check.py` installs and
//! tries both.

use crate::place::Place;
use crate::{SetupError, cargo, libtorch, python, referee};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells the trainer's build script that the program leaves this machine.
const VARIABLE: &str = "OSTLER_DIST";

/// What is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// The environments and the program.
    All,
    /// The environments alone: no libtorch is needed to build them.
    Environments,
}

/// Builds everything into `out`; returns the files.
///
/// # Errors
/// No compiler, no Python, a build fails, or the program wants a newer C library than the wheel
/// says.
pub fn dist(place: &Place, out: &Path, parts: Parts) -> Result<Vec<PathBuf>, SetupError> {
    if !cargo::has_cpp_compiler() {
        return Err(SetupError::NoCompiler);
    }
    // All crates, also those that tests alone need: the list of licences asks for them.
    cargo::run(place, &FETCH)?;
    let list = place.root.join("xtask/src/dist/requirements.txt");
    let python = referee::environment(place, "dist", &list, "what builds wheels")?;
    let package = place.root.join("python/ostler");
    // What was left by a build that was cut.
    let (configs, bin) = (package.join("configs"), package.join("bin"));
    for folder in [&configs, &bin] {
        let _ = fs::remove_dir_all(folder);
    }
    let notices = package.join(NOTICES);
    let _clean = Clean(vec![configs.clone(), bin.clone(), notices.clone()]);
    // What can fail in a second does before what takes minutes.
    write_notices(place, &python, &notices)?;
    copy_configs(&place.root.join("configs"), &configs)?;
    let mut files = Vec::new();
    let mut program = None;
    if parts == Parts::All {
        libtorch::ensure(place)?;
        let built = build_program(place)?;
        create(&bin)?;
        let packed = bin.join("ostler");
        copy(&built, &packed)?;
        program = Some(built);
    }
    let wheel = build_wheel(place, &python, out)?;
    if let Some(program) = &program {
        let (needs, says) = (newest_glibc(program)?, tag(&wheel));
        if says.is_some_and(|says| needs > says) {
            let (a, b) = needs;
            return Err(SetupError::Referee(format!(
                "the program needs glibc {a}.{b}, and {} says less",
                wheel.display()
            )));
        }
        files.push(pack(place, program, &notices, out)?);
    }
    files.push(wheel);
    Ok(files)
}

/// Fetches the crates of `Cargo.lock`, for the platform of what is packed.
const FETCH: [&str; 4] = ["fetch", "--locked", "--target", "x86_64-unknown-linux-gnu"];
/// Licences of what is linked in.
const NOTICES: &str = "THIRD-PARTY.txt";

/// Writes them; the crates' sources are here by now, whether anything is built or not.
fn write_notices(place: &Place, python: &Path, to: &Path) -> Result<(), SetupError> {
    let mut script = python::command(python);
    cargo::clean(&mut script, place);
    script.arg(place.root.join("xtask/src/dist/notices.py")).arg(to).current_dir(&place.root);
    run(&mut script, "notices.py")
}

/// Removes folders and files when it goes.
struct Clean(Vec<PathBuf>);

impl Drop for Clean {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = match path.is_dir() {
                true => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
        }
    }
}

fn create(folder: &Path) -> Result<(), SetupError> {
    fs::create_dir_all(folder).map_err(SetupError::io("create", folder))
}

fn copy(from: &Path, to: &Path) -> Result<(), SetupError> {
    fs::copy(from, to).map(drop).map_err(SetupError::io("copy", from))
}

/// The configurations and their robots; not the regression's.
fn copy_configs(from: &Path, to: &Path) -> Result<(), SetupError> {
    for (from, to) in
        [(from.to_path_buf(), to.to_path_buf()), (from.join("robots"), to.join("robots"))]
    {
        create(&to)?;
        let entries = fs::read_dir(&from).map_err(SetupError::io("read", &from))?;
        for entry in entries.flatten().filter(|e| e.path().is_file()) {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The program for all instruction sets. It looks for nothing in a folder of this machine.
fn build_program(place: &Place) -> Result<PathBuf, SetupError> {
    let args = ["build", "--release", "--bin", "ostler"];
    // A folder of its own: the developer's program keeps its paths.
    let target = place.root.join("target/dist");
    let status = cargo::command(place)
        .args(args)
        .env(VARIABLE, "1")
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .map_err(SetupError::io("start", "cargo"))?;
    match status.success() {
        true => Ok(target.join("release/ostler")),
        false => {
            Err(SetupError::Cargo { command: args.join(" "), code: status.code().unwrap_or(101) })
        }
    }
}

/// Builds the wheel with the tag that its extension is granted.
fn build_wheel(place: &Place, python: &Path, out: &Path) -> Result<PathBuf, SetupError> {
    create(out)?;
    let earlier = wheels(out)?;
    for wheel in &earlier {
        fs::remove_file(wheel).map_err(SetupError::io("remove", wheel))?;
    }
    let mut maturin = python::command(python);
    cargo::clean(&mut maturin, place);
    maturin
        .args(["-m", "maturin", "build", "--release", "--locked"])
        .arg("--manifest-path")
        .arg(place.root.join("python/Cargo.toml"))
        .arg("--interpreter")
        .arg(python)
        .arg("--target-dir")
        .arg(place.root.join("target/dist"))
        .arg("--out")
        .arg(out)
        .current_dir(&place.root);
    run(&mut maturin, "maturin")?;
    let mut built = wheels(out)?;
    built.pop().ok_or(SetupError::NoProgram)
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>, SetupError> {
    let entries = fs::read_dir(folder).map_err(SetupError::io("read", folder))?;
    let paths = entries.flatten().map(|e| e.path());
    Ok(paths.filter(|p| p.extension().is_some_and(|e| e == "whl")).collect())
}

fn run(command: &mut Command, what: &'static str) -> Result<(), SetupError> {
    let status = command.status().map_err(SetupError::io("start", what))?;
    match status.success() {
        true => Ok(()),
        false => {
            Err(SetupError::Cargo { command: what.into(), code: status.code().unwrap_or(101) })
        }
    }
}

/// What the tarball says first.
const INSTALL: &str = include_str!("dist/INSTALL.txt");

/// `ostler-VERSION-x86_64-linux.tar.gz`: `bin/ostler`, `configs`, licences, `INSTALL.txt`, `THIRD-PARTY.txt`.
fn pack(place: &Place, program: &Path, notices: &Path, out: &Path) -> Result<PathBuf, SetupError> {
    let name = format!("ostler-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let stage = place.root.join("target/dist/stage");
    let _ = fs::remove_dir_all(&stage);
    let folder = stage.join(&name);
    create(&folder.join("bin"))?;
    copy(program, &folder.join("bin/ostler"))?;
    copy_configs(&place.root.join("configs"), &folder.join("configs"))?;
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&place.root.join(file), &folder.join(file))?;
    }
    copy(notices, &folder.join(NOTICES))?;
    let install = folder.join("INSTALL.txt");
    fs::write(&install, INSTALL).map_err(SetupError::io("write", &install))?;
    let file = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&stage).args(["--owner=0", "--group=0", "-czf"]).arg(&file).arg(&name);
    run(&mut tar, "tar")?;
    Ok(file)
}

/// The glibc of a wheel's tag: `manylinux_2_34`.
fn tag(wheel: &Path) -> Option<(u32, u32)> {
    let name = wheel.file_name()?.to_str()?;
    let tags = name.split("manylinux_").skip(1);
    tags.filter_map(|tag| {
        let mut parts = tag.split('_').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    })
    .min()
}

/// The newest version of glibc's symbols that a program asks for.
fn newest_glibc(program: &Path) -> Result<(u32, u32), SetupError> {
    let bytes = fs::read(program).map_err(SetupError::io("read", program))?;
    Ok(newest_in(&bytes))
}

fn newest_in(bytes: &[u8]) -> (u32, u32) {
    const PREFIX: &[u8] = b"\0GLIBC_";
    let places = bytes.windows(PREFIX.len()).enumerate();
    let found = places.filter(|(_, w)| *w == PREFIX).filter_map(|(at, _)| {
        let rest = &bytes[at + PREFIX.len()..];
        let end = rest.iter().position(|b| *b == 0)?;
        let text = std::str::from_utf8(rest.get(..end)?).ok()?;
        let mut parts = text.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    found.max().unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_and_the_tag_are_read() {
        let names = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_PRIVATE\0GLIBC_2.9\0";
        assert_eq!(newest_in(names), (2, 34));
        assert_eq!(newest_in(b"nothing"), (0, 0));
        let wheel = "ostler-0.1.0-cp310-abi3-manylinux_2_34_x86_64.whl";
        assert_eq!(tag(Path::new(wheel)), Some((2, 34)));
        let both = "x-1-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
        assert_eq!(tag(Path::new(both)), Some((2, 17)));
        assert_eq!(tag(Path::new("x-1-cp310-abi3-linux_x86_64.whl")), None);
    }

    #[test]
    fn configurations_come_with_their_robots_and_without_the_regressions() {
        let folder = tempfile::tempdir().unwrap();
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        copy_configs(&configs, folder.path()).unwrap();
        for file in ["cartpole.toml", "robots/cartpole.xml"] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
        assert!(!folder.path().join("regress").exists());
    }
}
