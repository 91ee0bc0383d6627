//! The checks of a change: format, lints, documentation, tests.

use crate::place::Place;
use crate::{SetupError, cargo, libtorch, reads, referee};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// How many tests ended how. A test that skipped itself, which the harness takes
/// for passed, counts as skipped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    skipped_themselves: BTreeSet<String>,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let themselves = self.skipped_themselves.len();
        let passed = self.passed.saturating_sub(themselves);
        write!(
            f,
            "{passed} passed, {} failed, {} skipped",
            self.failed,
            self.ignored + themselves
        )
    }
}

impl Counts {
    /// Takes one line of a test program's output into account.
    fn read(&mut self, line: &str) {
        // test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...
        if let Some((_, result)) = line.split_once("test result: ") {
            let number = |word: &str| -> usize {
                let mut parts = result.split(['.', ';']).map(str::trim);
                let number = parts.find_map(|part| part.strip_suffix(word));
                number
                    .and_then(|number| number.trim().parse().ok())
                    .unwrap_or(0)
            };
            self.passed += number("passed");
            self.failed += number("failed");
            self.ignored += number("ignored");
        } else if let Some(at) = line.find("SKIPPED: ") {
            // The harness writes `test name ... ` before a test, without a line's end.
            self.skipped_themselves.insert(line[at..].to_owned());
        }
    }

    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped_themselves.extend(other.skipped_themselves);
    }
}

/// Format, lints and documentation; warnings are errors.
///
/// # Errors
/// The first that fails, or no libtorch.
pub fn lint(place: &Place) -> Result<(), SetupError> {
    cargo::run(place, &["fmt", "--all", "--check"])?;
    reads::check(&place.root)?;
    libtorch::ensure(place)?;
    let every = ["--workspace", "--all-targets"].as_slice();
    // The engines without rapier, as others may build them.
    let lean = ["-p", "ostler-sim", "--no-default-features"].as_slice();
    for of in [every, lean] {
        let args = [&["clippy", "--quiet"], of, &["--", "-D", "warnings"]].concat();
        cargo::run(place, &args)?;
    }
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--quiet",
    ];
    let status = cargo::command(place)
        .args(args)
        .env("RUSTDOCFLAGS", "-D warnings")
        .status()
        .map_err(SetupError::io("start", "cargo"))?;
    if status.success() {
        return Ok(());
    }
    Err(SetupError::Cargo {
        command: args.join(" "),
        code: status.code().unwrap_or(101),
    })
}

/// Every test of the workspace, from nothing: libtorch and the referees are set
/// up, the tests built and run, and counted in a last line of their own.
///
/// `args` go to `cargo test` in place of `--workspace`, if there are any.
///
/// # Errors
/// Set-up fails, something does not compile, or a test fails.
pub fn test(place: &Place, args: &[String]) -> Result<Counts, SetupError> {
    libtorch::ensure(place)?;
    let referee = match referee::ensure(place) {
        Ok(python) => Some(python),
        Err(error) if required() => return Err(error),
        Err(error) => {
            eprintln!("warning: {error}\nwarning: tests that need a referee are SKIPPED");
            None
        }
    };
    let mut list = vec!["test", "--no-fail-fast"];
    if args.is_empty() {
        list.push("--workspace");
    }
    list.extend(args.iter().map(String::as_str));
    if args.is_empty() {
        let built = Instant::now();
        cargo::run(place, &["test", "--workspace", "--no-run", "--quiet"])?;
        eprintln!("tests built in {}", duration(built.elapsed()));
    }

    let mut command = cargo::command(place);
    command
        .args(&list)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(python) = referee {
        command.env(referee::VARIABLE, python);
    }
    let mut child = command.spawn().map_err(SetupError::io("start", "cargo"))?;
    let errors = child
        .stderr
        .take()
        .map(|stream| thread::spawn(move || count(stream, std::io::stderr())));
    let mut counts = Counts::default();
    if let Some(output) = child.stdout.take() {
        counts.add(count(output, std::io::stdout()));
    }
    if let Some(errors) = errors.and_then(|thread| thread.join().ok()) {
        counts.add(errors);
    }
    let status = child.wait().map_err(SetupError::io("wait for", "cargo"))?;
    println!("{counts}");
    if status.success() {
        return Ok(counts);
    }
    Err(SetupError::Cargo {
        command: list.join(" "),
        code: status.code().unwrap_or(101),
    })
}

fn required() -> bool {
    std::env::var_os("OSTLER_REQUIRE_REFEREE").is_some_and(|value| value == "1")
}

/// Passes lines on as they come, and counts them.
fn count(from: impl Read, mut to: impl Write) -> Counts {
    let mut counts = Counts::default();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = to.write_all(&line);
        counts.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    counts
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
    fn results_of_several_programs_add_up() {
        let output = "\
running 3 tests
test a ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.1s
";
        let mut echoed = Vec::new();
        let counts = count(output.as_bytes(), &mut echoed);
        assert_eq!(counts.to_string(), "13 passed, 2 failed, 1 skipped");
        assert_eq!(echoed, output.as_bytes());
    }

    #[test]
    fn a_test_that_skips_itself_is_not_counted_as_passed() {
        let results =
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let skips =
            "SKIPPED: a: no referee\ntest b ... SKIPPED: b: no referee\nSKIPPED: a: no referee\n";
        // They come on two streams, in any order.
        for order in [[results, skips], [skips, results]] {
            let mut counts = Counts::default();
            for stream in order {
                counts.add(count(stream.as_bytes(), std::io::sink()));
            }
            assert_eq!(counts.to_string(), "1 passed, 0 failed, 2 skipped");
        }
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
    }
}
