//! Proofs: tests of thousands of states, hundreds of models or several architectures, of which
//! a share runs with the other tests (`tests/support/share.rs`). `cargo xtask nightly` runs them
//! in full and writes down of what that was: of the sources of the tests themselves, and of the
//! programs that the engine prints for robots, which the tests hash. An edit is proved for the
//! robots whose programs it changes.

use crate::counts::Model;
use crate::place::Place;
use crate::{SetupError, checks, meaning, share};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The record of the last full runs, below the checkout.
pub const RECORD: &str = "tests/proved.toml";

/// The first lines of the record.
const HEAD: &str = "\
# The last full run of each proof: `cargo xtask nightly` writes this after it passed. A proof
# whose sources hash to something else is due, and of a test's models those whose printed
# programs do.
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
    /// Files and folders that the result hangs on, whatever the model: the tests, the comparison,
    /// the referee and how kernels are called and compiled.
    sources: &'static [&'static str],
    /// Whether its tests hash the programs of their models (`share::due`).
    prints: bool,
}

/// All proofs. What reads models is a source where the models' writing is drawn; elsewhere the
/// tables that are made of a model count, and the kernels' text that runs for it.
pub const PROOFS: [Proof; 9] = [
    Proof {
        name: "native_referee",
        program: "engine",
        needs: "referee",
        sources: &[
            "sim/engine/build.rs",
            "sim/build/units.rs",
            "sim/kernels/collide.cpp",
            "sim/kernels/host.cpp",
            "sim/engine/src/physics/native/evaluate.rs",
            "sim/engine/src/physics/native/tables.rs",
            "sim/engine/src/referee/residual",
            "sim/engine/src/referee/states.rs",
            "sim/tests/engine/mjcf_referee/attached.rs",
            "sim/tests/engine/native_referee",
            "tests/referee/mujoco_states.py",
            "tests/referee/mujoco_varied.py",
            "tests/referee/requirements.txt",
        ],
        prints: true,
    },
    // What reads a robot's file: all drawn robots, not only those of a share.
    Proof {
        name: "mjcf_referee",
        program: "engine",
        needs: "referee",
        sources: &["sim/model/src", "sim/tests/engine/mjcf_referee"],
        prints: false,
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
        prints: false,
    },
    Proof {
        name: "specialised_kernels",
        program: "engine",
        needs: "referee,avx2,compiler",
        sources: &[
            "sim/engine/src/physics/native/evaluate.rs",
            "sim/engine/src/physics/native/specialize/compiler.rs",
            "sim/engine/src/physics/native/tables.rs",
            "sim/engine/src/referee/residual",
            "sim/engine/src/referee/states.rs",
            "sim/tests/engine/native_referee/engine.rs",
            "sim/tests/engine/native_referee/pending.rs",
            "sim/tests/engine/native_referee/reference.rs",
            "sim/tests/engine/specialised_kernels.rs",
            "tests/referee/mujoco_states.py",
            "tests/referee/requirements.txt",
        ],
        prints: true,
    },
    // The host's half is no printed program.
    Proof {
        name: "on_device",
        program: "env",
        needs: "compiler",
        sources: &[
            "sim/engine/build.rs",
            "sim/build/units.rs",
            "sim/kernels/env.cpp",
            "sim/engine/src/device/host.rs",
            "sim/env/src/env",
            "sim/engine/src/physics/native/specialize/compiler.rs",
            "sim/env/src/task",
            "sim/tests/env/on_device",
        ],
        prints: true,
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
        prints: false,
    },
    Proof {
        name: "regress",
        program: "tools",
        needs: "python",
        sources: &["tests/tools/regress", "trainer/learn/src/drill", "trainer/tools/src/regress"],
        prints: false,
    },
    Proof {
        name: "nvrtc",
        program: "engine",
        needs: "referee,nvrtc",
        sources: &[
            "sim/engine/src/device/cuda/compile.rs",
            "sim/engine/src/device/cuda/nvrtc",
            "sim/tests/engine/nvrtc",
            "tests/referee/requirements.txt",
        ],
        prints: true,
    },
    // What NVIDIA's compiler makes of whole programs, executed.
    Proof {
        name: "ptx",
        program: "run",
        needs: "referee,peers,nvrtc,compiler",
        sources: &[
            "sim/env/src/env/on_device",
            "sim/kernels",
            "tests/pretend",
            "tests/run/ptx.rs",
            "tests/run/ptx_counts.json",
            "trainer/kernels",
        ],
        prints: false,
    },
];

/// A full run that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Proved {
    name: String,
    sources: String,
    date: String,
    /// Hashes of programs.
    programs: BTreeMap<Model, String>,
}

/// Runs the proofs that are due in full, or all, and writes those that pass into the record. A
/// proof whose tests print programs runs always, and passes over the models that are proved.
/// `names`: those alone, if there are any.
///
/// # Errors
/// A name is no proof's; a source or the record cannot be read or written; a test fails.
pub fn nightly(place: &Place, all: bool, names: &[String]) -> Result<(), SetupError> {
    if let Some(name) = names.iter().find(|name| PROOFS.iter().all(|p| p.name != **name)) {
        let known = PROOFS.map(|p| p.name).join(", ");
        return Err(SetupError::Usage(format!("no proof is called {name}; there are {known}")));
    }
    let mut failed = None;
    let chosen = |proof: &&Proof| names.is_empty() || names.iter().any(|n| n == proof.name);
    for proof in PROOFS.iter().filter(chosen) {
        let sources = hash(&place.root, proof.sources)?;
        let record = read(&place.root)?;
        let known = match state(&record, proof, &sources) {
            State::Proved(p) if !all && !proof.prints => {
                println!("{}: proved in full on {} with these sources", proof.name, p.date);
                continue;
            }
            State::Proved(p) if !all => {
                println!("{}: in full now, but for what is proved", proof.name);
                p.programs.clone()
            }
            state => {
                println!("{}: {state}: in full now", proof.name);
                BTreeMap::new()
            }
        };
        let file = std::env::temp_dir().join(format!("ostler-proved-{}", std::process::id()));
        fs::write(&file, lines(&known)).map_err(SetupError::io("write", &file))?;
        let module = format!("{}::", proof.name);
        let mut args = ["--workspace", "--test", proof.program, "--"].map(str::to_owned).to_vec();
        if known.is_empty() {
            args.push(module);
        } else {
            // Its other tests look at no models, and have run with all tests.
            let tests: BTreeSet<&String> = known.keys().map(|(test, _)| test).collect();
            args.push("--exact".to_owned());
            args.extend(tests.into_iter().cloned());
        }
        let proved = file.to_string_lossy();
        let env = [
            (share::FULL, "1"),
            (crate::need::REQUIRE, proof.needs),
            (share::PROVED, proved.as_ref()),
        ];
        let ran = checks::test_with(place, &args, &env);
        let _ = fs::remove_file(&file);
        let programs = match ran {
            Ok(counts) => counts.programs().clone(),
            Err(error) => {
                eprintln!("error: {}: {error}", proof.name);
                failed = Some(error);
                continue;
            }
        };
        // What was edited meanwhile is not what ran.
        if hash(&place.root, proof.sources)? != sources {
            continue;
        }
        let new = programs.iter().filter(|(model, hash)| known.get(model) != Some(hash)).count();
        if proof.prints {
            println!("{}: {} models, {new} of them now", proof.name, programs.len());
        }
        if !proof.prints || new > 0 || programs.len() < known.len() {
            note(&place.root, proof, sources, today(), programs)?;
            println!("{}: proved; {RECORD} says so: commit it", proof.name);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// As tests read them (`share::PROVED`).
fn lines(programs: &BTreeMap<Model, String>) -> String {
    programs.iter().map(|((test, model), hash)| format!("{test}\t{model}\t{hash}\n")).collect()
}

/// What is proved in full with these sources, as tests read it: with every change they compare
/// only what is not.
///
/// # Errors
/// A source or the record cannot be read.
pub(crate) fn proved(root: &Path) -> Result<String, SetupError> {
    let (record, mut all) = (read(root)?, String::new());
    for proof in &PROOFS {
        if let State::Proved(p) = state(&record, proof, &hash(root, proof.sources)?) {
            all += &lines(&p.programs);
        }
    }
    Ok(all)
}

/// One line: which proofs are due, if any. `programs`: those of the tests that have run.
///
/// # Errors
/// A source or the record cannot be read.
pub fn due(root: &Path, programs: &BTreeMap<Model, String>) -> Result<String, SetupError> {
    let record = read(root)?;
    let (mut due, mut same) = (Vec::new(), 0);
    for proof in &PROOFS {
        let sources = hash(root, proof.sources)?;
        match state(&record, proof, &sources) {
            State::Proved(p) => {
                same += programs.iter().filter(|(m, hash)| p.programs.get(m) == Some(hash)).count();
                due.extend(changed(proof, p, programs));
            }
            state => due.push(format!("{} ({state})", proof.name)),
        }
    }
    let said = match due.is_empty() {
        true => "proved in full with these sources: all".to_owned(),
        false => format!("to be proved in full by `cargo xtask nightly`: {}", due.join(", ")),
    };
    Ok(match same {
        0 => said,
        _ => format!("compared in full before, with the same programs: {same} models\n{said}"),
    })
}

/// Models of a proof whose programs are not those of its last full run, if any.
fn changed(proof: &Proof, p: &Proved, programs: &BTreeMap<Model, String>) -> Option<String> {
    /// As many are named.
    const NAMED: usize = 3;
    let module = format!("{}::", proof.name);
    let ours = programs.iter().filter(|((test, _), _)| test.starts_with(&module));
    let (same, new): (Vec<_>, Vec<_>) =
        ours.partition(|(model, hash)| p.programs.get(model) == Some(hash));
    if proof.prints && same.is_empty() && new.is_empty() {
        return Some(format!("{} (its tests did not run here)", proof.name));
    }
    let mut names: Vec<&str> = new.iter().map(|((_, model), _)| model.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = names.join(", ");
    (!new.is_empty()).then(|| format!("{} ({names}{more}, since {})", proof.name, p.date))
}

/// How a proof stands.
#[derive(Debug, PartialEq)]
enum State<'a> {
    /// With these sources.
    Proved(&'a Proved),
    /// With others, on that day.
    Changed(&'a str),
    Never,
}

impl std::fmt::Display for State<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Proved(p) => write!(f, "proved on {}", p.date),
            Self::Changed(date) => write!(f, "its sources have changed since {date}"),
            Self::Never => f.write_str("not in the record"),
        }
    }
}

fn state<'a>(record: &'a [Proved], proof: &Proof, sources: &str) -> State<'a> {
    match record.iter().find(|p| p.name == proof.name) {
        Some(p) if p.sources == sources => State::Proved(p),
        Some(p) => State::Changed(&p.date),
        None => State::Never,
    }
}

/// A hash of what all files of these names mean, whatever their names are. What Python leaves
/// behind does not count. 16 hexadecimal digits.
fn hash(root: &Path, sources: &[&str]) -> Result<String, SetupError> {
    let mut files = Vec::new();
    for source in sources {
        walk(root, &root.join(source), &mut files)?;
    }
    files.sort();
    files.dedup();
    let mut hashes = Vec::new();
    for file in files {
        let path = root.join(&file);
        let bytes = fs::read(&path).map_err(SetupError::io("read", &path))?;
        let meaning = meaning::of(&path, &bytes);
        // A file that only names others is part of where code lies.
        if !meaning.is_empty() {
            hashes.push(Sha256::digest(meaning));
        }
    }
    hashes.sort();
    let mut hash = Sha256::new();
    hashes.iter().for_each(|h| hash.update(h));
    Ok(hash.finalize().iter().take(8).fold(String::new(), |mut hex, byte| {
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
    let mut of_test = None;
    for line in text.lines() {
        if let Some(table) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            // `[proof]`, `[proof."test"]`
            let (name, test) = table.split_once('.').unwrap_or((table, ""));
            of_test = (!test.is_empty()).then(|| format!("{name}::{}", test.trim_matches('"')));
            if of_test.is_none() {
                let [sources, date] = [String::new(), String::new()];
                all.push(Proved { name: name.into(), sources, date, programs: BTreeMap::new() });
            }
        } else if let (Some((key, value)), Some(last)) = (line.split_once(" = "), all.last_mut()) {
            let [key, value] = [key, value].map(|text| text.trim_matches('"').to_owned());
            match (&of_test, key.as_str()) {
                (Some(test), _) => drop(last.programs.insert((test.clone(), key), value)),
                (None, "sources") => last.sources = value,
                (None, "date") => last.date = value,
                (None, _) => {}
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
        let mut last = "";
        for ((test, model), hash) in &p.programs {
            if test != last {
                let test = test.strip_prefix(&format!("{name}::")).unwrap_or(test);
                let _ = writeln!(text, "\n[{name}.\"{test}\"]");
            }
            last = test;
            let _ = writeln!(text, "\"{model}\" = \"{hash}\"");
        }
    }
    text
}

/// Writes a full run that passed into the record.
fn note(
    root: &Path,
    proof: &Proof,
    sources: String,
    date: String,
    programs: BTreeMap<Model, String>,
) -> Result<(), SetupError> {
    let mut record = read(root)?;
    record.retain(|p| p.name != proof.name && PROOFS.iter().any(|known| known.name == p.name));
    record.push(Proved { name: proof.name.to_owned(), sources, date, programs });
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
    fn a_proof_is_due_until_it_is_noted_and_again_when_a_source_or_a_program_changes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for source in PROOFS.iter().flat_map(|p| p.sources) {
            write(&format!("{source}/a.rs"), "fn a() {}");
        }
        write("tests/none", "");
        let proof = &PROOFS[0];
        let date = || "2026-01-02".to_owned();
        let proved = || {
            let record = read(dir.path()).unwrap();
            let now = hash(dir.path(), proof.sources).unwrap();
            match state(&record, proof, &now) {
                State::Proved(p) => p.date == date(),
                State::Changed(since) => {
                    assert_eq!(since, date());
                    false
                }
                State::Never => false,
            }
        };
        assert!(!proved());
        let mut programs = BTreeMap::new();
        for (i, proof) in PROOFS.iter().filter(|p| p.prints).enumerate() {
            for model in ["ant", "hopper: friction"] {
                let test = format!("{}::models::agree", proof.name);
                programs.insert((test, model.to_owned()), format!("{i:016x}"));
            }
        }
        for proof in &PROOFS {
            let sources = hash(dir.path(), proof.sources).unwrap();
            let module = format!("{}::", proof.name);
            let mut own = programs.clone();
            own.retain(|(test, _), _| test.starts_with(&module));
            note(dir.path(), proof, sources, date(), own).unwrap();
        }
        assert!(proved());
        let line = |programs: &BTreeMap<Model, String>| due(dir.path(), programs).unwrap();
        assert!(line(&programs).ends_with(": all"), "{}", line(&programs));
        // With every change tests compare none of these.
        assert!(line(&programs).starts_with(&format!(
            "compared in full before, with the same programs: {} models",
            programs.len()
        )));
        let known = || super::proved(dir.path()).unwrap();
        assert_eq!(known().lines().count(), programs.len());
        assert!(
            known().contains("native_referee::models::agree\tant\t0000000000000000\n"),
            "{}",
            known()
        );
        // What did not run says nothing of its programs.
        assert!(line(&BTreeMap::new()).contains("nvrtc (its tests did not run here)"));
        // One robot's program.
        let mut edited = programs.clone();
        let ant = ("native_referee::models::agree".to_owned(), "ant".to_owned());
        edited.insert(ant, "1".into());
        assert!(line(&edited).ends_with(": native_referee (ant, since 2026-01-02)"));
        // Other words; not comments, the name of a file, or what Python leaves behind.
        let source = "sim/tests/engine/native_referee";
        write(&format!("{source}/__pycache__/x"), "");
        write(&format!("{source}/a.rs"), "// What it does.\npub(crate) fn a() {\n}\n");
        assert!(proved());
        fs::rename(dir.path().join(source).join("a.rs"), dir.path().join(source).join("b.rs"))
            .unwrap();
        assert!(proved());
        write(&format!("{source}/mod.rs"), "mod b;\nuse b::a;\n");
        assert!(proved());
        write(&format!("{source}/b.rs"), "fn b() {}");
        assert!(!proved());
        assert!(!known().contains("native_referee"), "{}", known());
        let line = line(&programs);
        assert!(line.contains("`cargo xtask nightly`: native_referee (its sources"), "{line}");
        write(&format!("{source}/b.rs"), "fn a() {}");
        write(&format!("{source}/deep/b.rs"), "fn b() {}");
        assert!(!proved());
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
            assert!(p.sources.len() == 16 && p.date.len() == 10, "{p:?}");
            assert!(p.programs.values().all(|hash| hash.len() == 16), "{p:?}");
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
            let asks = |call: &str| {
                let text = |file: &String| fs::read_to_string(root().join(file)).unwrap();
                files.iter().any(|file| text(file).contains(call))
            };
            assert!(asks("share::of("), "{}", proof.name);
            assert_eq!(asks("share::due("), proof.prints, "{}", proof.name);
            let needs = crate::need::parse(proof.needs).unwrap();
            assert!(!needs.is_empty());
        }
    }
}
