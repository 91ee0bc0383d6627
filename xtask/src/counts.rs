//! How many tests passed, failed, and did not run, from what `cargo test` prints and from
//! what skipped tests write down.

use crate::need::Skip;
use crate::share;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Why a test is ignored that is half of another one, which starts it in a process of its
/// own. Such tests are run, so they are not counted apart.
const HALF: &str = "only run by another test";
/// Heading of the list of tests of which a share ran; `.ci/run` looks for it.
const PARTS: &str = "tests that ran in part, in full by `cargo xtask nightly`:";
/// Heading of the list of tests that did not run; `.ci/run` looks for it.
const HEAD: &str = "tests that did not run:";

/// A test's full name, and a model that it looks at.
pub(crate) type Model = (String, String);

/// How many tests ended how. A test that skipped itself, which the harness takes for
/// passed, counts as skipped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    halves: usize,
    /// Ignored tests with their reasons.
    reasons: Vec<String>,
    /// Names of tests that failed.
    failures: BTreeSet<String>,
    /// Program and test, and what each lacked.
    skips: BTreeMap<(String, String), Vec<String>>,
    /// Tests of which a share ran, with what it was.
    parts: BTreeSet<String>,
    /// Hashes of printed programs, by tests and models.
    programs: BTreeMap<Model, String>,
    listing: bool,
}

impl Counts {
    /// Takes one line of a test program's output into account.
    pub(crate) fn read(&mut self, line: &str) {
        // test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...
        if let Some((_, result)) = line.split_once("test result: ") {
            let number = |word: &str| -> usize {
                let mut parts = result.split(['.', ';']).map(str::trim);
                let number = parts.find_map(|part| part.strip_suffix(word));
                number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
            };
            self.passed += number("passed");
            self.failed += number("failed");
            self.ignored += number("ignored");
            self.listing = false;
            return;
        }
        // After `failures:` the names, indented.
        if line == "failures:" {
            self.listing = true;
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.listing) {
            self.failures.insert(name.to_owned());
        }
        let Some((name, end)) = (line.strip_prefix("test ")).and_then(|l| l.rsplit_once(" ... "))
        else {
            return;
        };
        // Of several threads' tests each has a line of its own.
        match end.strip_prefix("ignored") {
            Some(reason) if reason.trim_start_matches(", ") == HALF => self.halves += 1,
            Some("") => self.reasons.push(format!("ignored: {name}")),
            Some(reason) => {
                let reason = reason.trim_start_matches(", ");
                self.reasons.push(format!("ignored: {name}: {reason}"));
            }
            None => {}
        }
    }

    /// Hashes of the printed programs that tests look at.
    pub(crate) fn programs(&self) -> &BTreeMap<Model, String> {
        &self.programs
    }

    /// Takes the lines that skipped tests, those that ran in part, and those that prove something
    /// have written down into account.
    pub(crate) fn skipped(&mut self, record: &str) {
        for line in record.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                [share::WORD, program, test, size] => {
                    self.parts.insert(format!("{program} {test}: {size}"));
                }
                [share::PROGRAM, test, model, hash] => {
                    self.programs.insert((test.to_owned(), model.to_owned()), hash.to_owned());
                }
                _ => {}
            }
        }
        for skip in record.lines().filter_map(Skip::read) {
            let text = skip.to_string();
            let all = self.skips.entry((skip.program, skip.test)).or_default();
            // A test may ask for the same thing twice.
            if !all.contains(&text) {
                all.push(text);
            }
        }
        // One that went on and failed has failed.
        let failures = &self.failures;
        self.skips.retain(|(_, test), _| !failures.contains(test));
    }
}

/// The tests that ran in part and those that did not run, one line each, then `N passed,
/// N failed, N skipped`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.parts.is_empty() {
            writeln!(f, "{PARTS}")?;
        }
        for line in &self.parts {
            writeln!(f, "  {line}")?;
        }
        let skipped = self.ignored.saturating_sub(self.halves) + self.skips.len();
        if skipped > 0 {
            writeln!(f, "{HEAD}")?;
        }
        let mut lines: Vec<String> = self.skips.values().map(|why| why.join("; ")).collect();
        lines.sort();
        for line in lines.iter().chain(&self.reasons) {
            writeln!(f, "  {line}")?;
        }
        let passed = self.passed.saturating_sub(self.skips.len());
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(output: &str, record: &str) -> String {
        let mut counts = Counts::default();
        output.lines().for_each(|line| counts.read(line));
        counts.skipped(record);
        counts.to_string()
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let output = "\
running 3 tests
test a ... ok
test b ... ignored, takes minutes
test c ... ignored, only run by another test
test d ... ignored
test result: ok. 3 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.1s
";
        let expected = "\
tests that did not run:
  ignored: b: takes minutes
  ignored: d
13 passed, 2 failed, 2 skipped";
        assert_eq!(counted(output, ""), expected);
        assert_eq!(counted("", ""), "0 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_test_that_skips_itself_is_named_and_not_counted_as_passed() {
        let results =
            "test result: ok. 6 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        // Of two programs tests of one name; one test that asks twice, and for two things.
        let record = "\
referee\tone\ta\tnot set
gpu\ttwo\ta\tno driver: none
referee\tone\ta\tnot set
nvrtc\tone\ta\tnot there
disk\tone\tb\tnot allowed
a line that another program wrote
";
        let expected = "\
tests that did not run:
  disk: one b: not allowed
  gpu: two a: no driver: none
  referee: one a: not set; nvrtc: one a: not there
3 passed, 0 failed, 3 skipped";
        assert_eq!(counted(results, record), expected);
    }

    #[test]
    fn a_test_that_runs_in_part_is_named_with_its_share_and_has_passed() {
        let results = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n";
        let record = "\
share\ttwo\tb\t3 of 9 models
share\tone\ta\t10 of 90 states
share\tone\ta\t10 of 90 states
share\tcut
";
        let expected = "\
tests that ran in part, in full by `cargo xtask nightly`:
  one a: 10 of 90 states
  two b: 3 of 9 models
2 passed, 0 failed, 0 skipped";
        assert_eq!(counted(results, record), expected);
    }

    #[test]
    fn a_test_that_skips_a_part_and_fails_has_failed() {
        let output = "\
test a ... FAILED
failures:

---- a stdout ----
thread 'a' panicked at tests/x.rs:1:1

failures:
    a

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
";
        let counts = counted(output, "disk\tx\ta\tnot allowed\n");
        assert_eq!(counts, "1 passed, 1 failed, 0 skipped");
    }
}
