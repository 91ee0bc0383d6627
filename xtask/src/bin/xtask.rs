//! `cargo xtask`: what developers and CI run. Works from a fresh clone.

use ostler_xtask::place::{self, Place};
use ostler_xtask::{
    SetupError, changed, checks, dist, gpu_bundle, libtorch, mutants, peers, pretend_gpu, proofs,
    recipes, referee, unused,
};
use std::path::PathBuf;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask COMMAND

  test [ARGS]  every test of the workspace, libtorch and referees set up first;
               ARGS go to `cargo test` (for example: -p ostler-sim model)
  test --changed [REF]
               the tests of what differs from REF (the merge base with main without one) and
               of the packages that depend on it
  features     build the simulation with every combination of its features
  nightly [--all] [NAME ...]
               the tests of thousands of states and several architectures in full: for what
               has changed since (tests/proved.toml), or all; of the proofs of these names
  mutants [TEXT]
               make the mistakes of tests/mutants.txt in a copy, one at a time, those of a
               package or whose line has TEXT, or all, and print the share that tests find:
               up to four hours
  recipes      make the additions of tests/recipes.txt in a copy, run their tests, and compare
               the files that each takes with docs/recipes.md
  unused       list the public items that nobody outside of their crate names
  lint         format, clippy and documentation, warnings are errors
  ci           lint, then test
  dist [--environments]
               the Python wheel and a tarball of the program, into target/dist/out: all
               instruction sets, for machines without Rust; --environments leaves the
               program out, and needs no libtorch
  gpu-bundle [FOLDER] [--peers] [--no-code]
               pack the GPU's tests and benchmarks for a machine without Rust, into
               FOLDER (target/gpu-bundle without one), with the wheels of other engines or
               without code that is compiled already; docs/gpu.md says how to run them
  pretend-gpu  build libraries that stand in for a GPU (tests/pretend), and print the
               variables with which programs see it
  learners     install the learners of other libraries that the adapters of python/ are tested
               with (Stable-Baselines3, rsl_rl, TorchRL: some gigabytes, into the cache); from
               then on `test` runs these tests, too
  peers [--quick] [--only PARTS] [--rounds N] [--threads 1,N] [--program PATH]
               install other engines and learners (some gigabytes, into the cache), measure them
               beside Ostler, write docs/benchmarks.md and docs/images/peers.png; PARTS:
               physics,task,update,return,start; without --program Ostler is built
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
    let (command, rest) = args.split_first().ok_or_else(|| SetupError::Usage(USAGE.into()))?;
    match (command.as_str(), rest) {
        ("test", [flag]) if flag == "--changed" => timed("test", || changed::test(&place, None)),
        ("test", [flag, from]) if flag == "--changed" => {
            timed("test", || changed::test(&place, Some(from)))
        }
        (changed::COMMAND, command) => changed::run_chosen(command),
        ("test", rest) => timed("test", || checks::test(&place, rest).map(drop)),
        ("features", []) => timed("features", || checks::features(&place)),
        ("nightly", [all, names @ ..]) if all == "--all" => {
            timed("nightly", || proofs::nightly(&place, true, names))
        }
        ("nightly", names) => timed("nightly", || proofs::nightly(&place, false, names)),
        ("mutants", []) => timed("mutants", || mutants::run(&place, None)),
        ("mutants", [only]) => timed("mutants", || mutants::run(&place, Some(only))),
        ("recipes", []) => timed("recipes", || recipes::run(&place)),
        ("unused", []) => unused::list(&place),
        ("lint", []) => timed("lint", || checks::lint(&place)),
        ("ci", []) => {
            timed("lint", || checks::lint(&place))?;
            timed("test", || checks::test(&place, &[]).map(drop))
        }
        ("libtorch", []) => libtorch::ensure(&place).map(drop),
        ("learners", []) => {
            println!("{}", referee::install_learners(&place)?.display());
            Ok(())
        }
        ("peers", rest) => timed("peers", || peers::peers(&place, rest)),
        ("dist", rest) => {
            let parts = match rest {
                [] => dist::Parts::All,
                [only] if only == "--environments" => dist::Parts::Environments,
                _ => return Err(SetupError::Usage(USAGE.into())),
            };
            let out = place.root.join("target/dist/out");
            for file in dist::dist(&place, &out, parts)? {
                println!("{}", file.display());
            }
            Ok(())
        }
        ("gpu-bundle", rest) => {
            let (flags, folder): (Vec<&String>, Vec<&String>) =
                rest.iter().partition(|a| a.starts_with("--"));
            let has = |name: &str| flags.iter().any(|flag| *flag == name);
            let known = ["--peers", "--no-code"].iter().filter(|f| has(f)).count();
            if known < flags.len() || folder.len() > 1 {
                return Err(SetupError::Usage(USAGE.into()));
            }
            let out =
                folder.first().map_or_else(|| place.root.join("target/gpu-bundle"), PathBuf::from);
            let options = gpu_bundle::Options {
                dev: false,
                architectures: match has("--no-code") {
                    true => Vec::new(),
                    false => vec!["sm_90".into()],
                },
                peers: has("--peers"),
            };
            for part in gpu_bundle::bundle(&place, &out, &options)? {
                println!("{}", part.display());
            }
            Ok(())
        }
        ("pretend-gpu", []) => {
            let parent = place.root.join("target/pretend-gpu");
            let (pretend, file) = pretend_gpu::build(&place, &parent)?;
            for (name, value) in pretend.variables() {
                println!("export {name}='{}'", value.to_string_lossy());
            }
            eprintln!("the same in {}", file.display());
            Ok(())
        }
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(SetupError::Usage(format!("`{}` is no command\n{USAGE}", args.join(" ")))),
    }
}

fn timed(name: &str, step: impl FnOnce() -> Result<(), SetupError>) -> Result<(), SetupError> {
    let start = Instant::now();
    let result = step();
    eprintln!("{name}: {}", checks::duration(start.elapsed()));
    result
}
