//! cargo, started so that it builds what a cargo typed by hand would build.

use crate::SetupError;
use crate::place::Place;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Removes what the outer `cargo run` put into the environment, so that neither
/// an inner cargo nor the program sees another world than from a shell:
/// `LIBTORCH` comes from `.cargo/config.toml`, as for every plain build.
pub fn clean(command: &mut Command, place: &Place) {
    for (name, _) in std::env::vars_os() {
        if from_outer_cargo(&name) {
            command.env_remove(name);
        }
    }
    command.env_remove("LIBTORCH").env_remove("LIBTORCH_USE_PYTORCH");
    if let Some(paths) = std::env::var_os("LD_LIBRARY_PATH") {
        let kept: Vec<_> = std::env::split_paths(&paths)
            .filter(|path| !added_by_cargo(path, &place.root))
            .collect();
        match std::env::join_paths(&kept) {
            Ok(kept) if !kept.is_empty() => command.env("LD_LIBRARY_PATH", kept),
            _ => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
}

/// Variables that cargo sets for what it runs, not those a user sets for cargo.
fn from_outer_cargo(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    ["CARGO_PKG_", "CARGO_BIN_", "CARGO_MANIFEST_"].iter().any(|p| name.starts_with(p))
        || matches!(name, "CARGO" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE" | "OUT_DIR")
}

fn added_by_cargo(path: &Path, root: &Path) -> bool {
    path.starts_with(root.join("target"))
        || path.components().any(|part| part.as_os_str() == "rustlib")
        || path.parent().is_some_and(|toolchain| toolchain.join("bin/rustc").is_file())
}

/// A cargo command in the checkout, its environment [`clean`].
pub fn command(place: &Place) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    clean(&mut command, place);
    command.current_dir(&place.root);
    command
}

/// Runs cargo with its output on ours.
///
/// # Errors
/// It cannot be started, or fails.
pub fn run(place: &Place, args: &[&str]) -> Result<(), SetupError> {
    succeeds(command(place).args(args))
}

/// The same of a [`command`] with its arguments.
///
/// # Errors
/// Likewise.
pub fn succeeds(command: &mut Command) -> Result<(), SetupError> {
    let status = command.status().map_err(SetupError::io("start", "cargo"))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(command, status.code().unwrap_or(101))),
    }
}

/// A command that ended with this code.
pub fn failed(command: &Command, code: i32) -> SetupError {
    let args: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    SetupError::Cargo { command: args.join(" "), code }
}

/// Builds `ostler` in release mode, with these of its features or all, and returns where it is.
///
/// # Errors
/// No compiler, or cargo fails.
pub fn build_ostler(place: &Place, features: Option<&[&str]>) -> Result<PathBuf, SetupError> {
    if !place.root.join("target/release/ostler").is_file() && !has_cpp_compiler() {
        return Err(SetupError::NoCompiler);
    }
    let mut args = vec!["build", "--release", "--package", "ostler-trainer", "--bin", "ostler"];
    let features = features.map(|features| features.join(","));
    if let Some(features) = &features {
        args.extend(["--no-default-features", "--features", features]);
    }
    build(place, &args, |_| true)
}

/// Builds with these arguments, and returns where the last program is whose message
/// from cargo is `wanted`.
///
/// # Errors
/// cargo fails, or names no such program.
pub fn build(
    place: &Place,
    args: &[&str],
    wanted: impl Fn(&str) -> bool,
) -> Result<PathBuf, SetupError> {
    // The messages name the program's path, whatever the target folder is.
    let mut child = command(place)
        .args(args)
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(SetupError::io("start", "cargo"))?;
    let mut program = None;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if wanted(&line) {
                program = executable(&line).or(program);
            }
        }
    }
    let status = child.wait().map_err(SetupError::io("wait for", "cargo"))?;
    if !status.success() {
        return Err(SetupError::Cargo {
            command: args.join(" "),
            code: status.code().unwrap_or(101),
        });
    }
    program.ok_or(SetupError::NoProgram)
}

/// Builds with these arguments, and returns each program with the name of its target.
///
/// # Errors
/// cargo fails.
pub fn build_each(place: &Place, args: &[&str]) -> Result<Vec<(String, PathBuf)>, SetupError> {
    let found = std::cell::RefCell::new(Vec::new());
    build(place, args, |line| {
        let program = target(line).zip(executable(line));
        let is_one = program.is_some();
        found.borrow_mut().extend(program);
        is_one
    })?;
    Ok(found.into_inner())
}

/// The target's name in one of cargo's JSON messages.
fn target(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("\"target\":{")?;
    let (_, name) = rest.split_once("\"name\":\"")?;
    Some(name.split_once('"')?.0.to_string())
}

/// The value of `"executable"` in one of cargo's JSON messages.
fn executable(line: &str) -> Option<PathBuf> {
    let (_, rest) = line.split_once("\"executable\":\"")?;
    let mut path = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => return Some(PathBuf::from(path)),
            '\\' => path.push(characters.next()?),
            other => path.push(other),
        }
    }
}

/// Whether there is something to compile C++ with.
pub fn has_cpp_compiler() -> bool {
    std::env::var_os("CXX").is_some_and(|value| !value.is_empty())
        || ["c++", "g++"].iter().any(|name| in_path(name))
}

fn in_path(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_path_is_read_from_cargos_message() {
        let line =
            r#"{"reason":"compiler-artifact","executable":"/a \"b\"/release/ostler","fresh":true}"#;
        assert_eq!(executable(line), Some(PathBuf::from("/a \"b\"/release/ostler")));
        let line = r#"{"target":{"kind":["test"],"name":"gpu","src_path":"x"},"executable":"/a"}"#;
        assert_eq!(target(line).as_deref(), Some("gpu"));
        assert_eq!(executable(r#"{"executable":null,"fresh":true}"#), None);
        assert_eq!(executable(r#"{"executable":"cut"#), None);
    }

    #[test]
    fn only_what_cargo_added_is_removed() {
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO", "CARGO_BIN_EXE_x"] {
            assert!(from_outer_cargo(OsStr::new(name)), "{name}");
        }
        for name in
            ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR", "PATH"]
        {
            assert!(!from_outer_cargo(OsStr::new(name)), "{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("chain/bin")).unwrap();
        std::fs::write(dir.path().join("chain/bin/rustc"), "").unwrap();
        let root = dir.path().join("repo");
        for path in ["repo/target/debug/deps", "chain/lib", "chain/lib/rustlib/x/lib"] {
            assert!(added_by_cargo(&dir.path().join(path), &root), "{path}");
        }
        for path in ["repo/lib", "usr/lib"] {
            assert!(!added_by_cargo(&dir.path().join(path), &root), "{path}");
        }
    }
}
