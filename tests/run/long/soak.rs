//! Long runs take no more and leave nothing: memory, file descriptors, threads,
//! shared memory, files, looked at from outside.

use super::{Guarded, config, number, ostler};
use crate::common::metrics;
use crate::common::process::{kill, left_in_shm, names, parent_of, trainer_of};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Resources of a process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_s: f64,
    rss_kib: f64,
    files: usize,
    threads: usize,
    /// Pieces of /dev/shm that it has mapped or open.
    shared: usize,
}

fn look(pid: i32, at_s: f64) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| -> Option<f64> {
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let open: Vec<_> = open.filter_map(|e| std::fs::read_link(e.path()).ok()).collect();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let shared = open.iter().filter(|p| p.starts_with("/dev/shm")).count()
        + maps.lines().filter(|l| l.contains("/dev/shm/")).count();
    Some(Sample {
        at_s,
        rss_kib: field("VmRSS:")?,
        files: open.len(),
        threads: field("Threads:")? as usize,
        shared,
    })
}

/// Growth of the resident memory over the time looked at, by the line of least squares,
/// and the standard deviation from that line (KiB).
fn growth(samples: &[Sample]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / n;
    let (t, y) = (mean(&|s| s.at_s), mean(&|s| s.rss_kib));
    let of_t = mean(&|s| (s.at_s - t).powi(2));
    let slope = mean(&|s| (s.at_s - t) * (s.rss_kib - y)) / of_t;
    let noise = mean(&|s| (s.rss_kib - y - slope * (s.at_s - t)).powi(2)).sqrt();
    let span = samples.last().unwrap().at_s - samples[0].at_s;
    (slope * span, noise)
}

/// Memory is flat: over the whole time the line rises by less than `most_mib` or than twice
/// the deviation from it. Of the rest the last is no more than the first third's most.
fn assert_flat(name: &str, samples: &[Sample], most_mib: f64) {
    // Warm-up: buffers at their largest, threads started, libtorch's caches filled, and
    // the heap as torn as it gets (it grows by 1 MiB, ever slower, for 900 iterations).
    let samples = &samples[samples.len() / 2..];
    let (grown, noise) = growth(samples);
    let last = samples.last().unwrap();
    println!(
        "{name}: {} samples in {:.0} s, {:.1} MiB, growth {:.2} MiB, noise {:.2} MiB, {} files, {} threads, {} in /dev/shm",
        samples.len(),
        last.at_s - samples[0].at_s,
        last.rss_kib / 1024.0,
        grown / 1024.0,
        noise / 1024.0,
        last.files,
        last.threads,
        last.shared
    );
    let quarters = samples.chunks(samples.len().div_ceil(4));
    let means = quarters.map(|q| q.iter().map(|s| s.rss_kib).sum::<f64>() / q.len() as f64);
    let means: Vec<String> = means.map(|kib| format!("{:.2}", kib / 1024.0)).collect();
    println!("  means of its quarters: {} MiB", means.join(", "));
    assert!(samples.len() >= 20, "too short to tell");
    assert!(grown < f64::max(1024.0 * most_mib, 2.0 * noise), "{name} grows");
    let (early, late) = samples.split_at(samples.len() / 3);
    let most = |of: fn(&Sample) -> usize, all: &[Sample]| all.iter().map(of).max().unwrap();
    // A file that is being written is open for a moment.
    assert!(most(|s| s.files, late) <= most(|s| s.files, early) + 2, "{name}: files");
    assert!(most(|s| s.threads, late) <= most(|s| s.threads, early), "{name}: threads");
    assert_eq!(most(|s| s.shared, samples), 0, "{name}: /dev/shm");
}

/// `ostler train cartpole` with its temporary files in a folder of their own.
fn train(place: &Path, more: &[&str]) -> Command {
    let tmp = place.join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let mut command = ostler();
    command.current_dir(place).env("TMPDIR", tmp);
    command.arg("train").arg(config("cartpole"));
    command.args(["--quiet", "--out", "a", "log.curve=false", "sim.specialize=off"]);
    command.args(more).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn assert_nothing_left(place: &Path, before: &BTreeSet<String>, pids: &[i32]) {
    let left: Vec<_> = std::fs::read_dir(place.join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "in the temporary folder: {left:?}");
    let left = left_in_shm(before, pids);
    assert!(left.is_empty(), "in /dev/shm: {left:?}");
    assert!(pids.iter().all(|&p| parent_of(p).is_none()), "a process stays");
}

/// Trains to the end and looks at both processes all the while; returns the run's steps.
/// Neither may grow by more than `most_mib` in its second half.
fn soak(more: &[&str], every: Duration, most_mib: f64) -> u64 {
    let place = tempfile::tempdir().unwrap();
    let shm = names("/dev/shm");
    let mut child = Guarded(train(place.path(), more).spawn().unwrap());
    let clock = Instant::now();
    let parent = child.0.id() as i32;
    let (mut of_parent, mut of_trainer, mut trainer) = (Vec::new(), Vec::new(), None);
    let log = place.path().join("a/metrics.jsonl");
    while child.0.try_wait().unwrap().is_none() {
        // Before its first iteration a run only grows.
        if std::fs::metadata(&log).is_ok_and(|m| m.len() > 0) {
            let at_s = clock.elapsed().as_secs_f64();
            trainer = trainer.or_else(|| trainer_of(parent));
            of_parent.extend(look(parent, at_s));
            of_trainer.extend(trainer.and_then(|pid| look(pid, at_s)));
        }
        std::thread::sleep(every);
    }
    assert!(child.0.wait().unwrap().success());
    assert_flat("supervisor", &of_parent, most_mib);
    assert_flat("training", &of_trainer, most_mib);
    let pids = [parent, trainer.unwrap()];
    assert_nothing_left(place.path(), &shm, &pids);
    let lines = metrics(&place.path().join("a"));
    let last = lines.last().unwrap();
    let resized =
        lines.windows(2).filter(|w| w[0]["Perf/num_envs"] != w[1]["Perf/num_envs"]).count();
    let roll_backs = last["Guard/roll_backs"].as_f64().unwrap();
    let steps = last["env_steps"].as_u64().unwrap();
    println!("{steps} steps, {resized} changes of size, {roll_backs} roll-backs");
    assert!(resized >= 2 && roll_backs >= 1.0);
    steps
}

#[test]
fn a_short_soak_is_flat_and_leaves_nothing() {
    let small = [
        "env.num_envs=8",
        "runner.num_steps_per_env=16",
        "runner.max_iterations=1800",
        "runner.save_interval=20",
        "runner.eval_interval=50",
        "runner.eval_episodes=2",
        "back_off.grow_after=10",
        "learner.threads=1",
        "sim.threads=1",
    ];
    // The buffers for recovery from a failed allocation are made once and kept: they belong to
    // the warm-up, so both faults come in the half that is not examined.
    let faults = [
        "--inject",
        "nan parameter[5] every=60",
        "--inject",
        "fail allocation phase=update iteration=30",
        "--inject",
        "fail allocation phase=collect iteration=60",
        "--inject",
        "nan qpos[0] env=5 every=50",
    ];
    // Resident memory rose by 1.2 MiB once, in two steps of 0.4 MiB, on a busy machine: taken
    // for the heap, not shown to be it. A leak of 3 KiB an iteration is found here, a smaller
    // one by the long soak.
    soak(&[small.as_slice(), &faults].concat(), Duration::from_millis(20), 2.5);
}

#[test]
#[ignore = "minutes"]
fn a_soak_of_three_million_steps_is_flat_and_leaves_nothing() {
    let iterations = number("OSTLER_SOAK_ITERATIONS", 1600);
    let iterations = format!("runner.max_iterations={iterations}");
    let args = [
        &iterations,
        "runner.eval_interval=100",
        "runner.eval_episodes=4",
        "back_off.grow_after=40",
    ];
    let faults = [
        "--inject",
        "nan parameter[5] every=150",
        "--inject",
        "fail allocation phase=update iteration=100",
        "--inject",
        "fail allocation phase=collect iteration=400",
        "--inject",
        "fail allocation phase=save iteration=700",
        "--inject",
        "nan qpos[0] env=5 every=50",
    ];
    let steps = soak(&[args.as_slice(), &faults].concat(), Duration::from_millis(250), 1.0);
    assert!(steps >= 3_000_000, "{steps}");
}

#[test]
fn kill_9_leaves_nothing_in_temporary_folders() {
    for parent_dies in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let shm = names("/dev/shm");
        let more = ["runner.max_iterations=1000000", "runner.save_interval=1"];
        let once = ["runner.max_restarts=0"];
        let all = [more.as_slice(), &once].concat();
        let mut child = Guarded(train(place.path(), &all).spawn().unwrap());
        let log = place.path().join("a/metrics.jsonl");
        let clock = Instant::now();
        while !std::fs::read_to_string(&log).is_ok_and(|t| t.lines().count() > 3) {
            assert!(clock.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        let parent = child.0.id() as i32;
        let trainer = trainer_of(parent).unwrap();
        if !parent_dies {
            kill(trainer, libc::SIGKILL);
            while parent_of(trainer).is_some() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let second = trainer_of(parent);
        kill(parent, libc::SIGKILL);
        child.0.wait().unwrap();
        let pids: Vec<i32> = [Some(parent), Some(trainer), second].into_iter().flatten().collect();
        while pids.iter().any(|&p| parent_of(p).is_some()) {
            assert!(clock.elapsed() < Duration::from_secs(90), "a process stays");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_nothing_left(place.path(), &shm, &pids);
    }
}
