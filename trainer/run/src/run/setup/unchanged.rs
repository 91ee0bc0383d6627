//! Whether a run's own files are still those that its checkpoint was trained with.
//!
//! A bit of them that turns over would else make the run unreadable, or another one in
//! silence: a mass, a rate. The checkpoint has the configuration whole, and a hash of the
//! robot's files.

use super::same_run::differing;
use crate::run::error::RunError;
use crate::run::load::robot;
use crate::run::store::checkpoint::Meta;
use crate::run::store::dir::{self, RunDir};
use crate::run::store::hash::hash;
use ostler_learn::config::load;
use ostler_sim::files;
use std::path::{Path, PathBuf};

/// A configuration is no longer than this (bytes).
const MOST: u64 = 16 << 20;

/// Brings a `config.toml` back that cannot be read, from the checkpoint; a line about that, or
/// about what differs from it.
///
/// # Errors
/// It cannot be read, and the checkpoint has none; the folder cannot be written.
pub(super) fn own_config(dir: &RunDir, meta: &Meta) -> Result<Option<String>, RunError> {
    let path = dir.path().join(dir::CONFIG);
    if meta.config.is_empty() {
        return Ok(None);
    }
    let read = files::read(&path, MOST).unwrap_or_default();
    if read == meta.config.as_bytes() {
        return Ok(None);
    }
    let own = path.display();
    if let Some(why) = damage(&path, &read, meta) {
        let at = RunError::file("write into", dir.path());
        let aside = dir.path().join("config.damaged");
        let put = || {
            files::replace(&aside, files::SHARED, &read)?;
            files::replace(&path, files::SHARED, meta.config.as_bytes())
        };
        put().map_err(at)?;
        return Ok(Some(format!(
            "{own} could not be used ({}): the newest checkpoint's is in its place, and what was \
             there is {}",
            why.lines().next().unwrap_or_default(),
            aside.display()
        )));
    }
    let value = |text: &str| toml::from_str::<toml::Value>(text).ok();
    let now = std::str::from_utf8(&read).ok().and_then(value);
    let (Some(before), Some(now)) = (value(&meta.config), now) else {
        return Ok(None);
    };
    let keys = differing(&before, &now);
    Ok((!keys.is_empty()).then(|| {
        format!(
            "{own} is not what the newest checkpoint was trained with, and the run goes on by it:\n  {}",
            keys.join("\n  ")
        )
    }))
}

/// Why a configuration is none, or not of its robot. It has all keys, so that one which only
/// breaks off would be another one in silence.
fn damage(path: &Path, read: &[u8], meta: &Meta) -> Option<String> {
    if meta.config.as_bytes().starts_with(read) {
        return Some("it is cut short".into());
    }
    match load(path, &[]).map_err(RunError::from).and_then(|loaded| robot(&loaded)) {
        Err(RunError::Config(e)) => Some(e.to_string()),
        _ => None,
    }
}

/// A line where the robot's files are not those of the checkpoint.
pub(super) fn own_robot(folder: &Path, sources: &[PathBuf], meta: &Meta) -> Option<String> {
    let differ = !meta.sources.is_empty() && hash(sources).is_some_and(|h| h != meta.sources);
    differ.then(|| {
        format!(
            "the robot's files in {} are not those that the newest checkpoint was trained with, \
             and the run goes on by what they are now: put the original files in their place, or \
             begin anew with --init-from",
            folder.display()
        )
    })
}
