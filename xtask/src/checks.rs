//! The checks of a change: format, lints, documentation, tests.

use crate::changed::CHOSEN;
use crate::counts::Counts;
use crate::need::{self, Need};
use crate::place::{Place, REFEREE};
use crate::{SetupError, cargo, libtorch, proofs, reads, referee, share};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Format, lints and documentation; warnings are errors.
///
/// # Errors
/// The first that fails, or no libtorch.
pub fn lint(place: &Place) -> Result<(), SetupError> {
    cargo::run(place, &["fmt", "--all", "--check"])?;
    reads::check(&place.root)?;
    libtorch::ensure(place)?;
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    cargo::succeeds(read_only(place).args(clippy))?;
    // What the launcher builds: clippy has read it.
    let check = ["check", "--quiet", "--workspace", "--no-default-features"];
    without_warnings(read_only(place).args(check))?;
    // Of the same features: it reads what that check has left.
    let doc = ["doc", "--quiet", "--workspace", "--no-default-features", "--no-deps"];
    let doc = [&doc[..], &["--document-private-items"]].concat();
    cargo::succeeds(read_only(place).args(doc).env("RUSTDOCFLAGS", "-D warnings"))
}

/// cargo whose build scripts compile no kernels (`sim/build/units.rs`): nothing is linked.
fn read_only(place: &Place) -> Command {
    let mut command = cargo::command(place);
    command.env("OSTLER_ONLY_READ", "1");
    command
}

/// How many tests run at once: libtest's.
const THREADS: &str = "RUST_TEST_THREADS";

/// How much robots' own kernels are optimised (`Optimise` of the engine).
const OPTIMISE: &str = "OSTLER_OPTIMISE";

/// Features of the simulation; `ostler-sim` hands them on to its crates.
const FEATURES: [&str; 5] = ["rapier", "double", "portable", "avx2", "avx512"];

/// Builds the simulation once with every combination of its features, for `cargo check`; warnings
/// are errors.
///
/// # Errors
/// The first combination that does not build.
pub fn features(place: &Place) -> Result<(), SetupError> {
    for chosen in 0..1 << FEATURES.len() {
        let on = FEATURES.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
        let list = on.map(|(_, feature)| *feature).collect::<Vec<_>>().join(",");
        println!("features: {}", if list.is_empty() { "none" } else { &list });
        let check = ["check", "--quiet", "-p", "ostler-sim", "--no-default-features"];
        let args = [&check[..], &["--features", &list]].concat();
        without_warnings(cargo::command(place).args(args))?;
    }
    Ok(())
}

/// cargo, whose warnings are errors.
fn without_warnings(command: &mut Command) -> Result<(), SetupError> {
    let checked =
        command.stdout(Stdio::inherit()).output().map_err(SetupError::io("start", "cargo"))?;
    let printed = String::from_utf8_lossy(&checked.stderr);
    eprint!("{printed}");
    if checked.status.success() && !printed.contains("warning: ") {
        return Ok(());
    }
    let code = checked.status.code().filter(|code| *code != 0).unwrap_or(101);
    Err(cargo::failed(command, code))
}

/// Every test of the workspace, from nothing: libtorch and the referees are set
/// up, the tests built and run. Prints which tests did not run, each with its reason,
/// and the counts in a last line of their own.
///
/// `args` go to `cargo test` in place of `--workspace`, if there are any.
///
/// # Errors
/// `OSTLER_REQUIRE` names something unknown, set-up fails, something does not compile,
/// or a test fails.
pub fn test(place: &Place, args: &[String]) -> Result<Counts, SetupError> {
    test_with(place, args, &[])
}

/// The same with these variables for the tests.
pub(crate) fn test_with(
    place: &Place,
    args: &[String],
    env: &[(&str, &str)],
) -> Result<Counts, SetupError> {
    let named = env.iter().find(|(name, _)| *name == need::REQUIRE);
    let required = match named {
        Some((_, list)) => need::parse(list),
        None => need::required(),
    };
    let required = required.map_err(|e| SetupError::Usage(e.to_string()))?;
    libtorch::ensure(place)?;
    let mut list = vec!["test", "--no-fail-fast"];
    if args.is_empty() {
        list.push("--workspace");
    }
    list.extend(args.iter().map(String::as_str));
    // One waits for the network, the other for the processor.
    let (foreign, built) = std::thread::scope(|scope| {
        let foreign = scope.spawn(|| Foreign::ensure(place, &required));
        let built = if args.is_empty() { build(place) } else { Ok(()) };
        (foreign.join(), built)
    });
    built?;
    let foreign = foreign.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;

    let mut command = cargo::command(place);
    command.args(&list).stdout(Stdio::piped());
    command.envs(env.iter().copied());
    // Many tests wait for programs that they started: one more than there are cores.
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        command.env(THREADS, (cores + 1).to_string());
    }
    // Nearly all of what tests compile runs for seconds; proofs in full are of what users have.
    let told = |name: &str| {
        std::env::var_os(name).is_some() || env.iter().any(|(of_these, _)| *of_these == name)
    };
    if !told(share::FULL) && !told(OPTIMISE) {
        command.env(OPTIMISE, "little");
    }
    let proved = std::env::temp_dir().join(format!("ostler-known-{}", std::process::id()));
    let chosen = env.iter().any(|(name, _)| *name == CHOSEN);
    if (args.is_empty() || chosen) && !told(share::FULL) && !told(share::PROVED) {
        let known = proofs::proved(&place.root)?;
        std::fs::write(&proved, known).map_err(SetupError::io("write", &proved))?;
        command.env(share::PROVED, &proved);
    }
    command.envs(foreign.0);
    // Tests write to it, wherever they run.
    let record = std::env::temp_dir().join(format!("ostler-skips-{}", std::process::id()));
    std::fs::write(&record, "").map_err(SetupError::io("write", &record))?;
    command.env(need::RECORD, &record);
    let mut counts = Counts::default();
    let ran = run(&mut command, &mut counts);
    let skips = std::fs::read_to_string(&record).map_err(SetupError::io("read", &record));
    for file in [&record, &proved] {
        let _ = std::fs::remove_file(file);
    }
    let status = ran?;
    counts.skipped(&skips?);
    if args.is_empty() {
        println!("{}", proofs::due(&place.root, counts.programs())?);
    }
    println!("{counts}");
    if status.success() {
        return Ok(counts);
    }
    Err(SetupError::Cargo { command: list.join(" "), code: status.code().unwrap_or(101) })
}

/// Builds all tests, and says how long that took.
fn build(place: &Place) -> Result<(), SetupError> {
    let clock = Instant::now();
    cargo::run(place, &["test", "--workspace", "--no-run", "--quiet"])?;
    eprintln!("tests built in {}", duration(clock.elapsed()));
    Ok(())
}

/// Variables that name other people's code that tests compare with, where there is any.
struct Foreign(Vec<(&'static str, PathBuf)>);

impl Foreign {
    /// Sets it up.
    ///
    /// # Errors
    /// Some of it that is `required` cannot be had.
    fn ensure(place: &Place, required: &[Need]) -> Result<Self, SetupError> {
        let mut all = Vec::new();
        let mut take = |name, needs: &[Need], what: &str, got: Result<Option<PathBuf>, _>| {
            match got {
                Ok(path) => all.extend(path.into_iter().map(|path| (name, path))),
                Err(error) if needs.iter().any(|need| required.contains(need)) => {
                    return Err(error);
                }
                Err(error) => {
                    eprintln!("warning: {error}\nwarning: tests that need {what} are skipped");
                }
            }
            Ok(())
        };
        let python = referee::ensure(place);
        let found = python.as_ref().ok().cloned();
        take(REFEREE, &[Need::Referee, Need::Nvrtc], "a referee", python.map(Some))?;
        if let Some(python) = &found {
            let peers = referee::ensure_peers(place, python);
            take(referee::PEERS, &[Need::Peers], "the peers' code", peers)?;
        }
        // A Python that the user named comes first.
        if std::env::var_os(referee::LEARNERS).is_none_or(|named| named.is_empty()) {
            let learners = referee::learners(place);
            take(referee::LEARNERS, &[Need::Learners], "the learners", learners)?;
        }
        Ok(Self(all))
    }
}

/// Runs to the end; what is said on standard output is passed on and counted.
fn run(command: &mut Command, counts: &mut Counts) -> Result<std::process::ExitStatus, SetupError> {
    let mut child = command.spawn().map_err(SetupError::io("start", "cargo"))?;
    if let Some(output) = child.stdout.take() {
        count(output, std::io::stdout(), counts);
    }
    child.wait().map_err(SetupError::io("wait for", "cargo"))
}

/// Passes lines on as they come, and counts them.
fn count(from: impl Read, mut to: impl Write, counts: &mut Counts) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = to.write_all(&line);
        counts.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// Seconds, or minutes and seconds.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_say_is_passed_on_and_counted() {
        let output = b"test a ... ok\n\xff\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        let (mut echoed, mut counts) = (Vec::new(), Counts::default());
        count(&output[..], &mut echoed, &mut counts);
        assert_eq!(counts.to_string(), "1 passed, 0 failed, 0 skipped");
        assert_eq!(echoed, output);
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
    }
}
