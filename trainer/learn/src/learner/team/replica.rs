//! Copies of several policies, for threads that collect.

use super::{Policies, Team};
use crate::learner::published::take_each;
use ostler_collector::{Replica, Replicate};
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use tch::TchError;

impl<M: Policies> Replicate for Team<M> {
    fn replica(&self, first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        let mut parts = Vec::new();
        let mut numbers = Vec::new();
        let spec = EnvSpec { num_envs: envs, ..self.spec.clone() };
        let mut team = Team::<Vec<Box<dyn Replica>>>::new(&spec, |i, _| {
            let member = self.policies.policy(i).replicate().ok_or_else(nobody)?;
            member.weights(&mut numbers, &Counts::default())?;
            parts.push(numbers.len());
            member.replica(first, envs)
        })?;
        team.parts = parts;
        Ok(Box::new(team))
    }

    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError> {
        out.clear();
        let mut numbers = Vec::new();
        for policy in self.each() {
            policy.replicate().ok_or_else(nobody)?.weights(&mut numbers, crossed)?;
            out.extend_from_slice(&numbers);
        }
        Ok(())
    }
}

impl Replica for Team<Vec<Box<dyn Replica>>> {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        take_each(self.policies.iter_mut(), &self.parts, weights)
    }
}

fn nobody() -> TchError {
    TchError::Torch("a policy of several cannot be copied into other threads".into())
}
