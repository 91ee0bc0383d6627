//! The cost of guards and monitors, in instructions, by valgrind's callgrind.

use super::config;
use crate::support::need;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Parts of an iteration that would not be there without guards. None is called by
/// another of them. (The check of a minibatch also sums up what is logged.)
const GUARDS: [&str; 11] = [
    "Parts::keep",
    "Health::judge_collection",
    "Health::judge_update",
    "Health::stood",
    "RunDrill::enter",
    "RunDrill::leave",
    "guard::Watch::look",
    "Run::due_size",
    "reserve::keep_up",
    "size_of_state",
    "Judge::judge",
];

/// Inclusive instructions of each function in a run of so many iterations.
fn profile(name: &str, iterations: u64) -> BTreeMap<String, u64> {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("callgrind.out");
    let status = Command::new("valgrind")
        .current_dir(place.path())
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env!("CARGO_BIN_EXE_ostler"))
        .arg("train")
        .arg(config(name))
        .args(["--quiet", "--out", "a", "log.curve=false"])
        .args(["sim.specialize=off", "sim.threads=1", "learner.threads=1"])
        .args(["runner.supervise=false", "runner.save_interval=0", "runner.eval_interval=0"])
        .arg(format!("runner.max_iterations={iterations}"))
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    inclusive(&out)
}

fn inclusive(out: &Path) -> BTreeMap<String, u64> {
    let text = Command::new("callgrind_annotate")
        .args(["--inclusive=yes", "--threshold=100", "--auto=no"])
        .arg(out)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let mut all = BTreeMap::new();
    for line in text.lines() {
        // 1,234 ( 5.6%)  file:function [object]
        let Some((count, rest)) = line.trim().split_once(" (") else {
            continue;
        };
        let (Ok(n), Some((_, name))) =
            (count.replace(',', "").parse::<u64>(), rest.split_once(')'))
        else {
            continue;
        };
        *all.entry(name.trim().to_string()).or_default() += n;
    }
    all
}

/// The difference between the shorter and the longer run in instructions of a function's calls.
fn between(short: &BTreeMap<String, u64>, long: &BTreeMap<String, u64>, part: &str) -> u64 {
    let whole = |name: &str| {
        let function = name.split(" [").next().unwrap_or(name);
        function.ends_with(part)
    };
    // Code that was inlined into a function, and the function itself, have rows apart.
    let most = |all: &BTreeMap<String, u64>| -> u64 {
        let rows = all.iter().filter(|(n, _)| whole(n)).map(|(_, &c)| c);
        rows.max().unwrap_or(0)
    };
    most(long).saturating_sub(most(short))
}

#[test]
#[ignore = "minutes; needs valgrind"]
fn guards_take_less_than_a_hundredth_of_an_iterations_instructions() {
    let Some(()) = need::Need::Valgrind.or_skip(need::runs("valgrind")) else {
        return;
    };
    for name in ["cartpole", "half_cheetah"] {
        let (short, long) = (profile(name, 2), profile(name, 4));
        let all = between(&short, &long, "PROGRAM TOTALS");
        let iterations = between(&short, &long, "Run::train");
        assert!(iterations > 0, "Run::train is not in the profile");
        println!(
            "{name}: {} million instructions an iteration, {} in all",
            iterations / 2_000_000,
            all / 2_000_000
        );
        let mut sum = 0;
        for part in GUARDS {
            let n = between(&short, &long, part);
            println!("  {part}: {:.4} %", 100.0 * n as f64 / iterations as f64);
            sum += n;
        }
        let share = sum as f64 / iterations as f64;
        println!("  together: {:.3} %", 100.0 * share);
        assert!(share < 0.01);
    }
}
