//! Proofs: tests of thousands of states, hundreds of models or several architectures, of which
//! a share runs with the other tests (`tests/support/share.rs`). `cargo xtask nightly` runs them
//! in full and writes down of which sources that was.

use crate::place::Place;
use crate::{SetupError, checks, share};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The record of the last full runs, below the checkout.
pub const RECORD: &str = "tests/proved.toml";

/// The first lines of the record.
const HEAD: &str = "\
# The last full run of each proof: `cargo xtask nightly` writes this after it passed. A proof
# whose sources hash to something else is due.
";

/// Tests that prove something in full.
#[derive(Debug)]
pub struct Proof {
    /// The module of a test program, and its table in the record.
    pub name: &'static str,
    /// The test program.
    program: &'static str,
    /// What the machine must have: no test of it may be skipped.
    needs: &'static str,
    /// Files and folders that the result hangs on.
    sources: &'static [&'static str],
}

/// All proofs. Sources are the kernels, what calls and prints them, the tests and their models;
/// what reads models is a source where the models' writing is drawn.
pub const PROOFS: [Proof; 8] = [
    Proof {
        name: "native_referee",
        program: "engine",
        needs: "referee",
        sources: &[
            "configs/robots",
            "sim/engine/build.rs",
            "sim/build/units.rs",
            "sim/kernels",
            "sim/engine/src/physics/native",
            "sim/engine/src/referee",
            "sim/tests/engine/mjcf_referee/attached.rs",
            "sim/tests/engine/native_referee",
            "tests/referee",
        ],
    },
    // What reads a robot's file: all drawn robots, not only those of a share.
    Proof {
        name: "mjcf_referee",
        program: "engine",
        needs: "referee",
        sources: &["sim/model/src", "sim/tests/engine/mjcf_referee"],
    },
    Proof {
        name: "lab_files",
        program: "learn",
        needs: "referee,compiler",
        sources: &[
            "sim/model/src",
            "sim/env/src/task/deploy",
            "sim/tests/engine/mjcf_referee/foreign",
            "tests/learn/lab_files",
            "tests/referee/exported.py",
            "trainer/run/src/export",
        ],
    },
    Proof {
        name: "specialised_kernels",
        program: "engine",
        needs: "referee,avx2,compiler",
        sources: &[
            "configs/robots",
            "sim/kernels",
            "sim/engine/src/physics/native",
            "sim/engine/src/referee",
            "sim/tests/engine/native_referee",
            "sim/tests/engine/specialised_kernels.rs",
            "tests/referee",
        ],
    },
    Proof {
        name: "on_device",
        program: "env",
        needs: "compiler",
        sources: &[
            "configs",
            "sim/kernels",
            "sim/engine/src/device/host.rs",
            "sim/env/src/env",
            "sim/engine/src/physics/native",
            "sim/env/src/task",
            "sim/tests/env/on_device",
            "tests/referee/features",
        ],
    },
    Proof {
        name: "export",
        program: "tools",
        needs: "referee,compiler",
        sources: &[
            "configs/quadruped.toml",
            "configs/robots/quadruped.xml",
            "sim/env/src/task/deploy",
            "tests/tools/export",
            "tests/referee/exported.py",
            "trainer/run/src/export",
        ],
    },
    Proof {
        name: "regress",
        program: "tools",
        needs: "python",
        sources: &["tests/tools/regress", "trainer/learn/src/drill", "trainer/tools/src/regress"],
    },
    Proof {
        name: "nvrtc",
        program: "engine",
        needs: "referee,nvrtc",
        sources: &[
            "configs",
            "sim/kernels",
            "sim/engine/src/device/cuda/compile.rs",
            "sim/engine/src/device/cuda/nvrtc",
            "sim/env/src/env/on_device",
            "sim/engine/src/physics/native",
            "sim/env/src/task",
            "sim/tests/engine/nvrtc",
            "tests/referee/features",
            "tests/referee/requirements.txt",
        ],
    },
];

/// A full run that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Proved {
    name: String,
    sources: String,
    date: String,
}

/// Runs the proofs whose sources have changed since they were run in full, or all, and writes
/// those that pass into the record.
///
/// # Errors
/// A source or the record cannot be read or written; a test fails.
pub fn nightly(place: &Place, all: bool) -> Result<(), SetupError> {
    let mut failed = None;
    for proof in &PROOFS {
        let sources = hash(&place.root, proof.sources)?;
        match state(&read(&place.root)?, proof, &sources) {
            State::Proved(date) if !all => {
                println!("{}: proved in full on {date} with these sources", proof.name);
                continue;
            }
            state => println!("{}: {state}: in full now", proof.name),
        }
        let module = format!("{}::", proof.name);
        let args = ["--workspace", "--test", proof.program, &module].map(str::to_owned);
        let env = [(share::FULL, "1"), (crate::need::REQUIRE, proof.needs)];
        if let Err(error) = checks::test_with(place, &args, &env) {
            eprintln!("error: {}: {error}", proof.name);
            failed = Some(error);
            continue;
        }
        // What was edited meanwhile is not what ran.
        if hash(&place.root, proof.sources)? == sources {
            note(&place.root, proof, sources, today())?;
            println!("{}: proved; {RECORD} says so: commit it", proof.name);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// One line: which proofs are due, if any.
///
/// # Errors
/// A source or the record cannot be read.
pub fn due(root: &Path) -> Result<String, SetupError> {
    let record = read(root)?;
    let mut due = Vec::new();
    for proof in &PROOFS {
        let sources = hash(root, proof.sources)?;
        match state(&record, proof, &sources) {
            State::Proved(_) => {}
            state => due.push(format!("{} ({state})", proof.name)),
        }
    }
    Ok(match due.is_empty() {
        true => "proved in full with these sources: all".to_owned(),
        false => format!("to be proved in full by `cargo xtask nightly`: {}", due.join(", ")),
    })
}

/// How a proof stands.
#[derive(Debug, PartialEq)]
enum State {
    /// With these sources, on that day.
    Proved(String),
    /// With others, on that day.
    Changed(String),
    Never,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Proved(date) => write!(f, "proved on {date}"),
            Self::Changed(date) => write!(f, "its sources have changed since {date}"),
            Self::Never => f.write_str("not in the record"),
        }
    }
}

fn state(record: &[Proved], proof: &Proof, sources: &str) -> State {
    match record.iter().find(|p| p.name == proof.name) {
        Some(p) if p.sources == sources => State::Proved(p.date.clone()),
        Some(p) => State::Changed(p.date.clone()),
        None => State::Never,
    }
}

/// The SHA-256 of all files of these names, with their paths, in order. What Python leaves
/// behind does not count.
fn hash(root: &Path, sources: &[&str]) -> Result<String, SetupError> {
    let mut files = Vec::new();
    for source in sources {
        walk(root, &root.join(source), &mut files)?;
    }
    files.sort();
    files.dedup();
    let mut hash = Sha256::new();
    for file in files {
        let path = root.join(&file);
        let bytes = fs::read(&path).map_err(SetupError::io("read", &path))?;
        // Lengths: no two lists of files have the same bytes.
        for part in [file.as_bytes(), &bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

fn walk(root: &Path, path: &Path, files: &mut Vec<String>) -> Result<(), SetupError> {
    if !path.is_dir() {
        let name = path.strip_prefix(root).unwrap_or(path);
        files.push(name.to_string_lossy().into_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(SetupError::io("read", path))? {
        let entry = entry.map_err(SetupError::io("read", path))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name != "__pycache__" && !name.starts_with('.') && name != "MUJOCO_LOG.TXT" {
            walk(root, &entry.path(), files)?;
        }
    }
    Ok(())
}

/// The record; empty where there is none.
fn read(root: &Path) -> Result<Vec<Proved>, SetupError> {
    let path = root.join(RECORD);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(SetupError::io("read", path)(e)),
    };
    Ok(parse(&text))
}

/// As [`written`] writes it.
fn parse(text: &str) -> Vec<Proved> {
    let mut all: Vec<Proved> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            all.push(Proved { name: name.to_owned(), sources: String::new(), date: String::new() });
        } else if let (Some((key, value)), Some(last)) = (line.split_once(" = "), all.last_mut()) {
            let value = value.trim_matches('"').to_owned();
            match key {
                "sources" => last.sources = value,
                "date" => last.date = value,
                _ => {}
            }
        }
    }
    all
}

fn written(record: &[Proved]) -> String {
    let mut text = HEAD.to_owned();
    for p in record {
        let (name, sources, date) = (&p.name, &p.sources, &p.date);
        let _ = write!(text, "\n[{name}]\nsources = \"{sources}\"\ndate = \"{date}\"\n");
    }
    text
}

/// Writes a full run that passed into the record.
fn note(root: &Path, proof: &Proof, sources: String, date: String) -> Result<(), SetupError> {
    let mut record = read(root)?;
    record.retain(|p| p.name != proof.name && PROOFS.iter().any(|known| known.name == p.name));
    record.push(Proved { name: proof.name.to_owned(), sources, date });
    record.sort_by(|a, b| a.name.cmp(&b.name));
    let path = root.join(RECORD);
    fs::write(&path, written(&record)).map_err(SetupError::io("write", path))
}

/// `2026-11-23`, UTC.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    date(now.map_or(0, |t| t.as_secs() / 86_400))
}

/// The day so many days after 1970-01-01 in the Gregorian calendar (H. Hinnant,
/// "chrono-compatible low-level date algorithms", civil_from_days).
fn date(days: u64) -> String {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, (mp + 2) % 12 + 1);
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn days_are_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn a_proof_is_due_until_it_is_noted_and_again_when_a_source_changes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for source in PROOFS.iter().flat_map(|p| p.sources) {
            write(&format!("{source}/a"), "a");
        }
        write("tests/none", "");
        let proof = &PROOFS[0];
        let now = || hash(dir.path(), proof.sources).unwrap();
        let stands = || state(&read(dir.path()).unwrap(), proof, &now());
        assert_eq!(stands(), State::Never);
        for proof in &PROOFS {
            let sources = hash(dir.path(), proof.sources).unwrap();
            note(dir.path(), proof, sources, "2026-01-02".into()).unwrap();
        }
        assert_eq!(stands(), State::Proved("2026-01-02".into()));
        let line = due(dir.path()).unwrap();
        assert!(line.ends_with(": all"), "{line}");
        // Another text, another name, a file less; not what Python leaves behind.
        write("sim/kernels/__pycache__/x", "");
        assert_eq!(stands(), State::Proved("2026-01-02".into()));
        write("sim/kernels/a", "b");
        assert_eq!(stands(), State::Changed("2026-01-02".into()));
        let line = due(dir.path()).unwrap();
        assert!(
            line.contains("cargo xtask nightly") && line.contains("specialised_kernels"),
            "{line}"
        );
        write("sim/kernels/a", "a");
        write("sim/kernels/deep/b", "");
        assert_eq!(stands(), State::Changed("2026-01-02".into()));
        fs::remove_dir_all(dir.path().join("sim/kernels/deep")).unwrap();
        assert_eq!(stands(), State::Proved("2026-01-02".into()));
        fs::rename(dir.path().join("sim/kernels/a"), dir.path().join("sim/kernels/b")).unwrap();
        assert_eq!(stands(), State::Changed("2026-01-02".into()));
    }

    /// What the record says is of this checkout's proofs, in the form that is written.
    #[test]
    fn the_record_of_this_checkout_is_as_it_is_written() {
        let path = root().join(RECORD);
        let text = fs::read_to_string(path).unwrap();
        let record = parse(&text);
        assert_eq!(written(&record), text);
        for p in &record {
            assert!(PROOFS.iter().any(|known| known.name == p.name), "{p:?}");
            assert!(p.sources.len() == 64 && p.date.len() == 10, "{p:?}");
        }
    }

    /// A source that is gone is no source; a proof that is no test proves nothing.
    #[test]
    fn every_proof_is_a_test_with_sources_and_asks_for_its_size() {
        for proof in &PROOFS {
            for source in proof.sources {
                assert!(root().join(source).exists(), "{source}");
            }
            let program = ["sim/tests", "tests"].map(|f| format!("{f}/{}", proof.program));
            let program = program.into_iter().find(|f| root().join(f).exists()).unwrap();
            let main = fs::read_to_string(root().join(&program).join("main.rs")).unwrap();
            assert!(main.contains(&format!("\nmod {};\n", proof.name)), "{program}: {proof:?}");
            let own = format!("{program}/{}", proof.name);
            let covers = |s: &str| s == own || s == format!("{own}.rs");
            assert!(proof.sources.iter().any(|s| covers(s)), "{own}");
            let mut files = Vec::new();
            for source in proof.sources.iter().filter(|s| covers(s)) {
                walk(&root(), &root().join(source), &mut files).unwrap();
            }
            let asks = |file: &String| {
                let text = fs::read_to_string(root().join(file)).unwrap();
                text.contains("share::of(")
            };
            assert!(files.iter().any(asks), "{}", proof.name);
            let needs = crate::need::parse(proof.needs).unwrap();
            assert!(!needs.is_empty());
        }
    }
}
