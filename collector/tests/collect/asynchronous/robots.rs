//! Pins: real environments in parts are those of the whole, in both engines.

use super::support::{options, saved};
use crate::common::robots::{Jittery, Setup, batch, setup};
use crate::common::state;
use ostler_collector::{AsyncCollector, Collector, SyncCollector};
use ostler_sim::BatchEnv;
use ostler_sim::config::{Auto, Backend, EnvConfig, SimConfig};
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

fn alone(s: &Setup) -> SyncCollector {
    SyncCollector::new(Box::new(batch(s, 5)), T, &Jittery(1), 5, true).unwrap()
}

fn collector(s: &Setup, workers: usize, envs: usize) -> AsyncCollector {
    let (model, task, env) = (s.model.clone(), s.task.clone(), s.env.clone());
    let sim = SimConfig { threads: Auto::N(1), ..s.sim.clone() };
    let factory = Arc::new(move |shard: ostler_collector::asynchronous::Shard| {
        let env = EnvConfig { num_envs: shard.len, ..env.clone() };
        BatchEnv::shard(model.clone(), &sim, &env, &task, 5, shard.first as u32)
    });
    let policy = Jittery(1);
    AsyncCollector::new(factory, envs, T, &policy, 5, true, options(workers, 0)).unwrap()
}

fn go(c: &mut dyn Collector, times: usize) -> Vec<Vec<tch::Tensor>> {
    let collect = |_| super::support::all(c.collect(&mut Jittery(1)).unwrap());
    (0..times).map(collect).collect()
}

#[test]
fn parts_of_a_batch_collect_and_save_what_the_whole_does() {
    for backend in [Backend::Native, Backend::Rapier] {
        let s = robots(backend);
        let mut whole = alone(&s);
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

#[test]
fn a_checkpoint_of_robots_goes_from_one_thread_to_many_and_back() {
    for backend in [Backend::Native, Backend::Rapier] {
        let s = robots(backend);
        let expected = go(&mut alone(&s), 4);
        let mut first = alone(&s);
        let mut seen = go(&mut first, 1);
        let mut blob = saved(&mut first);
        for workers in [4, 2] {
            let mut next = collector(&s, workers, N);
            next.restore(&state(&blob)).unwrap();
            seen.extend(go(&mut next, 1));
            blob = saved(&mut next);
            let mut same = alone(&s);
            same.restore(&state(&blob)).unwrap();
            assert!(saved(&mut same) == blob);
        }
        let mut last = alone(&s);
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
        let mut whole = alone(&s);
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
