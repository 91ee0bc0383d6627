//! Asking a referee's script, and comparing what it says.

use serde_json::{Map, Value};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a script in a scratch folder: MuJoCo writes its log where it runs.
pub fn run<A: AsRef<std::ffi::OsStr>>(python: &Path, script: &Path, args: &[A]) -> Output {
    let scratch = tempfile::tempdir().unwrap();
    Command::new(python)
        .current_dir(&scratch)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(script)
        .args(args)
        .output()
        .unwrap()
}

/// The object that a script prints as its last line of JSON; `None` without a referee.
pub fn answer<A: AsRef<std::ffi::OsStr>>(script: &Path, args: &[A]) -> Option<Map<String, Value>> {
    let out = run(&super::referee::referee_python()?, script, args);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    // MuJoCo prints warnings to standard output too.
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().rfind(|l| l.starts_with('{')).unwrap();
    Some(serde_json::from_str(line).unwrap())
}

/// An array's numbers, or a number by itself.
pub fn numbers(value: &Value) -> Vec<f64> {
    let number = |x: &Value| x.as_f64().unwrap_or_else(|| panic!("{x} is no number"));
    match value {
        Value::Array(list) => list.iter().map(number).collect(),
        one => vec![number(one)],
    }
}

/// Equal within `tolerance` of the largest of `theirs` (1e-6 at least).
#[track_caller]
pub fn same(tolerance: f64, what: &str, ours: &[f64], theirs: &[f64]) {
    let scale = theirs.iter().fold(1e-6_f64, |a, x| a.max(x.abs()));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * scale;
    let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(near);
    assert!(equal, "{what}: ours {ours:?}, MuJoCo's {theirs:?}");
}
