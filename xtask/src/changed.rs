//! The tests that a change concerns: of the packages whose files differ from another commit, and
//! of those that depend on them.

use crate::counts::Counts;
use crate::json::Json;
use crate::place::Place;
use crate::{SetupError, cargo, checks};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path};
use std::process::Command;

/// The variable with the programs that [`run_chosen`] runs.
pub(crate) const CHOSEN: &str = "OSTLER_CHOSEN";
/// cargo starts tests through the program that this names.
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";
/// The command of `xtask` that cargo starts tests through.
pub const COMMAND: &str = "run-chosen";

/// Files that every package is built with.
const OF_ALL: [&str; 4] = ["Cargo.toml", "Cargo.lock", ".cargo/", "rust-toolchain"];

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub name: String,
    /// Below the checkout.
    pub folder: String,
    /// Packages of the workspace that it is built or tested with.
    uses: Vec<String>,
    /// The unit tests' program.
    pub library: Option<String>,
    /// Names of test programs and their folders.
    programs: Vec<(String, String)>,
}

/// Runs the tests that what differs from `from` concerns: the merge base with `origin/main` or
/// `main` where none is named. Uncommitted and new files differ, too.
///
/// # Errors
/// git or cargo fail; no such commit; a test fails.
pub fn test(place: &Place, from: Option<&str>) -> Result<(), SetupError> {
    let base = base(&place.root, from)?;
    let changed = differing(&place.root, &base)?;
    let packages = packages(place)?;
    let sources = Sources(rust_files(&place.root)?);
    println!("{} files differ from {}", changed.len(), &base[..base.len().min(12)]);
    let chosen = match choose(&packages, &sources, &changed) {
        Choice::All(why) => {
            println!("all tests: {why}");
            return checks::test(place, &[]).map(drop);
        }
        Choice::Some(chosen) if chosen.is_empty() => {
            println!("no test reads any of them\n{}", Counts::default());
            return Ok(());
        }
        Choice::Some(chosen) => chosen,
    };
    for (program, why) in &chosen {
        println!("  {program}: {why}");
    }
    let mut args = selected(&packages, |p| {
        p.library
            .iter()
            .chain(p.programs.iter().map(|p| &p.0))
            .any(|name| chosen.contains_key(name))
    });
    let is_library = |name: &String| packages.iter().any(|p| p.library.as_ref() == Some(name));
    if chosen.keys().any(is_library) {
        args.push("--lib".to_owned());
    }
    for program in chosen.keys().filter(|name| !is_library(name)) {
        args.extend(["--test".to_owned(), program.clone()]);
    }
    // Of the libraries' tests cargo runs all or none under the workspace's features.
    let this = std::env::current_exe().map_err(SetupError::io("find", "xtask"))?;
    let runner = format!("{} {COMMAND}", this.display());
    let names: Vec<&str> = chosen.keys().map(String::as_str).collect();
    let names = names.join(",");
    checks::test_with(place, &args, &[(RUNNER, &runner), (CHOSEN, &names)]).map(drop)
}

/// Arguments that select these packages. What others are built with depends on the selection, so
/// that it is all of them, as ever, but for packages that share nothing with others.
fn selected(packages: &[Package], is_chosen: impl Fn(&Package) -> bool) -> Vec<String> {
    let apart = |p: &Package| {
        p.uses.is_empty() && !packages.iter().any(|other| other.uses.contains(&p.name))
    };
    let chosen: Vec<_> = packages.iter().filter(|p| is_chosen(p)).collect();
    match chosen.iter().all(|p| apart(p)) {
        true => chosen.iter().flat_map(|p| ["-p".to_owned(), p.name.clone()]).collect(),
        false => vec!["--workspace".to_owned()],
    }
}

/// Becomes the test program that cargo would start, if it was chosen.
///
/// # Errors
/// It cannot be started.
pub fn run_chosen(command: &[String]) -> Result<(), SetupError> {
    use std::os::unix::process::CommandExt;
    let Some((program, args)) = command.split_first() else {
        return Err(SetupError::Usage(format!("{COMMAND} PROGRAM ARGS: for cargo")));
    };
    let chosen = std::env::var(CHOSEN).unwrap_or_default();
    let stem = Path::new(program).file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name);
    if !chosen.split(',').any(|one| one == name) {
        return Ok(());
    }
    // Not for the cargo that a test may start.
    let mut command = Command::new(program);
    command.args(args).env_remove(RUNNER).env_remove(CHOSEN);
    Err(SetupError::io("start", program)(command.exec()))
}

fn git(root: &Path, args: &[&str]) -> Result<String, SetupError> {
    let out = Command::new("git").arg("-C").arg(root).args(args).output();
    let out = out.map_err(SetupError::io("start", "git"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&out.stderr);
    Err(SetupError::Usage(format!("git {}: {}", args.join(" "), why.trim())))
}

/// The commit to compare with.
fn base(root: &Path, from: Option<&str>) -> Result<String, SetupError> {
    let commit = |name: &str| {
        git(root, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
    };
    let found = match from {
        Some(name) => commit(name).map_err(|_| {
            SetupError::Usage(format!("--changed {name}: git knows no commit of this name"))
        })?,
        None => {
            let main = ["origin/main", "main"].into_iter().find(|name| commit(name).is_ok());
            let main = main.ok_or_else(|| {
                SetupError::Usage(
                    "--changed: there is neither origin/main nor main; name a commit: --changed REF".into(),
                )
            })?;
            git(root, &["merge-base", main, "HEAD"])?
        }
    };
    Ok(found.trim().to_owned())
}

/// Files that differ from a commit, deleted and new ones included.
fn differing(root: &Path, base: &str) -> Result<BTreeSet<String>, SetupError> {
    let edited = git(root, &["diff", "--name-only", "--no-renames", "-z", base])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    let all = edited.split('\0').chain(new.split('\0'));
    Ok(all.filter(|file| !file.is_empty()).map(str::to_owned).collect())
}

/// The workspace, as cargo tells it.
pub(crate) fn packages(place: &Place) -> Result<Vec<Package>, SetupError> {
    let args = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let out = cargo::command(place).args(args).output();
    let out = out.map_err(SetupError::io("start", "cargo"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let json = Json::read(&text).filter(|_| out.status.success());
    let json = json.ok_or_else(|| SetupError::Cargo {
        command: args.join(" "),
        code: out.status.code().unwrap_or(101),
    })?;
    Ok(json.list("packages").iter().filter_map(|p| package(&place.root, p)).collect())
}

fn package(root: &Path, json: &Json) -> Option<Package> {
    let folder = |path: &str| {
        let folder = Path::new(path).parent()?;
        Some(plain(folder.strip_prefix(root).ok()?))
    };
    let has_kind = |target: &Json, kind: &str| {
        target.list("kind").iter().any(|k| *k == Json::Text(kind.into()))
    };
    let uses = json.list("dependencies").iter().filter(|d| d.text("path").is_some());
    let targets = json.list("targets");
    let libraries = ["lib", "cdylib", "rlib"];
    let library = targets.iter().find(|t| libraries.iter().any(|kind| has_kind(t, kind)));
    let programs = targets.iter().filter(|t| has_kind(t, "test"));
    Some(Package {
        name: json.text("name")?.to_owned(),
        folder: folder(json.text("manifest_path")?)?,
        uses: uses.filter_map(|d| d.text("name")).map(str::to_owned).collect(),
        library: library.and_then(|t| t.text("name")).map(|name| name.replace('-', "_")),
        programs: programs
            .filter_map(|t| Some((t.text("name")?.to_owned(), folder(t.text("src_path")?)?)))
            .collect(),
    })
}

/// `a/b` of `a/c/../b`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The text of every Rust file, by its path.
pub(crate) fn rust_files(root: &Path) -> Result<BTreeMap<String, String>, SetupError> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"];
    let read = |file: &str| Some((file.to_owned(), fs::read_to_string(root.join(file)).ok()?));
    Ok(git(root, &list)?.split('\0').filter_map(read).collect())
}

/// Who reads which file.
struct Sources(BTreeMap<String, String>);

impl Sources {
    /// Files with this one, or the folder whose `mod.rs` they name, in them; build scripts that
    /// name it, or a folder that it is in.
    fn including(&self, file: &str) -> Vec<&str> {
        let includes = |path: &str, text: &str| {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            let builds = path.ends_with("build.rs")
                && text
                    .split('"')
                    .filter_map(|word| word.find("../").map(|at| &word[at..]))
                    .any(|named| Path::new(file).starts_with(plain(&folder.join(named))));
            if builds {
                return true;
            }
            ["#[path = \"", "include_str!(\"", "include_bytes!(\"", "include!(\""].iter().any(
                |word| {
                    text.split(word).skip(1).any(|rest| {
                        let named = rest.split('"').next().unwrap_or_default();
                        let named = plain(&folder.join(named));
                        let inside =
                            named.strip_suffix("mod.rs").is_some_and(|f| file.starts_with(f));
                        (inside || named == file) && path != file && !inside_of(path, &named)
                    })
                },
            )
        };
        // A module's own files are no other's.
        fn inside_of(path: &str, named: &str) -> bool {
            named.strip_suffix("mod.rs").is_some_and(|folder| path.starts_with(folder))
        }
        let found = self.0.iter().filter(|(path, text)| includes(path, text));
        found.map(|(path, _)| path.as_str()).collect()
    }

    /// Files that name this one, or a folder it is in below the checkout's first.
    fn naming(&self, file: &str) -> Vec<&str> {
        let path = Path::new(file);
        let rust = path.extension().is_some_and(|e| e == "rs");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut words = vec![file.to_owned()];
        if name.contains('.') && !rust {
            words.push(name.into_owned());
        }
        for folder in path.ancestors().skip(1).map(|f| f.to_string_lossy()) {
            // `tests` alone says nothing: most of what is there belongs to a program.
            if !folder.is_empty() && folder != "tests" && !rust {
                words.extend([format!("\"{folder}\""), format!("/{folder}\"")]);
            }
        }
        let names = |text: &str| words.iter().any(|word| text.contains(word.as_str()));
        let found = self.0.iter().filter(|(path, text)| *path != file && names(text));
        found.map(|(path, _)| path.as_str()).collect()
    }
}

/// What is run.
#[derive(Debug, PartialEq)]
enum Choice {
    /// Everything, and why.
    All(String),
    /// Programs, each with the reason.
    Some(BTreeMap<String, String>),
}

/// The package that a file lies in: of packages within others the innermost.
fn owner<'p>(packages: &'p [Package], file: &str) -> Option<&'p Package> {
    let within = |p: &&Package| {
        p.folder.is_empty() || file.strip_prefix(&p.folder).is_some_and(|r| r.starts_with('/'))
    };
    packages.iter().filter(within).max_by_key(|p| p.folder.len())
}

fn choose(packages: &[Package], sources: &Sources, changed: &BTreeSet<String>) -> Choice {
    let mut chosen = BTreeMap::new();
    let mut edited: BTreeMap<&str, String> = BTreeMap::new();
    let mut seen: BTreeSet<String> = changed.clone();
    let mut left: Vec<(String, String)> = changed.iter().map(|f| (f.clone(), f.clone())).collect();
    while let Some((file, why)) = left.pop() {
        if OF_ALL.iter().any(|name| file.starts_with(name)) {
            return Choice::All(format!("{file} is part of every build"));
        }
        let within = |folder: &str| {
            folder.is_empty() || file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let program = packages.iter().flat_map(|p| &p.programs).find(|(_, folder)| within(folder));
        let package = owner(packages, &file);
        let mut known = true;
        match (program, package) {
            (Some((name, _)), _) => {
                chosen.entry(name.clone()).or_insert_with(|| why.clone());
            }
            (None, Some(p)) if within(&format!("{}/benches", p.folder)) => continue,
            (None, Some(p)) => {
                edited.entry(&p.name).or_insert_with(|| why.clone());
            }
            (None, None) => known = false,
        }
        let inside = package.is_some() && program.is_none();
        for other in sources.including(&file) {
            known = true;
            if seen.insert(other.to_owned()) {
                left.push((other.to_owned(), format!("{other} includes {file}")));
            }
        }
        // What a package is made of concerns those who use it, whoever names it.
        let naming = if inside { Vec::new() } else { sources.naming(&file) };
        for other in naming {
            let within = |folder: &str| other.starts_with(&format!("{folder}/"));
            let program = packages.iter().flat_map(|p| &p.programs).find(|(_, f)| within(f));
            let library = owner(packages, other).map(|p| &p.library);
            let why = || format!("{other} names {file}");
            known = true;
            match (program, library) {
                (Some((name, _)), _) | (None, Some(Some(name))) => {
                    chosen.entry(name.clone()).or_insert_with(why);
                }
                (None, Some(None)) => {}
                (None, None) if seen.insert(other.to_owned()) => {
                    left.push((other.to_owned(), why()))
                }
                (None, None) => {}
            }
        }
        if !known {
            return Choice::All(format!("nothing says who reads {file}"));
        }
    }
    // Who uses them, directly or not.
    loop {
        let found = packages.iter().find_map(|p| {
            let used = p.uses.iter().find(|name| edited.contains_key(name.as_str()))?;
            (!edited.contains_key(p.name.as_str()))
                .then(|| (p.name.as_str(), format!("uses {used}")))
        });
        let Some((name, why)) = found else { break };
        edited.insert(name, why);
    }
    for p in packages.iter().filter(|p| edited.contains_key(p.name.as_str())) {
        let programs = p.programs.iter().map(|(name, _)| name).chain(&p.library);
        for name in programs {
            let why = || format!("{}: {}", p.name, edited[p.name.as_str()]);
            chosen.entry(name.clone()).or_insert_with(why);
        }
    }
    Choice::Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn this() -> (Vec<Package>, Sources) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
        let cache = PathBuf::from("/nonexistent");
        let place = Place { root: root.clone(), cache, libtorch: None, cuda: None };
        let mut sources = Sources(rust_files(&root).unwrap());
        // It names the files of these tests.
        sources.0.remove("xtask/src/changed.rs").unwrap();
        (packages(&place).unwrap(), sources)
    }

    #[test]
    fn a_change_runs_the_tests_of_what_depends_on_it() {
        let (packages, sources) = this();
        let of = |files: &[&str]| {
            let changed = files.iter().map(|f| (*f).to_owned()).collect();
            match choose(&packages, &sources, &changed) {
                Choice::All(why) => panic!("{files:?}: {why}"),
                Choice::Some(chosen) => chosen.into_keys().collect::<Vec<_>>(),
            }
        };
        // A program's own files, and a bench's.
        assert_eq!(of(&["tests/learn/agents.rs"]), ["learn"]);
        assert_eq!(of(&["collector/benches/none.rs"]), [""; 0]);
        // A library: its users', not those that it uses.
        let collector = of(&["collector/src/sync.rs"]);
        for name in ["collect", "ostler_collector", "ostler_trainer", "learn", "run", "tools"] {
            assert!(collector.iter().any(|n| n == name), "{name}: {collector:?}");
        }
        for name in ["engine", "ostler_sim", "setup"] {
            assert!(!collector.iter().any(|n| n == name), "{name}: {collector:?}");
        }
        assert!(of(&["sim/kernels/step.cuh"]).iter().any(|n| n == "engine"));
        assert_eq!(of(&["xtask/src/proofs.rs"]), ["ostler_xtask", "setup"]);
        // A page: whoever reads it.
        let page = of(&["docs/faults.md"]);
        assert!(page.iter().any(|n| n == "run") && page.iter().any(|n| n == "tools"), "{page:?}");
        assert!(!page.iter().any(|n| n == "engine"), "{page:?}");
        // A crate within another's folder, and what build scripts read.
        let base = of(&["sim/base/src/rng.rs"]);
        for name in ["ostler_base", "ostler_model", "ostler_env", "engine", "learn"] {
            assert!(base.iter().any(|n| n == name), "{name}: {base:?}");
        }
        let tools = of(&["trainer/tools/src/cli/mod.rs"]);
        assert!(tools.iter().any(|n| n == "ostler_tools") && tools.iter().any(|n| n == "run"));
        assert!(!tools.iter().any(|n| n == "ostler_run" || n == "engine"), "{tools:?}");
        let kernels = of(&["sim/kernels/step.cuh"]);
        for name in ["ostler_engine", "ostler_model", "ostler_learn"] {
            assert!(kernels.iter().any(|n| n == name), "{name}: {kernels:?}");
        }
        let shim = of(&["trainer/build/libtorch.rs"]);
        assert!(shim.iter().any(|n| n == "ostler_machine"), "{shim:?}");
        // A file that another crate includes.
        let owner = of(&["sim/base/src/owner.rs"]);
        assert!(owner.iter().any(|n| n == "setup"), "{owner:?}");
        assert!(of(&["tests/common/carts.rs"]).iter().any(|n| n == "learn"));
    }

    #[test]
    fn packages_that_share_code_are_built_as_in_a_run_of_all() {
        let (packages, _) = this();
        let of = |names: &[&str]| selected(&packages, |p| names.contains(&p.name.as_str()));
        assert_eq!(of(&["ostler-xtask"]), ["-p", "ostler-xtask"]);
        assert_eq!(of(&["ostler-xtask", "ostler-trainer"]), ["--workspace"]);
        assert_eq!(of(&["ostler-sim"]), ["--workspace"]);
    }

    #[test]
    fn what_nobody_names_concerns_all() {
        let (packages, sources) = this();
        for file in ["Cargo.lock", "strange/unread.bin"] {
            let changed = BTreeSet::from([file.to_owned()]);
            let choice = choose(&packages, &sources, &changed);
            assert!(matches!(choice, Choice::All(why) if why.contains(file)), "{file}");
        }
    }
}
