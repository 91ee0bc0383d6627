//! `ostler bench --threads`: speeds by the number of threads.

use super::bench::Measured;
use ostler_learn::config::Override;
use ostler_run::log::outln;
use ostler_run::run::RunError;
use ostler_sim::physics::pool::Pool;
use serde_json::{Map, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// What each number of threads is put into.
const KEYS: [&str; 2] = ["sim.threads", "learner.threads"];
/// The stages that have a speed.
const STAGES: [&str; 4] = ["simulation", "collection", "learning", "whole"];
/// Meetings of threads of which the time of one is the mean.
const LOOPS: u32 = 2_000;
/// More would be a mistake.
const MOST: usize = 1024;

/// Measures with each number of `threads` and prints a table, or a JSON object.
///
/// # Errors
/// A number of threads that is none, or given twice; a key of `overrides` that it sets; those of
/// `measure`.
pub(super) fn run(
    threads: &[usize],
    overrides: &[Override],
    measure: impl Fn(&[Override]) -> Result<Measured, RunError>,
    json: bool,
) -> Result<(), RunError> {
    let wrong =
        |n: &usize| !(1..=MOST).contains(n) || threads.iter().filter(|m| *m == n).count() > 1;
    if let Some(n) = threads.iter().find(|n| wrong(n)) {
        return Err(RunError::Usage(format!(
            "--threads takes different numbers from 1 to {MOST}, such as 1,2,4: not {n}"
        )));
    }
    let key = |o: &Override| {
        let given = o.text.split('=').next().unwrap_or_default().trim();
        KEYS.into_iter().find(|key| *key == given)
    };
    if let Some(key) = overrides.iter().find_map(key) {
        return Err(RunError::Usage(format!("--threads sets {key}: give one of both")));
    }
    let cores = Pool::available();
    let mut map = Map::new();
    let mut first: Option<[f64; 4]> = None;
    for &n in threads {
        let mut with = overrides.to_vec();
        with.extend(KEYS.map(|key| Override::flag("--threads", key, n)));
        let measured = measure(&with)?;
        let number = |name: &str| {
            let found = measured.numbers.iter().find(|(key, _)| *key == name);
            found.map_or(f64::NAN, |(_, value)| *value)
        };
        let speeds = STAGES.map(|stage| number(&format!("{stage}.steps_per_s")));
        let loops = number("simulation.fork_joins_per_step");
        let join_us = fork_join_us(n)?;
        let name = &measured.name;
        if json {
            for (stage, speed) in STAGES.iter().zip(speeds) {
                map.insert(format!("{name}.threads.{n}.{stage}.steps_per_s"), json!(speed));
            }
            map.insert(format!("{name}.threads.{n}.fork_joins_per_step"), json!(loops));
            map.insert(format!("{name}.threads.{n}.fork_join_us"), json!(join_us));
            continue;
        }
        if first.is_none() {
            let envs = number("num_envs");
            outln!(
                "{name}: control steps per second of {envs} environments, and times the first row's"
            );
            let heads = STAGES.map(|stage| format!("{stage:>19}"));
            outln!("threads {} fork-joins a step", heads.concat());
        }
        let base = first.get_or_insert(speeds);
        let columns = speeds
            .iter()
            .zip(*base)
            .map(|(speed, base)| format!("{speed:>12.0} {:>6.2}", speed / base));
        let joins = format!("{loops:.0} of {join_us:.1} us");
        let note =
            if n > cores { format!("; more threads than cores, {cores}") } else { String::new() };
        outln!("{n:>7} {} {joins}{note}", columns.collect::<String>());
    }
    if json {
        outln!("{}", serde_json::Value::Object(map));
    }
    Ok(())
}

/// Time that `threads` take to meet once (microseconds): a loop of which each has one part, in
/// which it waits for the others.
fn fork_join_us(threads: usize) -> Result<f64, RunError> {
    let pool = Pool::new(threads)?;
    let arrived = AtomicUsize::new(0);
    let meet = |round: u32| {
        let all = threads * (round as usize + 1);
        pool.run(threads, &|_| {
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < all {
                // Where threads share a core the others have to get it.
                std::thread::yield_now();
            }
        });
    };
    meet(0);
    let clock = Instant::now();
    (1..=LOOPS).for_each(meet);
    Ok(clock.elapsed().as_secs_f64() * 1e6 / f64::from(LOOPS))
}
