//! `cargo xtask`: what developers and CI run. Works from a fresh clone.

use ostler_xtask::place::{self, Place};
use ostler_xtask::{SetupError, checks, gpu_bundle, libtorch, proofs};
use std::path::PathBuf;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask COMMAND

  test [ARGS]  every test of the workspace, libtorch and referees set up first;
               ARGS go to `cargo test` (for example: -p ostler-sim model)
  nightly [--all]
               the tests of thousands of states and several architectures in full: those
               whose sources have changed since (tests/proved.toml), or all
  lint         format, clippy and documentation, warnings are errors
  ci           lint, then test
  gpu-bundle [FOLDER]
               pack the GPU's tests and benchmarks for a machine without Rust, into
               FOLDER (target/gpu-bundle without one); docs/gpu.md says how to run them
  libtorch     find or fetch libtorch and link it as .libtorch/torch";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        eprintln!("error: {error}");
        std::process::exit(error.exit_code());
    }
}

fn run(args: &[String]) -> Result<(), SetupError> {
    place::check_platform(std::env::consts::OS, std::env::consts::ARCH, place::LIBC)?;
    let place = Place::from_env()?;
    let (command, rest) = args
        .split_first()
        .ok_or_else(|| SetupError::Usage(USAGE.into()))?;
    match (command.as_str(), rest) {
        ("test", rest) => timed("test", || checks::test(&place, rest).map(drop)),
        ("nightly", []) => timed("nightly", || proofs::nightly(&place, false)),
        ("nightly", [all]) if all == "--all" => timed("nightly", || proofs::nightly(&place, true)),
        ("lint", []) => timed("lint", || checks::lint(&place)),
        ("ci", []) => {
            timed("lint", || checks::lint(&place))?;
            timed("test", || checks::test(&place, &[]).map(drop))
        }
        ("libtorch", []) => libtorch::ensure(&place).map(drop),
        ("gpu-bundle", rest @ ([] | [_])) => {
            let out = rest
                .first()
                .map_or_else(|| place.root.join("target/gpu-bundle"), PathBuf::from);
            for part in gpu_bundle::bundle(&place, &out)? {
                println!("{}", part.display());
            }
            Ok(())
        }
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(SetupError::Usage(format!(
            "`{}` is no command\n{USAGE}",
            args.join(" ")
        ))),
    }
}

fn timed(name: &str, step: impl FnOnce() -> Result<(), SetupError>) -> Result<(), SetupError> {
    let start = Instant::now();
    let result = step();
    eprintln!("{name}: {}", checks::duration(start.elapsed()));
    result
}
