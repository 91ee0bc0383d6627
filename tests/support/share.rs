//! Tests of thousands of states, hundreds of models or several architectures: with the other
//! tests a stated share of them runs, all of it under `cargo xtask nightly`. Beside `need.rs`.

#![allow(dead_code, reason = "the runner of tests has the names alone")]

use super::need::{RECORD, program, test};

/// The variable that asks for all: 1.
pub const FULL: &str = "OSTLER_FULL";
/// First word of a line in the file that `OSTLER_SKIPS` names.
pub const WORD: &str = "share";

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
    let (program, test, size) = (program(), test(), format!("{share} of {full} {what}"));
    // Past the test harness's capture, as for a skipped test.
    let said = format!("IN PART: {program} {test}: {size}; all: cargo xtask nightly\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
    if let Some(file) = std::env::var_os(RECORD) {
        let mut open = std::fs::OpenOptions::new();
        let line = format!("{WORD}\t{program}\t{test}\t{size}\n");
        let open = open.append(true).create(true).open(&file);
        let written = open.and_then(|mut f| std::io::Write::write_all(&mut f, line.as_bytes()));
        if let Err(e) = written {
            panic!("a test that runs in part is not listed: {RECORD}={file:?}: {e}");
        }
    }
    share
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
