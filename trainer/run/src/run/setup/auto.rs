//! `--resume auto`: which run is to go on.

use super::resume::same_files;
use super::{plan, same_run};
use crate::run::error::RunError;
use crate::run::store::checkpoint::meta_of;
use crate::run::store::meta::{MOST, REACHED};
use crate::run::store::{dir, keep};
use ostler_learn::config::{Config, Gpus, Override};
use ostler_sim::files;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The decision of `--resume auto`.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// This run goes on.
    GoOn(PathBuf),
    /// The run in this folder died before its first checkpoint: it starts anew there.
    Anew(PathBuf),
    /// A new run begins.
    Begin,
    /// The folder that was asked for holds a finished run: nothing is left to do.
    Finished,
}

/// The newest run of this configuration that is not finished: in `out` if that is
/// given, else below `<log.dir>/<name>`. With a line that says why.
///
/// # Errors
/// The configuration cannot be used.
pub fn newest_unfinished(
    path: &Path,
    overrides: &[Override],
    out: Option<&Path>,
) -> Result<(Next, String), RunError> {
    let (loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
    let config = &loaded.config;
    let parent = Path::new(&config.log.dir).join(&config.name);
    let (place, folders) = match out {
        Some(out) => (out, vec![out.to_path_buf()]),
        None => (parent.as_path(), newest_first(&parent)),
    };
    let mut passed_over = Vec::new();
    let mut of_others = String::new();
    for folder in folders {
        let own = folder.join(dir::CONFIG);
        let owner = [&folder, &own].into_iter().find_map(|p| other_owner(p));
        if let Some(owner) = owner.filter(|_| own.exists() || out.is_none()) {
            let folder = folder.display();
            let why = format!("{folder} belongs to another user (uid {owner})");
            if out.is_some() {
                return Err(RunError::Usage(format!(
                    "--resume auto does not go on with a run of others: {why}; after a look at \
                     its config.toml --resume {folder} does"
                )));
            }
            of_others += &format!("passed over: {why}\n");
            continue;
        }
        if !own.is_file() {
            if out.is_some() && barely_begun(&folder) {
                return Ok(anew(folder));
            }
            continue;
        }
        let verdict = judge(&folder, path, overrides, &model.sources);
        match verdict {
            // In a folder that was asked for there is no other to begin. Else whatever
            // command is repeated after a kill would be refused for ever.
            Verdict::Empty if out.is_some() => return Ok(anew(folder)),
            Verdict::Empty => passed_over.push((folder, "it has no checkpoint".into())),
            Verdict::Unfinished(iteration) => {
                let why = format!(
                    "{of_others}going on with {} from iteration {iteration}",
                    folder.display()
                );
                return Ok((Next::GoOn(folder), why));
            }
            Verdict::Finished(why) if out.is_some() => {
                let why = format!("nothing is left to do in {}: {why}", folder.display());
                return Ok((Next::Finished, why));
            }
            Verdict::Finished(why) => passed_over.push((folder, why)),
            // Its own folder is all there is: say what is wrong with it.
            Verdict::Unfit(why) if out.is_some() => {
                return Err(RunError::Usage(format!(
                    "--resume auto cannot go on with {}: {why}",
                    folder.display()
                )));
            }
            Verdict::Unfit(why) => passed_over.push((folder, why)),
        }
    }
    let why = match passed_over.first() {
        None => "there is none yet".to_string(),
        Some((folder, why)) => format!("{}: {why}", folder.display()),
    };
    let why = format!(
        "{of_others}a new run begins: no unfinished run of this configuration in {} ({why})",
        place.display()
    );
    Ok((Next::Begin, why))
}

fn anew(folder: PathBuf) -> (Next, String) {
    let why = format!("the run in {} starts anew, it had no checkpoint yet", folder.display());
    (Next::Anew(folder), why)
}

/// Who has a file, where that is somebody else: not this process's user, nor root, nor whoever
/// has what this process makes beside it (some file systems give all to one user).
fn other_owner(path: &Path) -> Option<u32> {
    let owner = std::fs::metadata(path).ok()?.uid();
    let here = path.parent().filter(|p| !p.as_os_str().is_empty());
    let made = || {
        let file = tempfile::tempfile_in(here.unwrap_or(Path::new("."))).ok()?;
        Some(file.metadata().ok()?.uid())
    };
    let ours = [rustix::process::geteuid().as_raw(), 0].contains(&owner) || made() == Some(owner);
    (!ours).then_some(owner)
}

/// A folder in which there is nothing but what a run makes before its configuration.
fn barely_begun(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let names: Vec<_> = entries.flatten().map(|e| e.file_name()).collect();
    let begun = names.iter().any(|n| n == dir::LOCK);
    begun
        && keep::list(&folder.join(dir::CHECKPOINTS)).is_empty()
        && names.iter().all(|n| files::is_leftover(n) || dir::FIRST.iter().any(|f| n == f))
}

/// Whether and how a run goes on.
enum Verdict {
    /// It goes on from this iteration.
    Unfinished(u64),
    /// It has no checkpoint yet.
    Empty,
    /// It is done, and why.
    Finished(String),
    /// It is not this configuration's, or cannot be read.
    Unfit(String),
}

fn judge(folder: &Path, path: &Path, overrides: &[Override], sources: &[PathBuf]) -> Verdict {
    let config = match same_run(folder, path, overrides, sources) {
        Ok(config) => config,
        Err(why) => return Verdict::Unfit(why),
    };
    let checkpoints = keep::list(&folder.join(dir::CHECKPOINTS));
    let Some((iteration, file)) = checkpoints.last() else {
        return Verdict::Empty;
    };
    // Its last evaluation may have been cut short.
    let owed =
        || config.runner.eval_interval() > 0 && meta_of(file).is_some_and(|m| m.evaluation_owed);
    if *iteration >= config.runner.max_iterations && !owed() {
        return Verdict::Finished(format!("it is finished, at iteration {iteration}"));
    }
    let goal = config.runner.stop_at_return;
    if goal != 0.0 && reached(folder).is_some_and(|value| value >= goal) {
        return Verdict::Finished(format!("it reached its goal at iteration {iteration}"));
    }
    Verdict::Unfinished(*iteration)
}

/// The configuration as it would be for the run in `folder`, or why that is another.
fn same_run(
    folder: &Path,
    path: &Path,
    overrides: &[Override],
    sources: &[PathBuf],
) -> Result<Config, String> {
    let say = |e: RunError| e.to_string();
    let (before, old_model, _) =
        plan(&folder.join(dir::CONFIG), &[], None, Gpus::Trust).map_err(say)?;
    let (now, _, _) = plan(path, overrides, Some(&before.config), Gpus::Trust).map_err(say)?;
    if let Some(key) = same_run::others(&before.config, &now.config).first() {
        return Err(format!("another configuration, {key}"));
    }
    match same_files(&old_model.sources, sources) {
        true => Ok(now.config),
        false => Err("another robot".into()),
    }
}

/// The return with which a run ended, where that was the reason.
fn reached(folder: &Path) -> Option<f64> {
    let bytes = files::read(&folder.join("meta.json"), MOST).ok()?;
    let meta: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    meta.get(REACHED)?.as_f64()
}

/// Folders of runs, newest first by their names, which are dates, `_2` and so on for
/// more of one second.
fn newest_first(parent: &Path) -> Vec<PathBuf> {
    const DATE: usize = "2026-01-31_23-59-59".len();
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let key = |name: String| {
        let (date, rest) = name.split_at_checked(DATE)?;
        let number = match rest.strip_prefix('_') {
            Some(n) => n.parse::<u32>().ok()?,
            None if rest.is_empty() => 1,
            None => return None,
        };
        Some((date.to_string(), number))
    };
    let mut found: Vec<_> =
        entries.filter_map(|e| Some((key(e.file_name().into_string().ok()?)?, e.path()))).collect();
    found.sort();
    found.into_iter().rev().map(|f| f.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ordered_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "2026-03-01_10-00-00_10",
            "2026-03-01_10-00-00_9",
            "2026-03-01_10-00-00",
            "2026-02-28_23-00-00",
        ];
        for name in names.iter().rev().chain(&["latest", "mine", "2026-03-01_10-00-00x"]) {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let found = newest_first(dir.path());
        let found: Vec<_> = found.iter().filter_map(|p| p.file_name()?.to_str()).collect();
        assert_eq!(found, names);
        assert!(newest_first(&dir.path().join("none")).is_empty());
    }
}
