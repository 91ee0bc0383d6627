//! `ostler envs`: the configurations at hand.

use clap::Args;
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use std::path::PathBuf;

/// Flags of `ostler envs`.
#[derive(Debug, Args)]
pub(crate) struct EnvsArgs {
    /// Folder to look in; that of the shipped configurations without it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Lists `*.toml` with their descriptions.
pub(crate) fn run(args: &EnvsArgs) -> Result<i32, RunError> {
    let dir = args.dir.clone().unwrap_or_else(super::shipped::folder);
    let folder = std::fs::read_dir(&dir).map_err(|e| {
        RunError::Usage(format!(
            "cannot look for configurations in {}: {e}; --dir names another folder",
            dir.display()
        ))
    })?;
    let mut files: Vec<PathBuf> = folder
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    files.sort();
    if files.is_empty() {
        errln!("no configurations in {}", dir.display());
    }
    let name = |p: &PathBuf| p.display().to_string();
    let width = files.iter().map(|f| name(f).len()).max().unwrap_or(0);
    for file in &files {
        let line = match ostler_learn::config::load(file, &[]) {
            Ok(loaded) => loaded.config.description,
            Err(e) => {
                let first = e.to_string();
                format!("unusable: {}", first.lines().next().unwrap_or_default())
            }
        };
        outln!("{:width$}  {line}", name(file));
    }
    Ok(0)
}
