//! Tests of thousands of states, hundreds of models or several architectures: with the other
//! tests a stated share of them runs, all of it under `cargo xtask nightly`. Beside `need.rs`.

#![allow(dead_code, reason = "the runner of tests has the names alone")]

use super::need::{RECORD, test};

/// The variable that asks for all: 1.
pub const FULL: &str = "OSTLER_FULL";
/// First word of a line in the file that `OSTLER_SKIPS` names.
pub const WORD: &str = "share";
/// The same of [`due`].
pub const PROGRAM: &str = "program";
/// The variable with the file of what is proved: lines of a test, a model and a hash, with tabs.
pub const PROVED: &str = "OSTLER_PROVED";

/// How many of `full` things, which `what` names, the calling test looks at: all where
/// [`FULL`] is 1, else `share`, after saying so.
///
/// # Panics
/// [`FULL`] is neither 1 nor empty.
pub fn of(full: usize, what: &str, share: usize) -> usize {
    if in_full() {
        return full;
    }
    assert!(0 < share && share < full, "{share} of {full}");
    let (program, test) = (super::need::program(), test());
    let size = format!("{share} of {full} {what}");
    // Past the test harness's capture, as for a skipped test.
    let said = format!("IN PART: {program} {test}: {size}; all: cargo xtask nightly\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
    write_down(&format!("{WORD}\t{program}\t{test}\t{size}"));
    share
}

/// Whether the calling test is to look at `model`, whose printed program has this hash: not where
/// it was proved in full with the same hash, if the runner of tests says so. Says to the runner
/// what it has.
///
/// # Panics
/// As [`of`]; the record cannot be read or written.
pub fn due(model: &str, hash: &str) -> bool {
    let line = format!("{}\t{model}\t{hash}", test());
    write_down(&format!("{PROGRAM}\t{line}"));
    let Some(file) = std::env::var_os(PROVED) else { return true };
    let proved =
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{PROVED}={file:?}: {e}"));
    !proved.lines().any(|known| known == line)
}

/// A line for the runner of tests, if there is one.
fn write_down(line: &str) {
    let Some(file) = std::env::var_os(RECORD) else { return };
    let open = std::fs::OpenOptions::new().append(true).create(true).open(&file);
    // One write: tests of one program do so at the same time.
    let line = format!("{line}\n");
    let written = open.and_then(|mut f| std::io::Write::write_all(&mut f, line.as_bytes()));
    if let Err(e) = written {
        panic!("{line:?} is not written down: {RECORD}={file:?}: {e}");
    }
}

/// Whether all is asked for.
///
/// # Panics
/// As [`of`].
pub fn in_full() -> bool {
    match std::env::var(FULL).unwrap_or_default().as_str() {
        "1" => true,
        "" => false,
        other => panic!("{FULL}={other}: 1 runs all, unset a share"),
    }
}
