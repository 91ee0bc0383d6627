//! Collectors over parts, and what they collected.

use crate::common::captured;
use crate::common::parts::{Hook, Learning, Part};
use ostler_collector::{AsyncCollector, AsyncOptions, Collector, Rollout, Stepping, SyncCollector};
use ostler_sim::env::Finished;
use std::sync::Arc;
use tch::Tensor;

/// Steps of a rollout, and environments.
pub const T: usize = 5;
pub const N: usize = 7;
pub const SEED: u64 = 3;

/// Does nothing at any step.
pub fn quiet() -> Hook {
    Arc::new(|_| {})
}

pub fn options(workers: usize, max_staleness: usize) -> AsyncOptions {
    AsyncOptions { workers, max_staleness, ..AsyncOptions::default() }
}

pub fn with(options: AsyncOptions, envs: usize, steps: usize, hook: &Hook) -> AsyncCollector<Part> {
    let hook = hook.clone();
    let factory = Arc::new(move |shard: ostler_collector::asynchronous::Shard| {
        Ok(Part::new(shard.first, shard.len, hook.clone()))
    });
    AsyncCollector::new(factory, envs, steps, &Learning::new(), SEED, false, options).unwrap()
}

pub fn collector(options: AsyncOptions, hook: &Hook) -> AsyncCollector<Part> {
    with(options, N, T, hook)
}

pub fn sync(envs: usize, stepping: Stepping) -> SyncCollector<Part> {
    let env = Part::new(0, envs, quiet());
    SyncCollector::stepping(Box::new(env), T, &Learning::new(), SEED, false, stepping).unwrap()
}

/// Everything in a rollout, and the episodes of it.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub tensors: Vec<Tensor>,
    pub finished: Vec<Finished>,
}

pub fn all(r: &Rollout) -> Vec<Tensor> {
    let critic = |g: &ostler_sim::Groups<Tensor>| g.critic.iter().map(Tensor::copy).collect();
    let mut all: Vec<Tensor> = critic(&r.obs);
    // Where nothing timed out, rows of last observations are what they were before.
    let some = r.final_slot.ge(0).any();
    if some.int64_value(&[]) != 0 {
        all.push(last(r));
    }
    all.extend(
        [
            &r.obs.policy,
            &r.action,
            &r.dist,
            &r.std,
            &r.reward,
            &r.terminated,
            &r.truncated,
            &r.valid,
            &r.version,
            &r.final_slot,
        ]
        .map(Tensor::copy),
    );
    all.extend(r.hidden.as_ref().map(Tensor::copy));
    all
}

/// Last observations by the step at which they were the last, zero elsewhere.
fn last(r: &Rollout) -> Tensor {
    let slot = r.final_slot.to_kind(tch::Kind::Int64);
    let width = r.final_obs.policy.size()[2];
    let index = slot.clamp_min(0).unsqueeze(2).expand([-1, -1, width], false);
    let found = r.final_obs.policy.gather(0, &index, false);
    found * slot.ge(0).unsqueeze(2)
}

/// Collects once and learns.
pub fn iterate(c: &mut dyn Collector, policy: &mut Learning) -> Seen {
    let tensors = all(c.collect(policy).unwrap());
    policy.update();
    Seen { tensors, finished: c.stats().finished.clone() }
}

pub fn saved(c: &mut dyn Collector) -> Vec<u8> {
    captured(c)
}

pub fn value(t: &Tensor, at: &[i64]) -> f64 {
    t.double_value(at)
}

/// Versions of the policy `[T]` that acted in one environment.
pub fn versions(r: &Rollout, env: i64) -> Vec<i64> {
    let all = r.version.to_kind(tch::Kind::Int64);
    (0..r.steps).map(|t| all.int64_value(&[t, env])).collect()
}
