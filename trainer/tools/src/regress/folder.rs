//! Which cases a folder holds.

use super::case::Case;
use super::metrics::matches;
use super::plan::CasePlan;
use ostler_learn::config::ConfigErrors;
use ostler_run::run::RunError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A case in the form that is to be run.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The case.
    pub case: Case,
    /// Its form.
    pub plan: CasePlan,
}

/// Cases of a folder.
#[derive(Debug, Clone)]
pub struct Found {
    /// Cases to be run, by file name.
    pub chosen: Vec<Chosen>,
    /// Names of cases without a short form, where that was asked for.
    pub without_short: Vec<String>,
}

/// The cases of the files `*.toml` in `dir`, not below it, in the order of their names;
/// with `only`, those whose names match one of its patterns.
///
/// # Errors
/// There is no folder or no case, two have the same name, a pattern matches nothing, or
/// a file has mistakes: those of all files at once.
pub fn find(dir: &Path, only: &[String], short: bool) -> Result<Found, RunError> {
    let show = dir.display();
    let entries = std::fs::read_dir(dir).map_err(|e| {
        RunError::Usage(format!(
            "cannot look for regression files in {show}: {e}; a folder of TOML files is expected (docs/regress.md)"
        ))
    })?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| RunError::Usage(format!("cannot list {show}: {e}")))?.path();
        if path.extension().is_some_and(|x| x == "toml") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(RunError::Usage(format!(
            "no regression files (*.toml) in {show}: nothing would be tested"
        )));
    }
    let (mut cases, mut wrong) = (Vec::new(), Vec::new());
    for file in &files {
        match Case::read(file) {
            Ok(case) => cases.push(case),
            Err(e) => wrong.extend(e.0),
        }
    }
    if !wrong.is_empty() {
        return Err(ConfigErrors(wrong).into());
    }
    let mut names: BTreeMap<String, &Path> = BTreeMap::new();
    for case in &cases {
        // A file system may not tell capitals.
        if let Some(first) = names.insert(case.name.to_lowercase(), &case.file) {
            return Err(RunError::Usage(format!(
                "{} and {} both have a case called \"{}\": names are folders of results",
                first.display(),
                case.file.display(),
                case.name
            )));
        }
    }
    for pattern in only {
        if !cases.iter().any(|c| matches(pattern, &c.name)) {
            let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
            return Err(RunError::Usage(format!(
                "--only {pattern} matches no case of {show}: {}",
                names.join(", ")
            )));
        }
    }
    if !only.is_empty() {
        cases.retain(|c| only.iter().any(|pattern| matches(pattern, &c.name)));
    }
    choose(cases, short).ok_or_else(|| {
        RunError::Usage(format!("no case of {show} has a [short] part: nothing would be tested"))
    })
}

fn choose(cases: Vec<Case>, short: bool) -> Option<Found> {
    let (mut chosen, mut without_short) = (Vec::new(), Vec::new());
    for case in cases {
        let plan = match short {
            true => case.short.clone(),
            false => Some(case.full.clone()),
        };
        match plan {
            Some(plan) => chosen.push(Chosen { case, plan }),
            None => without_short.push(case.name),
        }
    }
    (!chosen.is_empty()).then_some(Found { chosen, without_short })
}
