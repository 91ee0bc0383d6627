//! kill -9 at random moments: the run ends with the bits of one that was never killed.

use super::{Guarded, number};
use crate::common::process::{kill, parent_of, trainer_of};
use crate::common::{Place, assert_same_bits, metrics};
use ostler_sim::rng::{Purpose, philox, unit};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SEED: u64 = 5;
const ITERATIONS: u64 = 40;
/// Share of the kills that come before the first iteration is done.
const EARLY: f32 = 0.3;
const MISSED: &str = "had ended";
const SIZE: &str = "env.num_envs=64";

/// A number in `[0, 1)`: the `index`-th of a run.
fn draw(run: u64, index: u32) -> f32 {
    unit(philox(SEED, run as u32, Purpose::Injection, 0, index)[0])
}

/// Waits for a process to stop; whether it did.
fn stops(pid: i32) -> bool {
    for _ in 0..500 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]) {
            Some(b'T') => return true,
            Some(b'Z') | None => return false,
            Some(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    false
}

/// Where a run is that holds still.
fn phase(run: &Path) -> &'static str {
    let files = |folder: &Path| -> Vec<String> {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.filter_map(|e| e.file_name().into_string().ok()).collect()
    };
    let checkpoints = files(&run.join("checkpoints"));
    if checkpoints.iter().any(|n| n.ends_with(".tmp")) {
        return "while a checkpoint is written";
    }
    let saved = checkpoints.iter().any(|n| n.starts_with("iter_"));
    let began = std::fs::metadata(run.join("metrics.jsonl")).is_ok_and(|m| m.len() > 0);
    match (saved, began) {
        (true, _) => "after the first checkpoint",
        (false, true) => "before the first checkpoint",
        (false, false) if run.join("config.toml").exists() => "before the first iteration",
        (false, false) => "before the run's folder is complete",
    }
}

fn wait_until_gone(pid: i32) {
    let clock = Instant::now();
    while parent_of(pid).is_some() {
        assert!(clock.elapsed() < Duration::from_secs(20), "{pid} stays");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How long a run takes to begin, and each of its iterations.
#[derive(Clone, Copy)]
struct Pace {
    start: Duration,
    iteration: Duration,
}

/// Lets a run come as far as a draw says: a while after it began, or after some
/// iteration was logged.
fn let_run(run: u64, index: u32, pace: Pace, trainer: i32, out: &Path) {
    let draw = |i| draw(run, 3 * index + i);
    if draw(0) < EARLY {
        return std::thread::sleep(pace.start.mul_f32(draw(1)));
    }
    let metrics = out.join("metrics.jsonl");
    let lines = || std::fs::read(&metrics).map_or(0, |b| b.iter().filter(|c| **c == b'\n').count());
    let before = lines();
    let left = (ITERATIONS as usize).saturating_sub(before);
    let until = before + (left as f32 * draw(1)) as usize;
    while lines() < until && parent_of(trainer).is_some() {
        std::thread::sleep(pace.iteration / 8);
    }
    std::thread::sleep(pace.iteration.mul_f32(draw(2)));
}

/// One training with its kills; notes where each of them hit.
fn one(run: u64, whole: &Path, pace: Pace, hits: &Mutex<BTreeMap<String, u64>>) {
    let place = Place::new();
    let out = place.path("a");
    let every = ["1", "2", "7"][run as usize % 3];
    let every = format!("runner.save_interval={every}");
    let iterations = format!("runner.max_iterations={ITERATIONS}");
    // A container repeats the same command: the first start and every other one are the same.
    let args = [
        "train",
        "pole.toml",
        "--quiet",
        "--out",
        "a",
        "--resume",
        "auto",
        &iterations,
        SIZE,
        &every,
    ];
    let parent_dies = run % 4 == 3;
    let hit = |what: &str| {
        let who = if parent_dies { "both killed" } else { "training killed" };
        let what = match what {
            MISSED => what.into(),
            what => format!("{who}, {what}"),
        };
        *hits.lock().unwrap().entry(what).or_default() += 1;
    };
    let start = || {
        let mut command = place.ostler(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Guarded(command.spawn().unwrap())
    };
    let mut child = start();
    let kills = 1 + run / 4 % 2;
    for index in 0..kills as u32 {
        let parent = child.0.id() as i32;
        while trainer_of(parent).is_none() && child.0.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(trainer) = trainer_of(parent) {
            let_run(run, index, pace, trainer, &out);
        }
        let Some(trainer) = trainer_of(parent) else {
            hit(MISSED);
            continue;
        };
        kill(trainer, libc::SIGSTOP);
        if !stops(trainer) {
            hit(MISSED);
            continue;
        }
        hit(phase(&out));
        if parent_dies {
            child = start_again(child, &start);
        } else {
            kill(trainer, libc::SIGKILL);
        }
        wait_until_gone(trainer);
    }
    let status = child.0.wait().unwrap();
    let log = std::fs::read_to_string(out.join("log.txt")).unwrap_or_default();
    assert!(status.success(), "run {run}: {status}\n{log}");
    assert_same_bits(whole, &out);
    let done: Vec<u64> = metrics(&out).iter().map(|m| m["iteration"].as_u64().unwrap()).collect();
    assert!(done.iter().copied().eq(1..=ITERATIONS), "run {run}: {done:?}");
    assert!(!left_over(&out), "run {run}: a half-written checkpoint stays");
}

fn start_again(mut child: Guarded, start: &dyn Fn() -> Guarded) -> Guarded {
    kill(child.0.id() as i32, libc::SIGKILL);
    child.0.wait().unwrap();
    start()
}

/// Whether something half-written lies among the checkpoints.
fn left_over(run: &Path) -> bool {
    let all = std::fs::read_dir(run.join("checkpoints")).unwrap();
    all.flatten().any(|e| e.path().extension().is_some_and(|x| x == "tmp"))
}

#[test]
fn killed_at_random_moments_it_ends_with_the_same_bits() {
    let runs = number("OSTLER_KILLS", 10);
    let place = Place::new();
    // The second start finds the files in the system's memory, as the others do.
    place.train("cold", 1, &[SIZE]);
    let clock = Instant::now();
    place.train("warm", 1, &[SIZE]);
    let start = clock.elapsed();
    let whole = place.train("whole", ITERATIONS, &[SIZE, "runner.save_interval=7"]);
    let rest = clock.elapsed().saturating_sub(2 * start);
    let pace = Pace { start, iteration: rest / ITERATIONS as u32 };
    let hits = Mutex::new(BTreeMap::new());
    let next = AtomicU64::new(0);
    std::thread::scope(|s| {
        let mut workers = Vec::new();
        for _ in 0..2 {
            workers.push(s.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= runs {
                        return;
                    }
                    one(run, &whole, pace, &hits);
                }
            }));
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
    let hits = hits.into_inner().unwrap();
    for (what, n) in &hits {
        println!("{n:4} {what}");
    }
    let all = hits.values().sum::<u64>();
    let missed = hits.get(MISSED).copied().unwrap_or(0);
    println!("{runs} runs, {all} kills, {missed} of them too late");
    assert!(all >= runs && 2 * missed < all, "{missed} of {all} missed");
}
