//! A learner for each of several policies.

use super::{Policies, Team};
use crate::learner::fault::{Faults, UpdateTarget};
use crate::learner::state::below;
use crate::learner::{
    Learner, Opened, Remembers, State, TrainedPolicy, UpdateFault, UpdateStats, error::LearnError,
};
use ostler_collector::replay::{self, ReplayBuffer, ReplayError, Saved};
use ostler_collector::{Policy, Rollout};
use ostler_machine::memory::FreeMemory;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use std::path::Path;
use tch::{Device, Tensor};

impl Policies for Vec<Box<dyn Learner>> {
    fn policy(&self, i: usize) -> &dyn Policy {
        self[i].policy()
    }
    fn policy_mut(&mut self, i: usize) -> &mut dyn Policy {
        self[i].policy_mut()
    }
}

impl TrainedPolicy for Team<Vec<Box<dyn Learner>>> {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        for (agents, member) in self.agents.iter().zip(&self.policies) {
            state.add(&agents.name, &member.policy().state()?);
        }
        Ok(())
    }

    fn renew(&mut self, loaded: &[(String, Tensor)]) -> Result<(), LearnError> {
        let mut each = self.agents.iter().zip(&mut self.policies);
        each.try_for_each(|(s, m)| m.renew(Some(&below(&s.name, loaded))))
    }

    fn num_parameters(&self) -> i64 {
        let each = self.policies.iter();
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
    /// That of all policies, sharing their memory.
    state: State,
    rollouts: Vec<Rollout>,
    /// By policy: the suffix of tags, and the last update.
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
            .agents
            .iter()
            .zip(team.each())
            .map(|(agents, policy)| agents.rollout(policy, steps, device))
            .collect::<Result<_, _>>()?;
        let names = team.agents.iter().map(|s| format!("/{}", s.name));
        let mut state = State::default();
        for (agents, member) in team.agents.iter().zip(&team.policies) {
            state.add(&agents.name, member.state());
        }
        Ok(Self { state, last: names.map(|n| (n, UpdateStats::none())).collect(), rollouts, team })
    }

    /// Every policy's part of a rollout.
    fn deal(&self, rollout: &Rollout) -> Result<(), LearnError> {
        let mut each = self.team.agents.iter().zip(&self.rollouts);
        Ok(each.try_for_each(|(agents, own)| agents.take(rollout, own))?)
    }

    fn each_mut(
        &mut self,
        f: impl FnMut(&mut Box<dyn Learner>) -> Result<(), LearnError>,
    ) -> Result<(), LearnError> {
        self.team.policies.iter_mut().try_for_each(f)
    }
}

impl Learner for TeamLearner {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        self.deal(rollout)?;
        let policies = self.team.policies.iter_mut();
        for ((member, own), last) in policies.zip(&self.rollouts).zip(&mut self.last) {
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
        self.team.policies.iter().any(|m| m.wants_warm_up())
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        self.deal(rollout)?;
        let mut each = self.team.policies.iter_mut().zip(&self.rollouts);
        each.try_for_each(|(member, own)| member.warm_up(own))
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        self.each_mut(|m| m.set_progress(done))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        match loaded {
            Some(loaded) => TrainedPolicy::renew(&mut self.team, loaded),
            None => self.each_mut(|m| m.renew(None)),
        }
    }

    fn restart(&mut self, factor: f64) -> Result<(), LearnError> {
        self.each_mut(|m| m.restart(factor))
    }

    /// Of the first policy; [`inject`](Self::inject) deals to all.
    fn faults(&mut self) -> &mut Faults {
        self.team.policies[0].faults()
    }

    fn set_teacher(&mut self, _teacher: Box<dyn TrainedPolicy>) -> Result<(), LearnError> {
        let why = "several policies have no teacher in common";
        Err(ConfigError::new("ppo.imitation.teacher", why)
            .help("agents.policies = \"shared\", or leave it out")
            .into())
    }

    fn memory(&mut self) -> Option<&mut dyn Remembers> {
        match self.team.policies.iter_mut().any(|m| m.memory().is_some()) {
            true => Some(self),
            false => None,
        }
    }

    fn captured(&mut self) {
        self.team.policies.iter_mut().for_each(|m| m.captured());
    }

    /// A parameter with a policy's name in front (`red/actor.0.weight`) is that policy's;
    /// a name without a policy means the first.
    fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        let Team { agents, policies, .. } = &mut self.team;
        let mut dealt = vec![Vec::new(); policies.len()];
        for mut fault in faults {
            let mut to = 0;
            if let UpdateTarget::Parameter(name) = &mut fault.what
                && let Some((policy, own)) = name.split_once('/')
                && let Some(at) = agents.iter().position(|s| s.name == policy)
            {
                (to, *name) = (at, own.to_string());
            }
            if let Some(of_one) = dealt.get_mut(to) {
                of_one.push(fault);
            }
        }
        let mut each = policies.iter_mut().zip(dealt);
        each.try_for_each(|(member, faults)| member.inject(faults))
    }
}

/// Every policy has a replay buffer of its own, below `replay` of the run's folder.
impl Remembers for TeamLearner {
    fn open(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        let mut all: Option<Opened> = None;
        for (agents, member) in self.team.agents.iter().zip(&mut self.team.policies) {
            let Some(memory) = member.memory() else { continue };
            let own = folder.join(replay::FOLDER).join(&agents.name);
            std::fs::create_dir_all(&own).map_err(|e| ReplayError::Io {
                what: "create",
                path: own.clone(),
                source: e,
            })?;
            let Some(opened) = memory.open(&own, again, free)? else { continue };
            let line = format!("{}: {}", agents.name, opened.line);
            all = Some(match all {
                // Those that found less room say what a run that goes on needs.
                Some(first) => Opened {
                    line: format!("{}; {line}", first.line),
                    storage: match opened.storage.in_file() {
                        true => opened.storage,
                        false => first.storage,
                    },
                },
                None => Opened { line, ..opened },
            });
        }
        Ok(all)
    }

    fn buffers(&mut self) -> Vec<&mut Option<Box<ReplayBuffer>>> {
        let all = self.team.policies.iter_mut().filter_map(|m| m.memory());
        all.flat_map(Remembers::buffers).collect()
    }

    fn save_others(&mut self) -> Result<Vec<Saved>, LearnError> {
        let open = self.buffers().into_iter().skip(1).flatten();
        open.map(|buffer| Ok(buffer.save()?)).collect()
    }

    fn restore_others(&mut self, saved: &[Saved]) -> Result<bool, LearnError> {
        let mut exact = self.team.policies.len() == saved.len() + 1;
        for (buffer, saved) in self.buffers().into_iter().skip(1).flatten().zip(saved) {
            exact &= buffer.restore(saved)?.exact();
        }
        Ok(exact)
    }
}
