//! Pythons that are started: none imports from the folder that the user stands in, which may be
//! somebody else's.
//!
//! Python looks for modules there first where it runs a text (`-c`), before its own: a `json.py`
//! would be run. What the user's `PYTHONPATH` names stays.

use crate::process;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Python 3.11 and newer then leave that folder out, and hand the rule on to the processes of
/// `multiprocessing` by their flags.
const SAFE: &str = "PYTHONSAFEPATH";
/// Its value where the user gave none.
const OURS: &str = "ostler";
/// Folders of the user's own modules.
const PATHS: &str = "PYTHONPATH";
/// The first line of a text: older ones have the folder in front, and have imported nothing from
/// there so far. Other programs that the text starts do not get the variable.
const FIRST: &str = "import sys; sys.path[:1] == [''] and sys.path.pop(0); import os; \
    os.environ.get('PYTHONSAFEPATH') == 'ostler' and os.environ.pop('PYTHONSAFEPATH')\n";

/// A Python that runs `text`.
pub fn text(python: impl AsRef<OsStr>, text: &str) -> Command {
    let mut command = command(python.as_ref());
    if std::env::var_os(SAFE).is_none_or(|value| value.is_empty()) {
        command.env(SAFE, OURS);
    }
    command.arg("-c").arg(format!("{FIRST}{text}"));
    command
}

/// A Python that runs the file `script`, which may import what lies beside it: a folder that
/// nobody else writes into.
pub fn script(python: impl AsRef<OsStr>, script: &Path) -> Command {
    let mut command = command(python.as_ref());
    command.env_remove(SAFE).arg(script);
    command
}

fn command(python: &OsStr) -> Command {
    // A name with a slash is relative to where the user stands, wherever it is started.
    let path = Path::new(python);
    let mut command = match std::path::absolute(path) {
        Ok(whole) if path.components().count() > 1 => Command::new(whole),
        _ => Command::new(path),
    };
    if let Some(paths) = std::env::var_os(PATHS) {
        // An empty name, as a colon too many makes it, is that folder again.
        let named = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
        let whole = named.map(|path| std::path::absolute(&path).unwrap_or(path));
        match std::env::join_paths(whole) {
            Ok(paths) if !paths.is_empty() => command.env(PATHS, paths),
            _ => command.env_remove(PATHS),
        };
    }
    process::takes_signals(&mut command);
    command
}
