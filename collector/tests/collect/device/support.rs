//! Collectors side by side.

use crate::common::robots::Jittery;
use crate::common::{captured, state};
use ostler_collector::env::Environments;
use ostler_collector::{Collector, Rollout, Snapshot, SyncCollector};
use ostler_sim::EpisodeStats;
use ostler_sim::env::EnvSpec;
use tch::Tensor;

pub const T: usize = 7;
pub const SEED: u64 = 11;

pub fn host<E: Environments>(env: E) -> SyncCollector<E> {
    let policy = policy(env.spec());
    SyncCollector::new(Box::new(env), T, &policy, SEED, true).unwrap()
}

pub fn policy(spec: &EnvSpec) -> Jittery {
    Jittery(spec.action.width() as i64)
}

pub fn collect(c: &mut impl Collector) -> &Rollout {
    let mut policy = Jittery(c.rollout().action.size()[2]);
    c.collect(&mut policy).unwrap()
}

pub fn all(r: &Rollout) -> Vec<Tensor> {
    let groups = [&r.final_obs, &r.obs];
    let groups = groups.into_iter().flat_map(|g| std::iter::once(&g.policy).chain(&g.critic));
    let others = [
        &r.action,
        &r.dist,
        &r.std,
        &r.reward,
        &r.terminated,
        &r.truncated,
        &r.valid,
        &r.final_slot,
    ];
    let others = others.into_iter().chain(&r.hidden);
    groups.chain(others).map(Tensor::copy).collect()
}

/// Both collect a rollout, and everything about it is the same. Returns what it was.
pub fn same(a: &mut impl Collector, b: &mut impl Collector) -> Vec<Tensor> {
    let (x, y) = (all(collect(a)), all(collect(b)));
    for (i, (x, y)) in x.iter().zip(&y).enumerate() {
        assert_eq!(x, y, "tensor {i}");
    }
    assert_eq!(x.len(), y.len());
    agree(a.stats(), b.stats());
    assert_eq!(captured(a), captured(b));
    x
}

/// But for the order in which sums are added.
fn agree(a: &EpisodeStats, b: &EpisodeStats) {
    let counted = |s: &EpisodeStats| EpisodeStats {
        return_sum: 0.0,
        length_sum: 0.0,
        reward_sums: Vec::new(),
        finished_metrics: Vec::new(),
        metric_sums: Vec::new(),
        ..s.clone()
    };
    assert_eq!(counted(a), counted(b));
    let sums = |s: &EpisodeStats| {
        let mut all = vec![s.return_sum, s.length_sum];
        all.extend(&s.reward_sums);
        all.extend(&s.metric_sums);
        all
    };
    for (x, y) in sums(a).into_iter().zip(sums(b)) {
        assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{x} {y}");
    }
}

/// States captured in place: restored they go on as they went on, and others take them over.
pub fn notes(mut c: impl Collector, mut fresh: impl Collector) {
    let mut kept = Snapshot::in_place();
    assert!(c.restore(&kept).is_err());
    collect(&mut c);
    let as_bytes = captured(&mut c);
    c.capture(&mut kept).unwrap();
    assert!(kept.bytes().is_empty(), "it is where the environments are");
    assert_eq!(c.bytes(&kept).unwrap(), as_bytes);
    assert!(fresh.restore_range(&kept, true).is_err(), "elsewhere");
    let went_on: Vec<_> = (0..2).map(|_| numbers(&mut c)).collect();
    assert_ne!(went_on[0], went_on[1]);
    // It stays, whatever came after.
    assert_eq!(c.bytes(&kept).unwrap(), as_bytes);
    for _ in 0..2 {
        c.restore(&kept).unwrap();
        let again: Vec<_> = (0..2).map(|_| numbers(&mut c)).collect();
        assert_eq!(again, went_on);
    }
    let elsewhere = state(&c.bytes(&kept).unwrap());
    let n = fresh.rollout().envs as usize;
    assert_eq!(fresh.restore_range(&elsewhere, true).unwrap(), n);
    assert_eq!(numbers(&mut fresh), went_on[0]);
}

/// All that is written in every rollout.
fn numbers(c: &mut impl Collector) -> (Vec<Tensor>, EpisodeStats) {
    let all = all(collect(c));
    let groups = 1 + usize::from(c.rollout().obs.critic.is_some());
    let stats = c.stats().clone();
    (all.into_iter().skip(groups).collect(), stats)
}
