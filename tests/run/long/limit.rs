//! A limit that does not hold the environments that were asked for.

use super::{Guarded, config, number, ostler};
use crate::common::metrics;
use crate::common::process::trainer_of;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Samples per environment: with the usual 32 one iteration of 65,536 takes a minute.
const STEPS: &str = "runner.num_steps_per_env=8";

fn train(place: &Path, out: &str, more: &[&str]) -> Command {
    let mut command = ostler();
    command.current_dir(place).arg("train").arg(config("cartpole"));
    command.args(["--quiet", "--out", out, "log.curve=false", STEPS]);
    command.args(["sim.specialize=off"]).args(more);
    command.stdout(Stdio::null());
    command
}

/// Mean return of a hundred episodes.
fn evaluated(place: &Path, run: &str) -> f64 {
    let output = ostler()
        .current_dir(place)
        .args(["eval", run, "--episodes", "100", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["mean_return"].as_f64().unwrap()
}

/// A run whose memory is limited after its second iteration (RLIMIT_DATA), below
/// what it holds by then. The limit is everybody's: the supervising process and what it
/// starts have it too.
fn limited_on_the_way(place: &Path, mib: u64, more: &[&str]) {
    let mut child = train(place, "limited", more);
    child.args(["env.num_envs=65536", "runner.save_interval=1"]);
    let mut child = Guarded(child.spawn().unwrap());
    let log = place.join("limited/metrics.jsonl");
    let done = || std::fs::read_to_string(&log).map_or(0, |t| t.lines().count());
    while done() < 2 {
        assert!(child.0.try_wait().unwrap().is_none(), "ended early");
        std::thread::sleep(Duration::from_millis(50));
    }
    let trainer = trainer_of(child.0.id() as i32).unwrap();
    let limit = libc::rlimit { rlim_cur: mib << 20, rlim_max: mib << 20 };
    for pid in [child.0.id() as i32, trainer] {
        // SAFETY: the limit lives until the call returns; nothing is written back.
        let set = unsafe { libc::prlimit(pid, libc::RLIMIT_DATA, &limit, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    }
    assert!(child.0.wait().unwrap().success());
}

#[test]
#[ignore = "minutes per seed"]
fn limited_on_the_way_it_learns_as_one_that_started_with_what_fits() {
    let mib = number("OSTLER_LIMIT_MIB", 250);
    let iterations = format!("runner.max_iterations={}", number("OSTLER_ITERATIONS", 100));
    for seed in 1..=number("OSTLER_SEEDS", 1) {
        let place = tempfile::tempdir().unwrap();
        let seed_is = format!("seed={seed}");
        let more = [iterations.as_str(), &seed_is];
        limited_on_the_way(place.path(), mib, &more);
        let lines = metrics(&place.path().join("limited"));
        let sizes: Vec<u64> =
            lines.iter().map(|l| l["Perf/num_envs"].as_f64().unwrap() as u64).collect();
        assert_eq!(sizes[0], 65536);
        let last = *sizes.last().unwrap();
        assert!(last < 65536, "{sizes:?}");
        let n = format!("env.num_envs={last}");
        let mut from_start = train(place.path(), "whole", &more);
        assert!(from_start.arg(&n).status().unwrap().success());
        let (a, b) = (evaluated(place.path(), "limited"), evaluated(place.path(), "whole"));
        let mut changes = sizes;
        changes.dedup();
        println!("seed {seed}: {changes:?}: return {a:.1}; {last} from the start: {b:.1}");
        assert!((a - b).abs() <= 0.05 * b.abs(), "{a} {b}");
    }
}
