//! Pins: real environments in parts are those of the whole, in both engines.

use super::support::{options, saved};
use crate::common::robots::{Jittery, Setup, batch, setup};
use crate::common::state;
use ostler_collector::{AsyncCollector, Collector, SyncCollector};
use ostler_sim::BatchEnv;
use ostler_sim::config::{Auto, Backend, EnvConfig, SimConfig};
use ostler_sim::env::LISTED;
use std::sync::Arc;

const N: usize = 10;
const T: usize = 12;

/// Robots that fall often, some at random ages, in episodes of 0.3 s.
fn robots(backend: Backend) -> Setup {
    let mut s = setup("cartpole", N, 0.3);
    s.sim.backend = backend;
    s.sim.threads = Auto::N(2);
    s
}

fn alone(s: &Setup, steps: usize) -> SyncCollector {
    SyncCollector::new(Box::new(batch(s, 5)), steps, &Jittery(1), 5, true).unwrap()
}

fn collector(s: &Setup, workers: usize, envs: usize) -> AsyncCollector {
    collector_of(s, workers, envs, T)
}

fn collector_of(s: &Setup, workers: usize, envs: usize, steps: usize) -> AsyncCollector {
    let (model, task, env) = (s.model.clone(), s.task.clone(), s.env.clone());
    let sim = SimConfig { threads: Auto::N(1), ..s.sim.clone() };
    let factory = Arc::new(move |shard: ostler_collector::asynchronous::Shard| {
        let env = EnvConfig { num_envs: shard.len, ..env.clone() };
        BatchEnv::shard(model.clone(), &sim, &env, &task, 5, shard.first as u32)
    });
    let policy = Jittery(1);
    AsyncCollector::new(factory, envs, steps, &policy, 5, true, options(workers, 0)).unwrap()
}

fn go(c: &mut dyn Collector, times: usize) -> Vec<Vec<tch::Tensor>> {
    let collect = |_| super::support::all(c.collect(&mut Jittery(1)).unwrap());
    (0..times).map(collect).collect()
}

#[test]
fn parts_of_a_batch_collect_and_save_what_the_whole_does() {
    for backend in [Backend::Native, Backend::Rapier] {
        let s = robots(backend);
        let mut whole = alone(&s, T);
        let mut states = vec![saved(&mut whole)];
        let mut expected = Vec::new();
        for _ in 0..4 {
            expected.extend(go(&mut whole, 1));
            states.push(saved(&mut whole));
        }
        for workers in [1, 3, 10] {
            let mut parts = collector(&s, workers, N);
            assert!(saved(&mut parts) == states[0], "{backend:?}, {workers} workers, at first");
            for (seen, state) in expected.iter().zip(&states[1..]) {
                assert_eq!(&go(&mut parts, 1)[0], seen, "{backend:?}, {workers} workers");
                assert!(&saved(&mut parts) == state, "{backend:?}, {workers} workers");
            }
            assert_eq!(parts.stats().episodes, whole.stats().episodes);
            assert_eq!(parts.stats().finished, whole.stats().finished);
            assert!(parts.stats().episodes > 0);
        }
    }
}

/// Longer than one of a worker's environments ends once: the last episodes of all, in order.
#[test]
fn the_last_hundred_episodes_are_those_of_the_whole() {
    let s = robots(Backend::Native);
    let mut whole = alone(&s, 400);
    go(&mut whole, 1);
    let finished = whole.stats().finished.clone();
    assert!(whole.stats().episodes > 200 && finished.len() == LISTED);
    assert!(finished.iter().all(|f| f.step > 100) && finished[LISTED - 1].step > 390);
    for workers in [2, 3] {
        let mut parts = collector_of(&s, workers, N, 400);
        go(&mut parts, 1);
        assert_eq!(parts.stats().finished, finished, "{workers} workers");
    }
}

#[test]
fn a_checkpoint_of_robots_goes_from_one_thread_to_many_and_back() {
    for backend in [Backend::Native, Backend::Rapier] {
        let s = robots(backend);
        let expected = go(&mut alone(&s, T), 4);
        let mut first = alone(&s, T);
        let mut seen = go(&mut first, 1);
        let mut blob = saved(&mut first);
        for workers in [4, 2] {
            let mut next = collector(&s, workers, N);
            next.restore(&state(&blob)).unwrap();
            seen.extend(go(&mut next, 1));
            blob = saved(&mut next);
            let mut same = alone(&s, T);
            same.restore(&state(&blob)).unwrap();
            assert!(saved(&mut same) == blob);
        }
        let mut last = alone(&s, T);
        last.restore(&state(&blob)).unwrap();
        seen.extend(go(&mut last, 1));
        assert!(seen == expected, "{backend:?}");
        // A blob that ends too early is refused, and the state is as it was.
        blob.pop();
        let mut parts = collector(&s, 3, N);
        let before = saved(&mut parts);
        assert!(parts.restore(&state(&blob)).is_err());
        assert!(saved(&mut parts) == before);
    }
}

#[test]
fn fewer_and_more_robots_take_over_those_there_are() {
    for backend in [Backend::Native, Backend::Rapier] {
        let s = robots(backend);
        let mut whole = alone(&s, T);
        go(&mut whole, 1);
        let blob = saved(&mut whole);
        let next = go(&mut whole, 1).remove(0);
        let columns = |all: &[tch::Tensor], n: i64| -> Vec<tch::Tensor> {
            all.iter().map(|t| t.narrow(1, 0, n)).collect()
        };
        for envs in [6_usize, 15] {
            let mut other = collector(&s, 4, envs);
            let both = envs.min(N);
            assert_eq!(other.restore_range(&state(&blob), false).unwrap(), both);
            let seen = go(&mut other, 1).remove(0);
            let both = both as i64;
            assert!(columns(&seen, both) == columns(&next, both), "{backend:?}, {envs}");
        }
    }
}
