//! Every number lands where the rollout's documentation says.

#![allow(clippy::disallowed_methods)]

use crate::common::{Copying, Counting, captured, state};
use ostler_collector::{CollectError, Collector, Rollout, SyncCollector};
use tch::{Kind, Tensor};

const T: usize = 5;
const N: usize = 4;

fn collector() -> SyncCollector<Counting> {
    SyncCollector::new(Box::new(Counting::new(N)), T, &Copying, 7, false).unwrap()
}

fn at(t: &Tensor, index: &[i64]) -> f64 {
    t.double_value(index)
}

fn copy(r: &Rollout) -> Vec<Tensor> {
    let critic = r.obs.critic.as_ref().unwrap();
    [&r.obs.policy, critic, &r.action, &r.dist, &r.reward, &r.final_slot].map(Tensor::copy).into()
}

#[test]
fn numbers_land_in_their_rows() {
    let mut c = collector();
    c.collect(&mut Copying).unwrap();
    let second = c.collect(&mut Copying).unwrap();
    // The second rollout starts at step 5, where the first one ended.
    for t in 0..=T as i64 {
        for n in 0..N as i64 {
            let step = 5.0 + t as f64;
            assert_eq!(at(&second.obs.policy, &[t, n, 0]), step);
            assert_eq!(at(&second.obs.policy, &[t, n, 1]), n as f64);
            assert_eq!(at(second.obs.critic.as_ref().unwrap(), &[t, n, 0]), 100.0 * step);
            if t == T as i64 {
                continue;
            }
            assert_eq!(at(&second.reward, &[t, n]), 10.0 * (step + 1.0) + n as f64);
            assert_eq!(at(&second.dist, &[t, n, 0]), step);
            // The environment saw the action of the same step.
            let seen = at(&second.obs.policy, &[t + 1, n, 2]);
            assert_eq!(seen, at(&second.action, &[t, n, 0]));
        }
    }
    // Environment 1 times out at steps 6, 8 and 10: in transitions 0, 2 and 4.
    assert_eq!(second.final_obs.policy.size(), [3, N as i64, 3]);
    for (k, t) in [0, 2, 4].into_iter().enumerate() {
        assert_eq!(at(&second.truncated, &[t, 1]), 1.0);
        assert_eq!(second.final_slot.int64_value(&[t, 1]), k as i64);
        assert_eq!(at(&second.final_obs.policy, &[k as i64, 1, 0]), -(6.0 + t as f64));
    }
    assert_eq!(second.final_slot.int64_value(&[1, 1]), -1);
    assert_eq!(at(&second.truncated.sum(Kind::Double), &[]), 3.0);
    assert_eq!(at(&second.valid.sum(Kind::Double), &[]), (T * N) as f64);
    assert_eq!(c.stats().episodes, 10);
}

#[test]
fn terminations_and_broken_transitions_are_marked() {
    let mut c = collector();
    let r = c.collect(&mut Copying).unwrap();
    assert_eq!(at(&r.terminated, &[1, 0]), 1.0);
    assert_eq!(at(&r.valid, &[2, 2]), 0.0);
    assert_eq!(at(&r.valid.sum(Kind::Double), &[]), (T * N - 1) as f64);
}

#[test]
fn the_same_seed_repeats_and_another_does_not() {
    let run = |seed| {
        let mut c =
            SyncCollector::new(Box::new(Counting::new(N)), T, &Copying, seed, true).unwrap();
        copy(c.collect(&mut Copying).unwrap())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1)[2], run(2)[2]);
}

#[test]
fn restored_it_goes_on_with_the_same_bits() {
    let mut a = collector();
    a.collect(&mut Copying).unwrap();
    let blob = captured(&mut a);
    let mut b = collector();
    b.restore(&state(&blob)).unwrap();
    // Saving what was just restored gives the same bytes.
    assert_eq!(blob, captured(&mut b));
    for _ in 0..2 {
        assert_eq!(copy(a.collect(&mut Copying).unwrap()), copy(b.collect(&mut Copying).unwrap()));
    }
}

#[test]
fn blobs_that_do_not_fit_are_errors() {
    let mut c = collector();
    let mut blob = captured(&mut c);
    for len in 0..blob.len() {
        assert!(c.restore(&state(&blob[..len])).is_err(), "{len} bytes");
    }
    let mut other =
        SyncCollector::new(Box::new(Counting::new(N + 1)), T, &Copying, 7, false).unwrap();
    let error = other.restore(&state(&blob)).unwrap_err();
    assert!(matches!(error, CollectError::Blob(_)), "{error}");
    assert!(error.to_string().contains("12 numbers"), "{error}");
    blob[0] ^= 1;
    assert!(c.restore(&state(&blob)).is_err());
}

#[test]
fn a_rollout_too_large_for_the_machine_is_an_error() {
    let error = SyncCollector::new(Box::new(Counting::new(N)), usize::MAX / 2, &Copying, 7, false)
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, CollectError::Memory(_)), "{error}");
}
