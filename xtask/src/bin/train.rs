//! `cargo run --bin train -- CONFIG.toml`: a first run from a fresh clone. Finds
//! or fetches libtorch, builds `ostler`, becomes `ostler train CONFIG.toml`.

use ostler_xtask::place::{self, Place};
use ostler_xtask::{SetupError, cargo, libtorch, parts, processor};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const USAGE: &str = "usage: cargo run --bin train -- CONFIG.toml [options of `ostler train`]\n       \
     cargo run --bin train -- --fetch-only    fetch all that a build and a run need, for a node \
     without a network\n\nfor example: cargo run --bin train -- configs/cartpole.toml";

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = if args.iter().any(|arg| arg == "--fetch-only") {
        fetch_only()
    } else {
        train(&args).map(|never| match never {})
    };
    if let Err(error) = result {
        eprintln!("error: {error}");
        std::process::exit(error.exit_code());
    }
}

fn train(args: &[OsString]) -> Result<Infallible, SetupError> {
    place::check_platform(std::env::consts::OS, std::env::consts::ARCH, place::LIBC)?;
    // Before minutes of fetching and building, not after.
    let first = args.first().ok_or_else(|| SetupError::Usage(format!("no CONFIG\n{USAGE}")))?;
    if !first.to_string_lossy().starts_with('-') && !Path::new(first).is_file() {
        let first = first.to_string_lossy();
        return Err(SetupError::Usage(format!("{first}: no such file\n{USAGE}")));
    }
    let place = Place::from_env()?;
    libtorch::ensure(&place)?;
    // This machine's kernels, and no engine that the run does not need.
    let mut features = vec![processor::widest()];
    if let Some(why) = parts::rapier(args) {
        eprintln!("ostler is built with rapier, {why}");
        features.push("rapier");
    }
    let ostler = cargo::build_ostler(&place, Some(&features))?;
    let mut command = Command::new(&ostler);
    cargo::clean(&mut command, &place);
    // One process: signals and the exit code are the program's own.
    let source = command.arg("train").args(args).exec();
    Err(SetupError::Io { doing: "start", path: ostler, source })
}

fn fetch_only() -> Result<(), SetupError> {
    place::check_platform(std::env::consts::OS, std::env::consts::ARCH, place::LIBC)?;
    let place = Place::from_env()?;
    libtorch::ensure(&place)?;
    cargo::run(&place, &["fetch", "--locked"])?;
    eprintln!(
        "ready: {} and the crates are here; builds and runs need no network now",
        place.link().display()
    );
    Ok(())
}
