//! The user's Python: asked, never changed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The names tried, in this order, in `PATH`.
const NAMES: [&str; 2] = ["python3", "python"];

/// The interpreters that start.
pub fn interpreters() -> impl Iterator<Item = &'static str> {
    NAMES
        .into_iter()
        .filter(|name| succeeds(Command::new(name).arg("--version")))
}

/// Whether `python -m pip` runs.
pub fn has_pip(python: &str) -> bool {
    succeeds(Command::new(python).args(["-m", "pip", "--version"]))
}

/// The folder of the torch that `python` would import, without importing it
/// (which takes seconds).
pub fn torch_folder(python: &str) -> Option<PathBuf> {
    const FIND: &str = "import importlib.util as u\n\
        s = u.find_spec('torch')\n\
        print(s.origin if s and s.origin else '')";
    // From the root: with -c, Python looks in the current folder first.
    let output = Command::new(python)
        .args(["-c", FIND])
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let file = PathBuf::from(text.trim_end());
    file.parent()
        .filter(|folder| folder.join("version.py").is_file())
        .map(Into::into)
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
