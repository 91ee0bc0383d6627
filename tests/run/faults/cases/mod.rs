//! The faults, by where they strike.

mod environments;
mod files;
mod memory;
mod processes;
mod updates;

use super::seen::{self, FOR_EVER, Seen, Tried};
use crate::common::Place;
use crate::common::process::{kill, wait};
use std::process::Stdio;

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

/// `ostler train` below a limit of the shell's.
fn limited(limit: &str, args: &str) -> Tried {
    let place = Place::new();
    let output = place.limited(limit, &format!("train pole.toml --quiet --out a {args}"));
    Tried::new(place, output)
}

/// A run that would go on for ever; a case that fails leaves none behind.
struct Endless(Option<std::process::Child>);

impl Endless {
    fn id(&self) -> i32 {
        self.0.as_ref().unwrap().id() as i32
    }

    fn send(&self, signal: i32) {
        kill(self.id(), signal);
    }

    /// Waits for its end.
    fn end(mut self, place: Place) -> Tried {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        Tried::new(place, output)
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
    let n = format!("runner.max_iterations={FOR_EVER}");
    let mut args = vec!["train", "pole.toml", "--quiet", "--out", "a", &n];
    args.extend(more);
    let child =
        place.ostler(&args).env("TMPDIR", place.0.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut endless = Endless(Some(child));
    wait("its third iteration", || {
        let child = endless.0.as_mut().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        (metrics_so_far(place) >= 3).then_some(())
    });
    endless
}

fn metrics_so_far(place: &Place) -> usize {
    std::fs::read_to_string(place.path("a/metrics.jsonl")).map_or(0, |t| t.lines().count())
}

/// Waits for two more iterations of it.
fn goes_on(place: &Place) {
    let before = metrics_so_far(place);
    wait("more iterations", || (metrics_so_far(place) > before + 1).then_some(()));
}
