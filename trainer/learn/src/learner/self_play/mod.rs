//! Self-play against the past: some agents are moved by earlier versions of their policy.
//!
//! [`SelfPlay`] is a learner around a learner. That one knows nothing of it: it learns from a
//! rollout of the rows that its present policy moved. Reading order: `rows` (who moves which
//! agent where) -> `past` (acting) -> this file.

mod config;
mod past;
mod rows;
#[cfg(test)]
mod tests;

pub use config::SelfPlayConfig;

use super::fault::Faults;
use super::registry::{LearnerArgs, Method};
use super::state::{Count, below};
use super::{Learner, State, TrainedPolicy, UpdateFault, UpdateStats, error::LearnError};
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use ostler_collector::transfer::read_into;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use past::WithPast;
use tch::{Device, Kind, TchError, Tensor};

/// A learner and its policy.
type Learning = WithPast<Box<dyn Learner>, Vec<Box<dyn TrainedPolicy>>>;

/// See the [module](self).
#[derive(Debug)]
pub struct SelfPlay {
    policy: Learning,
    /// The present policy's rows.
    rollout: Rollout,
    state: State,
    updates: Count,
    interval: u64,
    /// [`rows::Rows::beside`].
    beside: Tensor,
    /// Those that learn together.
    group: Group,
}

/// Names of a version's tensors in checkpoints begin with this.
fn prefix(version: usize) -> String {
    format!("self_play/{version}")
}

impl SelfPlay {
    /// Around `method`'s learner for the agents of one policy.
    ///
    /// # Errors
    /// Those of the learner; no memory.
    pub fn new(method: &dyn Method, plan: &LearnerArgs<'_>) -> Result<Self, LearnError> {
        let config = &plan.config.self_play;
        let kept = (config.window, config.share);
        let (spec, device) = (plan.spec, plan.device);
        // Of several processes all deal out all environments, as one does.
        let group = plan.group;
        let whole = match group.is_alone() {
            true => spec.clone(),
            false => EnvSpec { num_envs: plan.config.env.num_envs, ..spec.clone() },
        };
        let dealt = |rank: usize| {
            let here = group.first(whole.num_envs, rank)..group.first(whole.num_envs, rank + 1);
            rows::Rows::new(&whole, here, kept)
        };
        let each: Vec<usize> = (0..group.size()).map(|rank| dealt(rank).present()).collect();
        if !group.is_alone() && each.contains(&0) {
            let why = "a process has no agent that the present policy moves";
            let help = "fewer, more environments, or fewer processes";
            return Err(ConfigError::new("self_play.share", why).help(help).into());
        }
        let first = each[..group.rank()].iter().sum::<usize>() as i64;
        let place = Place { first, all: each.iter().sum::<usize>() as i64 };
        let rows = dealt(group.rank());
        // A row is as good as another: the learner has so many environments of one agent.
        let own = EnvSpec {
            num_envs: rows.present(),
            agents: spec.agents.iter().take(1).cloned().collect(),
            ..spec.clone()
        };
        let learner = method.build(&LearnerArgs { spec: &own, place: Some(place), ..*plan })?;
        let steps = i64::try_from(plan.steps()).unwrap_or(i64::MAX);
        let rollout = Rollout::new(&own, steps, learner.policy().widths(), device)?;
        let versions = (0..config.window).map(|_| method.policy(plan));
        let versions = versions.collect::<Result<Vec<_>, _>>()?;

        let mut past = State::default();
        for (i, version) in versions.iter().enumerate() {
            past.add_progress(&prefix(i), &version.state()?);
        }
        let updates = past.count("self_play.updates");
        let mut state = State::default();
        state.join(learner.state());
        state.join(&past.ready()?);
        Ok(Self {
            beside: rows.beside(device)?,
            group: group.clone(),
            policy: WithPast::new((learner, versions), spec, rows, kept),
            rollout,
            state,
            updates,
            interval: config.save_interval,
        })
    }

    /// The present policy's rows.
    fn take(&self, all: &Rollout) -> Result<(), TchError> {
        let rows = self.policy.rows();
        let mut each = all.tensors().zip(self.rollout.tensors());
        each.try_for_each(|(all, own)| rows.take(all, own))
    }

    /// Mean rewards per step where an earlier version took part, of all processes: of such
    /// versions, and of the present one beside them; NaN where it has no agent there.
    fn rewards(&self, rollout: &Rollout) -> Result<[f64; 2], LearnError> {
        let columns = [&rollout.reward, &rollout.valid];
        let sums = columns.map(|t| -> Result<Tensor, TchError> {
            let each = t.f_sum_dim_intlist(&[0i64][..], false, Kind::Float)?;
            let beside = self.beside.f_to_device(each.device())?;
            beside.f_mv(&each)
        });
        let [rewards, steps] = sums;
        let [rewards, steps] = self.group.totals([rewards?, steps?])?;
        let mut means = [0.0_f32; 2];
        let on_host = rewards.f_div(&steps)?.f_to_device(Device::Cpu)?;
        read_into(&on_host, &mut means)?;
        Ok(means.map(f64::from))
    }

    /// Replaces a version by the present policy.
    fn keep(&mut self, version: usize) -> Result<(), LearnError> {
        let weights = self.policy.present.weights()?;
        self.policy.versions[version].load(&weights)
    }
}

impl Learner for SelfPlay {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        let window = self.policy.versions.len() as u64;
        if self.updates.get() == 0 {
            // With the statistics of observations that the policy has by now.
            (0..window as usize).try_for_each(|i| self.keep(i))?;
        }
        let rewards = self.rewards(rollout)?;
        self.take(rollout)?;
        let mut stats = self.policy.present.update(&self.rollout)?;
        [stats.past_reward, stats.present_reward] =
            rewards.map(|x| Some(x).filter(|x| x.is_finite()));
        self.updates.add(1);
        let done = self.updates.get();
        if done.is_multiple_of(self.interval) {
            self.keep(((done / self.interval - 1) % window) as usize)?;
        }
        Ok(stats)
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        &self.policy
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        &mut self.policy
    }

    fn wants_warm_up(&self) -> bool {
        self.policy.present.wants_warm_up()
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        self.take(rollout)?;
        self.policy.present.warm_up(&self.rollout)
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        self.policy.present.set_progress(done)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        self.policy.present.renew(loaded)?;
        let Some(loaded) = loaded else { return Ok(()) };
        for (i, version) in self.policy.versions.iter_mut().enumerate() {
            version.renew(&below(&prefix(i), loaded))?;
        }
        Ok(())
    }

    fn restart(&mut self, factor: f64) -> Result<(), LearnError> {
        self.policy.present.restart(factor)
    }

    fn faults(&mut self) -> &mut Faults {
        self.policy.present.faults()
    }

    fn set_teacher(&mut self, teacher: Box<dyn TrainedPolicy>) -> Result<(), LearnError> {
        self.policy.present.set_teacher(teacher)
    }

    fn captured(&mut self) {
        self.policy.present.captured();
    }

    fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        self.policy.present.inject(faults)
    }
}

impl TrainedPolicy for Learning {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        self.present.policy().declare(state)
    }

    fn renew(&mut self, loaded: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.present.renew(Some(loaded))
    }

    fn num_parameters(&self) -> i64 {
        self.present.policy().num_parameters()
    }
}
