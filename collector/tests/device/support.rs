//! Collectors side by side.

use crate::common::robots::Jittery;
use ostler_collector::env::Environments;
use ostler_collector::{Collector, Rollout, SyncCollector};
use ostler_sim::EpisodeStats;
use ostler_sim::env::EnvSpec;
use tch::Tensor;

pub const T: usize = 7;
pub const SEED: u64 = 11;

pub fn host<E: Environments>(env: E) -> SyncCollector<E> {
    let policy = policy(env.spec());
    SyncCollector::new(env, T, &policy, SEED, true).unwrap()
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
    let groups = groups
        .into_iter()
        .flat_map(|g| std::iter::once(&g.policy).chain(&g.critic));
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
    let bytes = |c: &dyn Collector| {
        let (mut saved, mut kept) = (Vec::new(), Vec::new());
        c.save(&mut saved).unwrap();
        c.keep(&mut kept).unwrap();
        (saved, kept)
    };
    assert_eq!(bytes(a), bytes(b));
    x
}

/// But for the order in which sums are added, and which episodes are listed.
fn agree(a: &EpisodeStats, b: &EpisodeStats) {
    let counted = |s: &EpisodeStats| EpisodeStats {
        return_sum: 0.0,
        length_sum: 0.0,
        reward_sums: Vec::new(),
        finished: Vec::new(),
        ..s.clone()
    };
    assert_eq!(counted(a), counted(b));
    let sums = |s: &EpisodeStats| {
        let mut all = vec![s.return_sum, s.length_sum];
        all.extend(&s.reward_sums);
        all
    };
    for (x, y) in sums(a).into_iter().zip(sums(b)) {
        assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{x} {y}");
    }
}
