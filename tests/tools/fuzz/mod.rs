//! Every reader against damaged files: no panic, no overflow of the stack, no memory
//! and no time beyond what the file's size explains.
//!
//! Files begin as real ones and are damaged where it hurts; checksums are put right
//! again, so that what lies behind them is reached. Without more ado it is the same
//! files every time; `OSTLER_FUZZ_SECONDS=600 cargo test --workspace --test tools fuzz::mjcf`
//! makes others for so long; a finding names its case, which
//! `OSTLER_FUZZ_CASE=NUMBER` runs again.

mod arrays;
mod bombs;
mod count;
mod drive;
mod folder;
mod mutate;
mod networks;
mod pictures;
mod runs;
mod state;
mod text;

use drive::fuzz;

/// A reader with deliberate mistakes: the mistakes are found, and the examples are made small.
#[test]
fn what_is_wrong_is_found() {
    for (name, word) in
        [("panics", "panicked"), ("memory", "MiB held"), ("memory-of-c", "MiB held")]
    {
        let found = std::panic::catch_unwind(|| fuzz(name, 100, || drive::wrong(name)));
        let text = *found.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("1 findings"), "{text}");
        assert!(text.contains(word), "{name}: {text}");
        let size = text.split(" bytes in").next().and_then(|t| t.lines().last());
        assert!(size.unwrap().parse::<usize>().unwrap() < 12, "{text}");
    }
}

#[test]
fn config() {
    fuzz("config", 1000, text::config);
}

#[test]
fn regression() {
    fuzz("regression", 1000, text::regression);
}

#[test]
fn mjcf() {
    fuzz("mjcf", 1000, text::mjcf);
}

#[test]
fn pictures() {
    fuzz("pictures", 300, pictures::pictures);
}

#[test]
fn models() {
    fuzz("models", 150, bombs::models);
}

#[test]
fn terms() {
    fuzz("terms", 300, bombs::terms);
}

#[test]
fn expression() {
    fuzz("expression", 1000, text::expression);
}

#[test]
fn task() {
    fuzz("task", 1000, text::task);
}

#[test]
fn lines() {
    fuzz("lines", 500, text::lines);
}

#[test]
fn metrics() {
    fuzz("metrics", 1000, runs::metrics);
}

#[test]
fn history() {
    fuzz("history", 1000, runs::history);
}

#[test]
fn baselines() {
    fuzz("baselines", 1000, runs::baselines);
}

#[test]
fn curve() {
    fuzz("curve", 50, runs::curve);
}

#[test]
fn events() {
    fuzz("events", 1000, runs::events);
}

#[test]
fn checkpoint() {
    fuzz("checkpoint", 1000, runs::checkpoint);
}

#[test]
fn run_folder() {
    fuzz("run_folder", 60, folder::run_folder);
}

#[test]
fn npz() {
    fuzz("npz", 1000, arrays::npz);
}

#[test]
fn networks() {
    fuzz("networks", 1000, networks::networks);
}

#[test]
fn policy() {
    fuzz("policy", 1000, networks::policy);
}

#[test]
fn replay() {
    fuzz("replay", 1000, runs::replay);
}

#[test]
fn environments() {
    fuzz("environments", 1000, state::environments);
}
