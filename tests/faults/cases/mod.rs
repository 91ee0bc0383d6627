//! The faults, by where they strike.

mod environments;
mod files;
mod memory;
mod processes;
mod updates;

use super::common::{self, Place};
use super::seen::{self, Seen, Tried};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// One row.
pub struct Case {
    pub fault: &'static str,
    pub how: &'static str,
    pub run: fn() -> Seen,
}

fn case(fault: &'static str, how: &'static str, run: fn() -> Seen) -> Case {
    Case { fault, how, run }
}

pub fn all() -> Vec<Case> {
    let mut all = environments::all();
    all.extend(updates::all());
    all.extend(memory::all());
    all.extend(processes::all());
    all.extend(files::all());
    all
}

fn saw(did: &str, lost: &str) -> Seen {
    Seen {
        did: did.into(),
        lost: lost.into(),
    }
}

/// `ostler train` below a limit of the shell's.
fn limited(limit: &str, args: &str) -> Tried {
    let place = Place::new();
    let output = place.limited(limit, &format!("train pole.toml --quiet --out a {args}"));
    let run = place.path("a");
    Tried { place, run, output }
}

/// A training that would go on for ever; a case that fails leaves none behind.
struct Endless(Option<std::process::Child>);

impl Endless {
    fn send(&self, signal: i32) {
        let id = self.0.as_ref().unwrap().id();
        // SAFETY: kill takes two numbers; the child is ours and not yet waited for.
        unsafe { libc::kill(id as i32, signal) };
    }

    fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts one and waits for its third iteration.
fn endless(place: &Place, more: &[&str]) -> Endless {
    let mut args = vec![
        "train",
        "pole.toml",
        "--quiet",
        "--out",
        "a",
        "runner.max_iterations=1000000",
    ];
    args.extend(more);
    let child = place
        .ostler(&args)
        .env("TMPDIR", place.0.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut endless = Endless(Some(child));
    let log = place.path("a/metrics.jsonl");
    wait(|| {
        let child = endless.0.as_mut().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        std::fs::read_to_string(&log).is_ok_and(|t| t.lines().count() >= 3)
    });
    endless
}

fn wait(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn metrics_so_far(place: &Place) -> usize {
    std::fs::read_to_string(place.path("a/metrics.jsonl")).map_or(0, |t| t.lines().count())
}
