//! Mistakes that tests must find (`tests/mutants.txt`), made one at a time in a copy of the
//! checkout, which is built in a folder of its own.

use crate::copy::{Copy, replaced};
use crate::place::Place;
use crate::{SetupError, checks, libtorch};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The list, below the checkout.
pub const LIST: &str = "tests/mutants.txt";
/// After this no other mistake is begun.
const MOST: Duration = Duration::from_secs(4 * 3600);
/// For the tests of one mistake, which may run for ever.
const EACH: Duration = Duration::from_secs(600);

/// A mistake.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    /// The end of the file's path.
    file: String,
    from: String,
    to: String,
    /// The arguments of `cargo test`.
    tests: Vec<String>,
}

/// How the tests took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Caught,
    Missed,
    /// It does not compile: no test has to find it.
    Refused,
}

/// Makes each mistake whose line has `only` in it or whose package this is, or every one, and prints how many the tests
/// find. Those that four hours do not reach are named as left.
///
/// # Errors
/// The list or the copy cannot be read or written, git or cargo do not start, tests fail
/// without any mistake.
pub fn run(place: &Place, only: Option<&str>) -> Result<(), SetupError> {
    let start = Instant::now();
    let list = place.root.join(LIST);
    let text = fs::read_to_string(&list).map_err(SetupError::io("read", &list))?;
    let mut all = parse(&text).map_err(SetupError::Usage)?;
    let has = |m: &Mutant, only: &str| {
        m.to_string().contains(only) || m.tests.iter().any(|arg| arg == only)
    };
    all.retain(|m| only.is_none_or(|only| has(m, only)));
    if all.is_empty() {
        return Err(SetupError::Usage(format!("{LIST}: no line has {:?}", only.unwrap_or(""))));
    }
    libtorch::ensure(place)?;
    let copy = Copy::new(place)?;
    let (mut caught, mut ran, mut left) = (0, 0, 0);
    let mut sound: Vec<&[String]> = Vec::new();
    for mutant in &all {
        if start.elapsed() > MOST {
            left += 1;
            continue;
        }
        if !sound.contains(&mutant.tests.as_slice()) {
            copy.test(&mutant.tests, &["--no-run"], None)?;
            if copy.test(&mutant.tests, &[], Some(EACH))? != Some(true) {
                let command = format!("test {}", mutant.tests.join(" "));
                return Err(SetupError::Cargo { command, code: 101 });
            }
            sound.push(&mutant.tests);
        }
        let began = Instant::now();
        let outcome = outcome(&copy, mutant)?;
        println!("{outcome:?} ({}): {mutant}", checks::duration(began.elapsed()));
        ran += usize::from(outcome != Outcome::Refused);
        caught += usize::from(outcome == Outcome::Caught);
    }
    let share = 100.0 * caught as f64 / f64::from(u32::try_from(ran.max(1)).unwrap_or(u32::MAX));
    println!("{caught} of {ran} mistakes caught ({share:.0} %), {left} left for want of time");
    Ok(())
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} --> {}", self.file, self.from, self.to)
    }
}

/// The list's mistakes, or the line that is none.
fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut tests = Vec::new();
    let mut all = Vec::new();
    let lines = text.lines().enumerate();
    for (i, line) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
        if let Some(args) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            tests = args.split(' ').map(str::to_owned).collect();
            continue;
        }
        let parts = line.split_once(": ").and_then(|(file, edit)| {
            let (from, to) = edit.split_once(" --> ")?;
            Some([file, from, to].map(str::to_owned))
        });
        match parts {
            Some([file, from, to]) if !tests.is_empty() => {
                all.push(Mutant { file, from, to, tests: tests.clone() });
            }
            _ => return Err(format!("{LIST}:{}: no `FILE: TEXT --> TEXT` below `[ARGS]`", i + 1)),
        }
    }
    Ok(all)
}

/// The file of these whose path ends so, and its text with the mistake.
fn edited(root: &Path, files: &[String], mutant: &Mutant) -> Result<(PathBuf, String), String> {
    let end = format!("/{}", mutant.file);
    let found: Vec<_> = files.iter().filter(|file| file.ends_with(&end)).collect();
    let [file] = found[..] else {
        return Err(format!("{LIST}: {mutant}: {} files end so: {found:?}", found.len()));
    };
    let path = root.join(file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
    match replaced(&text, &mutant.from, &mutant.to) {
        Ok(text) => Ok((path, text)),
        Err(count) => Err(format!("{LIST}: {mutant}: {count} times in {file}")),
    }
}

fn outcome(copy: &Copy, mutant: &Mutant) -> Result<Outcome, SetupError> {
    let (path, text) = edited(&copy.root, &copy.files, mutant).map_err(SetupError::Usage)?;
    let sound = fs::read(&path).map_err(SetupError::io("read", &path))?;
    fs::write(&path, text).map_err(SetupError::io("write", &path))?;
    let found = copy.test(&mutant.tests, &["--no-run"], None).and_then(|built| match built {
        Some(true) => Ok(match copy.test(&mutant.tests, &[], Some(EACH))? {
            Some(true) => Outcome::Missed,
            // One that never ends is found, too.
            Some(false) | None => Outcome::Caught,
        }),
        _ => Ok(Outcome::Refused),
    });
    fs::write(&path, sound).map_err(SetupError::io("write", &path))?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changed;
    use crate::copy::tracked;

    /// Every mistake can be made in this checkout, in some crate of each kind.
    #[test]
    fn the_list_fits_the_checkout() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
        let all = parse(&fs::read_to_string(root.join(LIST)).unwrap()).unwrap();
        // The house was measured with 60; reflections have six of their own, new commands one.
        assert_eq!(all.len(), 67);
        let files = tracked(&root).unwrap();
        for mutant in &all {
            let (_, text) = edited(&root, &files, mutant).unwrap_or_else(|e| panic!("{e}"));
            assert!(text.contains(&mutant.to), "{mutant}");
        }
        // Python's half is tested by Python's programs, which are built from nothing each time.
        let cache = PathBuf::from("/nonexistent");
        let place = Place { root: root.clone(), cache, libtorch: None, cuda: None };
        for package in changed::packages(&place).unwrap() {
            let has = all.iter().any(|m| m.tests.contains(&package.name));
            let apart = ["ostler-python", "ostler-trainer"].contains(&&*package.name);
            assert!(has || apart, "{}", package.name);
        }
        assert!(all.iter().filter(|m| m.file.ends_with(".cuh")).count() >= 12);
    }

    #[test]
    fn a_line_that_is_no_mistake_is_named() {
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("a.rs: x --> y\n").contains(":1:"));
        assert!(error("[-p a]\n\na.rs: x -> y\n").contains(":3:"));
        let all = parse("# Of a.\n[-p a --lib]\na.rs: x: 1 --> x: 2\n").unwrap();
        let expected = Mutant {
            file: "a.rs".into(),
            from: "x: 1".into(),
            to: "x: 2".into(),
            tests: ["-p", "a", "--lib"].map(str::to_owned).into(),
        };
        assert_eq!(all, [expected]);
    }
}
