//! A learner for each of several policies.

use super::{Members, Team};
use crate::learner::fault::UpdateTarget;
use crate::learner::{LearnError, Learner, NamedTensors, TrainedPolicy, UpdateFault, UpdateStats};
use ostler_collector::{Policy, Rollout};
use ostler_sim::env::EnvSpec;
use tch::{Device, Tensor};

impl Members for Vec<Box<dyn Learner>> {
    fn policy(&self, i: usize) -> &dyn Policy {
        self[i].policy()
    }
    fn policy_mut(&mut self, i: usize) -> &mut dyn Policy {
        self[i].policy_mut()
    }
}

impl TrainedPolicy for Team<Vec<Box<dyn Learner>>> {
    fn check(&self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        let mut each = self.seats.iter().zip(&self.members);
        each.try_for_each(|(s, m)| m.policy().check(&s.own_tensors(tensors)))
    }

    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.check(tensors)?;
        let mut each = self.seats.iter().zip(&mut self.members);
        each.try_for_each(|(s, m)| m.load_weights(&s.own_tensors(tensors)))
    }

    fn num_parameters(&self) -> i64 {
        let each = self.members.iter();
        each.map(|m| m.policy().num_parameters()).sum()
    }
}

/// Several learners as one: every policy learns from its own agents' rows, in a rollout
/// of its own.
///
/// Of what an update did, [`Learner::update`] gives means over the policies, and sums
/// where things are counted; [`Learner::each`] gives each policy's own.
#[derive(Debug)]
pub struct TeamLearner {
    team: Team<Vec<Box<dyn Learner>>>,
    rollouts: Vec<Rollout>,
    /// By policy: what is appended to tags, and the last update.
    last: Vec<(String, UpdateStats)>,
}

impl TeamLearner {
    /// `member` makes the learner of one policy, of which it is given the number and the
    /// task as that policy sees it. Rollouts have `steps` steps and lie on `device`.
    ///
    /// # Errors
    /// Those of `member`; no memory.
    pub fn new(
        spec: &EnvSpec,
        steps: usize,
        device: Device,
        member: impl FnMut(usize, &EnvSpec) -> Result<Box<dyn Learner>, LearnError>,
    ) -> Result<Self, LearnError> {
        let team: Team<Vec<Box<dyn Learner>>> = Team::new(spec, member)?;
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let rollouts = team
            .seats
            .iter()
            .zip(team.each())
            .map(|(seats, policy)| seats.rollout(policy, steps, device))
            .collect::<Result<_, _>>()?;
        let names = team.seats.iter().map(|s| format!("/{}", s.name));
        Ok(Self {
            last: names.map(|n| (n, UpdateStats::none())).collect(),
            rollouts,
            team,
        })
    }

    /// Every policy's part of a rollout.
    fn deal(&self, rollout: &Rollout) -> Result<(), LearnError> {
        let mut each = self.team.seats.iter().zip(&self.rollouts);
        Ok(each.try_for_each(|(seats, own)| seats.take(rollout, own))?)
    }

    /// Tensors of all, with the policies' names in front.
    fn gather(
        &self,
        of: impl Fn(&dyn Learner) -> Result<NamedTensors, LearnError>,
    ) -> Result<NamedTensors, LearnError> {
        let mut all = Vec::new();
        for (seats, member) in self.team.seats.iter().zip(&self.team.members) {
            all.extend(seats.named(of(&**member)?));
        }
        Ok(all)
    }

    /// Hands every member its tensors; if one of them refuses, all are as they were.
    fn deal_tensors(
        &mut self,
        tensors: &[(String, Tensor)],
        mut to: impl FnMut(&mut dyn Learner, &NamedTensors) -> Result<(), LearnError>,
    ) -> Result<(), LearnError> {
        let before = self.save()?;
        let Team { seats, members, .. } = &mut self.team;
        let mut each = seats.iter().zip(&mut *members);
        let done = each.try_for_each(|(s, m)| to(&mut **m, &s.own_tensors(tensors)));
        if done.is_err() {
            let mut each = seats.iter().zip(members);
            each.try_for_each(|(s, m)| m.load(&s.own_tensors(&before)))?;
        }
        done
    }

    fn each_mut(
        &mut self,
        f: impl FnMut(&mut Box<dyn Learner>) -> Result<(), LearnError>,
    ) -> Result<(), LearnError> {
        self.team.members.iter_mut().try_for_each(f)
    }
}

impl Learner for TeamLearner {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        self.deal(rollout)?;
        let members = self.team.members.iter_mut();
        for ((member, own), last) in members.zip(&self.rollouts).zip(&mut self.last) {
            last.1 = member.update(own)?;
        }
        Ok(UpdateStats::of_all(self.last.iter().map(|l| &l.1)))
    }

    fn each(&self) -> &[(String, UpdateStats)] {
        &self.last
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        &self.team
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        &mut self.team
    }

    fn wants_warm_up(&self) -> bool {
        self.team.members.iter().any(|m| m.wants_warm_up())
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        self.deal(rollout)?;
        let mut each = self.team.members.iter_mut().zip(&self.rollouts);
        each.try_for_each(|(member, own)| member.warm_up(own))
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        self.each_mut(|m| m.set_progress(done))
    }

    fn weights(&self) -> Result<NamedTensors, LearnError> {
        self.gather(|m| m.weights())
    }

    fn load_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.team.load(tensors)
    }

    fn save(&self) -> Result<NamedTensors, LearnError> {
        self.gather(|m| m.save())
    }

    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.deal_tensors(tensors, |m, own| m.load(own))
    }

    fn capture(&mut self) -> Result<(), LearnError> {
        self.each_mut(|m| m.capture())
    }

    fn restore(&mut self) -> Result<(), LearnError> {
        self.each_mut(|m| m.restore())
    }

    fn roll_back(&mut self, policy: &[(String, Tensor)], lr_factor: f64) -> Result<(), LearnError> {
        self.deal_tensors(policy, |m, own| m.roll_back(own, lr_factor))
    }

    /// A parameter with a policy's name in front (`red/actor.0.weight`) is that policy's;
    /// what names no policy is meant for the first.
    fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        let Team { seats, members, .. } = &mut self.team;
        let mut dealt = vec![Vec::new(); members.len()];
        for mut fault in faults {
            let mut to = 0;
            if let UpdateTarget::Parameter(name) = &mut fault.what
                && let Some((policy, own)) = name.split_once('/')
                && let Some(at) = seats.iter().position(|s| s.name == policy)
            {
                (to, *name) = (at, own.to_string());
            }
            if let Some(of_one) = dealt.get_mut(to) {
                of_one.push(fault);
            }
        }
        let mut each = members.iter_mut().zip(dealt);
        each.try_for_each(|(member, faults)| member.inject(faults))
    }
}
