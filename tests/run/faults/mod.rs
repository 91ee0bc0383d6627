//! Reactions of a run to each fault, tried one by one: the table of `docs/faults.md`.
//!
//! Every row is a real run by the real program. The row's words come from the exit code, the
//! folder and the log; the test fails where they are not those of the page, and
//! `OSTLER_WRITE_DOCS=1` writes the page anew.

mod cases;
mod seen;

use crate::common::root;
use cases::Case;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const HEAD: &str = "# Faults of a run

Each row was tried by the test suite (`cargo test --workspace --test run faults::`): a small cart-pole, 8 environments of 16 steps, 6 iterations, a checkpoint at every second. The words are generated from the exit code, the folder and the log of the run. *Same bits* means: the last checkpoint equals that of a run without the fault. Drills are given by `--inject` ([robustness.md](robustness.md#drills)); all other faults are real.

| fault | cause | reaction of the run | loss |
|---|---|---|---|
";

fn page() -> PathBuf {
    root().join("docs/faults.md")
}

#[test]
fn every_fault_ends_as_the_table_says() {
    let cases = cases::all();
    assert!(cases.len() >= 30, "{} faults", cases.len());
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<(usize, Result<String, String>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(i) else { return };
            let row = row(case);
            rows.lock().unwrap().push((i, row));
        }
    };
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(work);
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|r| r.0);
    let mut text = HEAD.to_string();
    let mut failed = String::new();
    for (i, row) in rows {
        match row {
            Ok(row) => text.push_str(&row),
            Err(why) => {
                let _ = writeln!(failed, "{}: {why}", cases[i].fault);
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
    if std::env::var_os("OSTLER_WRITE_DOCS").is_some() {
        std::fs::write(page(), &text).unwrap();
    }
    let written = std::fs::read_to_string(page()).unwrap_or_default();
    for (now, then) in text.lines().zip(written.lines()) {
        assert_eq!(now, then, "docs/faults.md; OSTLER_WRITE_DOCS=1 writes it anew");
    }
    assert_eq!(text.lines().count(), written.lines().count());
}

fn row(case: &Case) -> Result<String, String> {
    let seen = std::panic::catch_unwind(|| (case.run)()).map_err(|e| {
        let text = e.downcast_ref::<String>().cloned();
        text.or_else(|| e.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })?;
    Ok(format!("| {} | {} | {} | {} |\n", case.fault, case.how, seen.did, seen.lost))
}
