//! A policy that acts beside its earlier versions.

use super::rows::Rows;
use crate::learner::policy::own_memory;
use crate::learner::published::take_each;
use crate::learner::team::Policies;
use crate::learner::tensors::zeros;
use crate::learner::{Learner, error::LearnError};
use ostler_collector::policy::Noise;
use ostler_collector::{Act, Hidden, Policy, Replica, Replicate};
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use tch::{Device, Kind, TchError, Tensor};

/// Who holds the present policy.
pub(crate) trait Present {
    /// The policy.
    fn policy(&self) -> &dyn Policy;
    /// The same, to act with.
    fn policy_mut(&mut self) -> &mut dyn Policy;
}

impl Present for Box<dyn Learner> {
    fn policy(&self) -> &dyn Policy {
        (**self).policy()
    }
    fn policy_mut(&mut self) -> &mut dyn Policy {
        (**self).policy_mut()
    }
}

impl Present for Box<dyn Replica> {
    fn policy(&self) -> &dyn Policy {
        &**self
    }
    fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut **self
    }
}

/// A policy whose earlier versions act for some of the agents.
#[derive(Debug)]
pub(crate) struct WithPast<P, M> {
    pub present: P,
    pub versions: M,
    /// How many versions.
    window: usize,
    share: f64,
    /// The task of the policy's agents, in all environments.
    spec: EnvSpec,
    rows: Rows,
    /// By version: buffers of its decisions, once it has acted.
    desks: Vec<Option<DecisionBuffers>>,
    /// Of [copies](Replica): how many published numbers the policy and each version has.
    parts: Vec<usize>,
}

/// One decision of a version, `[rows, width]`.
#[derive(Debug)]
struct DecisionBuffers {
    action: Tensor,
    dist: Tensor,
    std: Tensor,
    after: Option<Tensor>,
}

impl<P: Present, M: Policies> WithPast<P, M> {
    /// For environments of `spec` with `rows`, of which `share` have one of `window` versions.
    pub(crate) fn new(
        (present, versions): (P, M),
        spec: &EnvSpec,
        rows: Rows,
        (window, share): (usize, f64),
    ) -> Self {
        Self {
            rows,
            desks: (0..window).map(|_| None).collect(),
            parts: Vec::new(),
            spec: spec.clone(),
            present,
            versions,
            window,
            share,
        }
    }

    /// The rows that versions have.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The versions act for their rows, in place of the present policy's actions there.
    fn act_of_past(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        for version in 0..self.window {
            let Some((rows, parts)) = self.rows.of_version(version) else {
                continue;
            };
            let (first, count) = (rows.start as i64, rows.len() as i64);
            let here = |t: &Tensor| t.f_narrow(0, first, count);
            let policy = self.versions.policy_mut(version);
            let desk = match &mut self.desks[version] {
                Some(desk) => desk,
                none => none.insert(DecisionBuffers::new(
                    policy,
                    &self.spec,
                    count,
                    out.action.device(),
                )?),
            };
            let before = out.hidden.map(|h| here(h.before)).transpose()?;
            let hidden = before.as_ref().zip(desk.after.as_ref());
            let own = Act {
                action: &desk.action,
                dist: &desk.dist,
                std: &desk.std,
                hidden: hidden.map(|(before, after)| Hidden { before, after }),
            };
            policy.act(&here(obs)?, &here(noise)?, &own)?;
            let after = out.hidden.map(|h| h.after).zip(desk.after.as_ref());
            let columns =
                [(out.action, &desk.action), (out.dist, &desk.dist), (out.std, &desk.std)];
            for (to, from) in columns.into_iter().chain(after) {
                for part in parts {
                    self.rows
                        .agent(&here(to)?, part, &rows)?
                        .f_copy_(&self.rows.agent(from, part, &rows)?)?;
                }
            }
        }
        Ok(())
    }

    /// The policy's own kind of copy, or why there is none.
    fn replicates(&self) -> Result<impl Iterator<Item = &dyn Replicate>, TchError> {
        let versions = (0..self.window).map(|i| self.versions.policy(i));
        let all = std::iter::once(self.present.policy()).chain(versions);
        let all: Option<Vec<_>> = all.map(|p| p.replicate()).collect();
        let none = || TchError::Torch("a policy that cannot be copied into other threads".into());
        Ok(all.ok_or_else(none)?.into_iter())
    }
}

impl DecisionBuffers {
    fn new(
        policy: &dyn Policy,
        spec: &EnvSpec,
        rows: i64,
        device: Device,
    ) -> Result<Self, TchError> {
        let matrix = |width: i64| zeros("earlier decisions", &[rows, width], Kind::Float, device);
        let desk = || -> Result<Self, LearnError> {
            let action = spec.action.width() as i64;
            Ok(Self {
                action: matrix(action)?,
                dist: matrix(policy.dist_width())?,
                std: matrix(action)?,
                after: match policy.hidden_width() {
                    0 => None,
                    h => Some(matrix(h)?),
                },
            })
        };
        desk().map_err(own_memory)
    }
}

impl<P: Present, M: Policies> Policy for WithPast<P, M> {
    fn dist_width(&self) -> i64 {
        self.present.policy().dist_width()
    }

    fn hidden_width(&self) -> i64 {
        self.present.policy().hidden_width()
    }

    fn noise(&self) -> (i64, Noise) {
        self.present.policy().noise()
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        self.present.policy_mut().act(obs, noise, out)?;
        self.act_of_past(obs, noise, out)
    }

    /// The present policy's alone: evaluations are of it.
    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let policy = self.present.policy_mut();
        policy.act_mean(obs, hidden, action)
    }

    fn version(&self) -> i32 {
        self.present.policy().version()
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        self.present.policy().replicate().map(|_| self as _)
    }
}

impl<P: Present, M: Policies> Replicate for WithPast<P, M> {
    fn replica(&self, first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        let mut numbers = Vec::new();
        let (mut parts, mut copies) = (Vec::new(), Vec::new());
        for policy in self.replicates()? {
            policy.weights(&mut numbers, &Counts::default())?;
            parts.push(numbers.len());
            copies.push(policy.replica(first, envs)?);
        }
        let present = copies.remove(0);
        let kept = (self.window, self.share);
        let rows = Rows::new(&self.spec, first..first + envs, kept);
        let copy = WithPast::new((present, copies), &self.spec, rows, kept);
        Ok(Box::new(WithPast { parts, ..copy }))
    }

    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError> {
        out.clear();
        let mut numbers = Vec::new();
        for policy in self.replicates()? {
            policy.weights(&mut numbers, crossed)?;
            out.extend_from_slice(&numbers);
        }
        Ok(())
    }
}

impl Replica for WithPast<Box<dyn Replica>, Vec<Box<dyn Replica>>> {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        let copies = std::iter::once(&mut self.present).chain(&mut self.versions);
        take_each(copies, &self.parts, weights)
    }
}
