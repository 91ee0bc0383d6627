//! Which agents earlier versions of a policy move.
//!
//! Rows of a policy's `m` agents lie environment by environment: row `e * m + j` is its
//! agent `j` in environment `e`. The first environments are dealt out in blocks of as equal a
//! size as can be, one for each version and agent: there the version moves that agent.
//! Blocks are counted over all agents of an environment, so that two policies never have
//! earlier versions in the same one.

use super::config::share_of;
use ostler_sim::env::EnvSpec;
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// An agent in a row of environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The version that moves it.
    pub version: usize,
    /// The environments.
    pub envs: Range<usize>,
    /// The agent, among those of the policy.
    pub agent: usize,
}

/// The rows of a policy, in some or all environments.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// Its agents in an environment, `m`.
    agents: usize,
    /// Environments.
    all: usize,
    /// By version and agent, without parts that have no environment here.
    past: Vec<Part>,
    /// Runs of rows of the present policy: environments, and an agent or all.
    present: Vec<(Range<usize>, Option<usize>)>,
}

impl Rows {
    /// In the environments `here` of those of `spec`, of which `share` have one of `window`
    /// earlier versions in them.
    pub(crate) fn new(spec: &EnvSpec, here: Range<usize>, (window, share): (usize, f64)) -> Self {
        let (agents, envs) = (spec.agents_per_env(), spec.num_envs);
        // An agent's number among those of all policies.
        let of: Vec<usize> = spec.agents.iter().map(|a| a.index).collect();
        let all = spec.agents.first().map_or(1, |a| a.of);
        let with_past = share_of(envs, share);
        let blocks = window * all;
        let local = |e: usize| e.clamp(here.start, here.end) - here.start;
        let begins = |block: usize| local(block * with_past / blocks.max(1));
        let (mut past, mut present) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            let envs = begins(block)..begins(block + 1);
            if envs.is_empty() {
                continue;
            }
            let moved = of.iter().position(|&index| index == block % all);
            past.extend(moved.map(|agent| Part {
                version: block / all,
                envs: envs.clone(),
                agent,
            }));
            match moved {
                None => present.push((envs, None)),
                Some(_) => {
                    let others = (0..agents).filter(|&j| Some(j) != moved);
                    present.extend(others.map(|j| (envs.clone(), Some(j))));
                }
            }
        }
        let alone = local(with_past)..here.len();
        if !alone.is_empty() {
            present.push((alone, None));
        }
        Self { agents, all: here.len(), past, present }
    }

    /// How many rows the present policy moves.
    pub(crate) fn present(&self) -> usize {
        let rows = |(envs, agent): &(Range<usize>, Option<usize>)| match agent {
            Some(_) => envs.len(),
            None => envs.len() * self.agents,
        };
        self.present.iter().map(rows).sum()
    }

    /// The rows `[first, last)` that a version acts for: all agents of its environments, and
    /// its parts. `None` where it has none here.
    pub(crate) fn of_version(&self, version: usize) -> Option<(Range<usize>, &[Part])> {
        let from = self.past.partition_point(|p| p.version < version);
        let to = self.past.partition_point(|p| p.version <= version);
        let parts = &self.past[from..to];
        let (first, last) = (parts.first()?, parts.last()?);
        let rows = first.envs.start * self.agents..last.envs.end * self.agents;
        Some((rows, parts))
    }

    /// A part's rows of `t [R, W]`, which has the rows `of` alone.
    pub(crate) fn agent(
        &self,
        t: &Tensor,
        part: &Part,
        of: &Range<usize>,
    ) -> Result<Tensor, TchError> {
        let first = of.start / self.agents;
        let envs = part.envs.start - first..part.envs.end - first;
        self.envs(t, 0, &envs)?.f_select(1, part.agent as i64)
    }

    /// 1 for rows of earlier versions, and for the present policy's beside them `[2, R]`.
    pub(crate) fn beside(&self, device: Device) -> Result<Tensor, TchError> {
        let rows: i64 = self.all as i64 * self.agents as i64;
        let marks = Tensor::f_zeros([2, rows], (Kind::Float, device))?;
        for part in &self.past {
            let envs = self.envs(&marks, 1, &part.envs)?;
            let _ = envs.f_get(1)?.f_fill_(1.0)?;
            for (mark, value) in [(0, 1.0), (1, 0.0)] {
                let _ = envs.f_get(mark)?.f_select(1, part.agent as i64)?.f_fill_(value)?;
            }
        }
        Ok(marks)
    }

    /// Environments of `t [.., R, ..]` with their agents `[.., E, m, ..]`.
    fn envs(&self, t: &Tensor, dim: i64, envs: &Range<usize>) -> Result<Tensor, TchError> {
        let m = self.agents as i64;
        let rows = t.f_narrow(dim, envs.start as i64 * m, envs.len() as i64 * m)?;
        rows.f_unflatten(dim, [envs.len() as i64, m])
    }

    /// Copies the present policy's rows of `all [T, R, ..]` to `own [T, R', ..]`.
    pub(crate) fn take(&self, all: &Tensor, own: &Tensor) -> Result<(), TchError> {
        let mut at = 0;
        for (envs, agent) in &self.present {
            let from = self.envs(all, 1, envs)?;
            let from = match agent {
                Some(j) => from.f_select(2, *j as i64)?,
                None => from.f_flatten(1, 2)?,
            };
            let rows = from.size()[1];
            own.f_narrow(1, at, rows)?.f_copy_(&from)?;
            at += rows;
        }
        Ok(())
    }
}
