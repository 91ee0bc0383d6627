//! `ostler doctor --kernels`: what robots and tasks need of a GPU.

use crate::cli::shipped;
use crate::doctor::kernels::{Kernels, Row};
use ostler_learn::config::Override;
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use ostler_run::run::error::{FAILED, OK};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Prints a row for each configuration and architecture; fails where one does not compile.
pub(crate) fn run(
    files: &[PathBuf],
    overrides: &[Override],
    architectures: &[String],
    as_json: bool,
) -> Result<i32, RunError> {
    let files = match files {
        [] => all(Path::new("configs"))?,
        files => files.iter().map(|file| named(file)).collect(),
    };
    let kernels = Kernels::new(architectures)?;
    let (mut rows, mut failed) = (Vec::new(), false);
    if !as_json {
        outln!(
            "{:16} {:7} {:>9} {:>8} {:>13} {:>10}",
            "config",
            "arch",
            "registers",
            "stack B",
            "spills B",
            "compiled"
        );
    }
    for file in &files {
        for architecture in &kernels.architectures {
            match kernels.rows(file, overrides, architecture) {
                Ok(found) => {
                    let step = found.iter().filter(|row| row.is_step());
                    step.filter(|_| !as_json).for_each(print);
                    rows.extend(found);
                }
                Err(e) => {
                    failed = true;
                    errln!("{} for {architecture}: {e}", file.display());
                }
            }
        }
    }
    if as_json {
        outln!("{:#}", json!({ "rows": rows }));
    }
    Ok(if failed { FAILED } else { OK })
}

/// A configuration, which may be meant by its name.
fn named(file: &Path) -> PathBuf {
    file.to_str().map_or_else(|| file.to_path_buf(), shipped::find)
}

fn print(row: &Row) {
    outln!(
        "{:16} {:7} {:>9} {:>8} {:>13} {:>8.1} s{}",
        row.config,
        row.architecture,
        row.registers,
        row.stack,
        format!("{}/{}", row.spills.0, row.spills.1),
        row.compiled_s,
        if row.cached { ", cached" } else { "" }
    );
}

/// The configurations in a folder.
fn all(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "toml")).collect();
    files.sort();
    match files.is_empty() {
        false => Ok(files),
        true => Err(RunError::Usage(format!(
            "no configurations in {}: name some after --kernels",
            folder.display()
        ))),
    }
}
