//! One rollout of the parts that workers made.

use super::options::WorkerStats;
use super::package::{Package, Shard};
use crate::transfer::copied;
use crate::{CollectError, CollectTimes, Rollout};
use ostler_sim::EpisodeStats;
use ostler_sim::device::Counts;
use tch::Tensor;

/// Where one worker's environments are in the rollout of all.
#[derive(Debug)]
pub(super) struct Columns {
    pub shard: Shard,
    into: Vec<Tensor>,
}

impl Columns {
    /// Of a worker's environments, with so many rows each.
    pub(crate) fn new(all: &Rollout, shard: Shard, agents: usize) -> Result<Self, CollectError> {
        let (first, len) = (shard.first * agents, shard.len * agents);
        let into = all.tensors().map(|t| t.f_narrow(1, first as i64, len as i64));
        Ok(Self { shard, into: into.collect::<Result<_, _>>()? })
    }

    /// Copies a part to its place. Returns when that is done: the part may be written
    /// over then. Copied bytes are counted.
    pub(crate) fn copy(&self, part: &Rollout, crossed: &Counts) -> Result<(), CollectError> {
        for (into, from) in self.into.iter().zip(part.tensors()) {
            copied(from, into, crossed)?;
        }
        Ok(())
    }
}

/// Adds up the numbers that are not in tensors.
pub(super) struct Sum<'a> {
    stats: &'a mut EpisodeStats,
    times: CollectTimes,
    parts: f64,
    /// Steps of environments, and sum over them of the publications that acted.
    made: u64,
    acted: f64,
    cut: u64,
}

impl<'a> Sum<'a> {
    pub(crate) fn over(stats: &'a mut EpisodeStats) -> Self {
        stats.clear();
        Self { stats, times: CollectTimes::default(), parts: 0.0, made: 0, acted: 0.0, cut: 0 }
    }

    pub(crate) fn add(&mut self, package: &Package, shard: Shard) {
        let (s, p) = (&mut *self.stats, &package.stats);
        s.add(p);
        let room = s.breaks.capacity().max(1) - s.breaks.len();
        s.breaks.extend(p.breaks.iter().take(room));
        s.finished.extend(p.finished.iter().map(|f| {
            let mut f = *f;
            f.env += shard.first as u32;
            f
        }));
        self.times.policy += package.times.policy;
        self.times.env += package.times.env;
        self.parts += 1.0;
        let (n, steps) = (shard.len as u64, package.buffers.rollout.steps as u64);
        self.made += n * package.made as u64;
        self.cut += n * (steps - package.made as u64);
        self.acted += shard.len as f64 * package.acted as f64;
    }

    /// Mean times of the workers. `published`: the number of the newest weights.
    pub(crate) fn finish(self, stats: &mut WorkerStats, published: u64) -> CollectTimes {
        let s = self.stats;
        s.as_one();
        stats.cut = self.cut;
        stats.staleness = match self.made {
            0 => 0.0,
            made => published as f64 - self.acted / made as f64,
        };
        CollectTimes {
            policy: self.times.policy / self.parts.max(1.0),
            env: self.times.env / self.parts.max(1.0),
            total: 0.0,
        }
    }
}
