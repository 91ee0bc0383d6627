//! The user's Python: asked, never changed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command of `python` that imports nothing from the current folder: with `-c` and
/// `-m`, Python looks there first, and a checkout from elsewhere could hold a `pip.py`.
/// It starts in `/`, so paths among its arguments must be absolute. (The program's own Pythons
/// are those of `sim/base/src/python.rs`, which go on where the user stands.)
pub fn command(python: impl AsRef<OsStr>) -> Command {
    let path = Path::new(python.as_ref());
    let mut command = match std::path::absolute(path) {
        Ok(whole) if path.components().count() > 1 => Command::new(whole),
        _ => Command::new(path),
    };
    // Python 3.11 and newer; for older ones the folder is what counts.
    command.env("PYTHONSAFEPATH", "1").current_dir("/");
    command
}

/// The names tried, in this order, in `PATH`.
const NAMES: [&str; 2] = ["python3", "python"];

/// The interpreters that start.
pub fn interpreters() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|name| succeeds(command(name).arg("--version")))
}

/// Whether `python -m pip` runs.
pub fn has_pip(python: &str) -> bool {
    succeeds(command(python).args(["-m", "pip", "--version"]))
}

/// The folder of the torch that `python` would import, without importing it
/// (which takes seconds).
pub fn torch_folder(python: &str) -> Option<PathBuf> {
    const FIND: &str = "import importlib.util as u\n\
        s = u.find_spec('torch')\n\
        print(s.origin if s and s.origin else '')";
    let output = command(python)
        .args(["-c", FIND])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let file = PathBuf::from(text.trim_end());
    file.parent().filter(|folder| folder.join("version.py").is_file()).map(Into::into)
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
