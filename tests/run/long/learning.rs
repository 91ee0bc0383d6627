//! Faults now and then cost little of what is learnt.

use super::{config, ostler};
use crate::common::metrics;

const SEEDS: u64 = 5;

/// Iterations until the mean of the last hundred episodes reaches 950 of 1000.
fn iterations(seed: u64, faults: &[&str]) -> usize {
    let place = tempfile::tempdir().unwrap();
    let seed = format!("seed={seed}");
    let mut command = ostler();
    command.current_dir(place.path());
    command.args(["train"]).arg(config("cartpole"));
    command.args(["--quiet", "--out", "a", "log.curve=false", &seed]);
    command.args(["sim.specialize=off", "runner.stop_at_return=950"]);
    command.args(["runner.max_iterations=400"]);
    for fault in faults {
        command.args(["--inject", fault]);
    }
    let status = command.stderr(std::process::Stdio::null()).status().unwrap();
    assert!(status.success());
    let lines = metrics(&place.path().join("a"));
    let sum = |tag: &str| -> f64 { lines.iter().filter_map(|l| l[tag].as_f64()).sum() };
    if !faults.is_empty() {
        assert!(sum("Guard/broken_envs") > 10.0 && sum("Guard/skipped_minibatches") > 1.0);
    }
    lines.len()
}

fn median(mut of: Vec<usize>) -> usize {
    of.sort_unstable();
    of[of.len() / 2]
}

#[test]
#[ignore = "ten runs"]
fn learning_with_faults_takes_at_most_a_fifth_more_iterations() {
    let faults = ["nan qpos[0] env=5 every=50", "nan gradient every=20"];
    let (mut clean, mut broken) = (Vec::new(), Vec::new());
    for seed in 1..=SEEDS {
        clean.push(iterations(seed, &[]));
        broken.push(iterations(seed, &faults));
        println!(
            "seed {seed}: {} clean, {} with faults",
            clean.last().unwrap(),
            broken.last().unwrap()
        );
    }
    let (clean, broken) = (median(clean), median(broken));
    let ratio = broken as f64 / clean as f64;
    println!("medians: {clean} clean, {broken} with faults: {ratio:.2}x");
    assert!(ratio <= 1.2, "{ratio}");
}
