//! Several policies in one task: each decides and learns for its own agents.
//!
//! Where all agents share one policy there is nothing to be done here: rows are rows, and
//! any learner learns from them. Otherwise a [`Team`] deals the rows out (`agents`):
//! every policy has a learner of its own, which knows nothing of the others.

mod agents;
mod learner;
mod replica;
#[cfg(test)]
mod tests;

pub use learner::TeamLearner;

use super::state::below;
use super::{Network, State, TrainedPolicy, error::LearnError};
use agents::PolicyAgents;
use ostler_collector::policy::Noise;
use ostler_collector::{Act, Hidden, Policy, Replica, Replicate, Widths};
use ostler_sim::env::EnvSpec;
use tch::{TchError, Tensor};

/// Whether a task wants more than one policy.
pub fn wanted(spec: &EnvSpec) -> bool {
    spec.policy_names.len() > 1
}

/// The seed of a policy among several: the first has the run's own.
pub fn seed(run: u64, policy: usize) -> u64 {
    run ^ (policy as u64) << 56
}

/// Policies in the order of their names.
pub trait Policies {
    /// One of them.
    fn policy(&self, i: usize) -> &dyn Policy;
    /// The same, to act with.
    fn policy_mut(&mut self, i: usize) -> &mut dyn Policy;
}

impl Policies for Vec<Box<dyn TrainedPolicy>> {
    fn policy(&self, i: usize) -> &dyn Policy {
        &*self[i]
    }
    fn policy_mut(&mut self, i: usize) -> &mut dyn Policy {
        &mut *self[i]
    }
}

impl Policies for Vec<Box<dyn Replica>> {
    fn policy(&self, i: usize) -> &dyn Policy {
        &*self[i]
    }
    fn policy_mut(&mut self, i: usize) -> &mut dyn Policy {
        &mut *self[i]
    }
}

/// Several policies as one.
#[derive(Debug)]
pub struct Team<M> {
    agents: Vec<PolicyAgents>,
    policies: M,
    /// The task with all agents.
    spec: EnvSpec,
    /// Of the widest policies.
    widths: Widths,
    /// Random numbers per row that the widest policy takes.
    noise_width: i64,
    /// Of [copies](Replica): how many published numbers are each member's.
    parts: Vec<usize>,
}

impl<M: Policies> Team<M> {
    /// `member` makes the policy (or its learner) for a part of the task; it is given its
    /// number.
    ///
    /// # Errors
    /// Those of `member`.
    pub fn new<T, E>(
        spec: &EnvSpec,
        mut member: impl FnMut(usize, &EnvSpec) -> Result<T, E>,
    ) -> Result<Self, E>
    where
        M: FromIterator<T>,
    {
        let agents = PolicyAgents::of(spec);
        let policies: M =
            agents.iter().enumerate().map(|(i, s)| member(i, &s.spec)).collect::<Result<_, E>>()?;
        let each = || (0..agents.len()).map(|i| policies.policy(i));
        let widest = |of: fn(&dyn Policy) -> i64| each().map(of).max().unwrap_or(0);
        let widths =
            Widths { dist: widest(|p| p.dist_width()), hidden: widest(|p| p.hidden_width()) };
        Ok(Self {
            noise_width: widest(|p| p.noise().0),
            agents,
            policies,
            spec: spec.clone(),
            widths,
            parts: Vec::new(),
        })
    }

    fn each(&self) -> impl Iterator<Item = &dyn Policy> {
        (0..self.agents.len()).map(|i| self.policies.policy(i))
    }
}

impl<M: Policies> Policy for Team<M> {
    fn dist_width(&self) -> i64 {
        self.widths.dist
    }

    fn hidden_width(&self) -> i64 {
        self.widths.hidden
    }

    fn noise(&self) -> (i64, Noise) {
        // A task has agents of one kind of action.
        let kind = self.each().next().map_or(Noise::Normal, |p| p.noise().1);
        (self.noise_width, kind)
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        for (i, agents) in self.agents.iter_mut().enumerate() {
            agents.act(self.policies.policy_mut(i), obs, noise, out)?;
        }
        Ok(())
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        for (i, agents) in self.agents.iter_mut().enumerate() {
            agents.act_mean(self.policies.policy_mut(i), obs, hidden, action)?;
        }
        Ok(())
    }

    fn bounds(&self) -> &[f32] {
        self.each().map(Policy::bounds).max_by_key(|b| b.len()).unwrap_or_default()
    }

    fn version(&self) -> i32 {
        self.each().map(|p| p.version()).min().unwrap_or(-1)
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        let all = self.each().all(|p| p.replicate().is_some());
        all.then_some(self)
    }
}

impl TrainedPolicy for Team<Vec<Box<dyn TrainedPolicy>>> {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        for (agents, member) in self.agents.iter().zip(&self.policies) {
            state.add(&agents.name, &member.state()?);
        }
        Ok(())
    }

    fn renew(&mut self, loaded: &[(String, Tensor)]) -> Result<(), LearnError> {
        let mut each = self.agents.iter().zip(&mut self.policies);
        each.try_for_each(|(s, m)| m.renew(&below(&s.name, loaded)))
    }

    fn num_parameters(&self) -> i64 {
        self.policies.iter().map(|m| m.num_parameters()).sum()
    }

    fn network(&self, policy: usize) -> Result<Option<Network>, LearnError> {
        match self.policies.get(policy) {
            Some(member) => member.network(0),
            None => Ok(None),
        }
    }
}
