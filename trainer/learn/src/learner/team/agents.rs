//! Which rows of a batch belong to which policy, and how they get there and back.
//!
//! Rows of all agents lie world by world: row `e * M + i` is agent `i` of world `e`. A
//! policy of `m` agents sees `e * m + j`, without the padding.

use crate::learner::error::LearnError;
use crate::learner::policy::own_memory;
use crate::learner::tensors::zeros;
use ostler_collector::{Act, Hidden, Policy, Rollout};
use ostler_sim::env::EnvSpec;
use tch::{Device, Kind, TchError, Tensor};

/// The agents of one policy.
#[derive(Debug)]
pub(crate) struct PolicyAgents {
    /// The policy's name.
    pub name: String,
    /// The task as the policy sees it: its agents alone, in their own widths.
    pub spec: EnvSpec,
    /// Agents of a world, `M`.
    all: i64,
    /// Agents in a row: the first, and how many.
    runs: Vec<(i64, i64)>,
    /// For the number of worlds that acted last.
    desk: Option<DecisionBuffers>,
}

/// Buffers of one decision of the policy, `[worlds * agents, width]`.
#[derive(Debug)]
struct DecisionBuffers {
    worlds: i64,
    obs: Tensor,
    noise: Tensor,
    action: Tensor,
    dist: Tensor,
    std: Tensor,
    /// Before and after; of a recurrent policy.
    hidden: Option<[Tensor; 2]>,
}

impl PolicyAgents {
    /// Of every policy of a task.
    pub(crate) fn of(spec: &EnvSpec) -> Vec<Self> {
        let policies = spec.policy_names.iter().enumerate();
        policies
            .filter_map(|(p, name)| {
                let mut runs: Vec<(i64, i64)> = Vec::new();
                let mut own = Vec::new();
                for (i, agent) in spec.agents.iter().enumerate() {
                    if agent.policy != p {
                        continue;
                    }
                    own.push(agent.clone());
                    match runs.last_mut() {
                        Some((first, len)) if *first + *len == i as i64 => *len += 1,
                        _ => runs.push((i as i64, 1)),
                    }
                }
                let first = own.first()?;
                Some(Self {
                    name: name.clone(),
                    spec: EnvSpec {
                        obs: first.obs,
                        critic: first.critic,
                        action: first.action,
                        obs_table: first.obs_table.clone(),
                        policy_names: vec![name.clone()],
                        agents: own,
                        ..spec.clone()
                    },
                    all: spec.agents.len() as i64,
                    runs,
                    desk: None,
                })
            })
            .collect()
    }

    /// Agents of a world that the policy decides for.
    fn own(&self) -> i64 {
        self.spec.agents.len() as i64
    }

    /// Copies between `all [d, N*M, W]` and `own [d, N*m, w]`, `w <= W`; without a last
    /// dimension `w` is 1.
    fn copy(&self, all: &Tensor, own: &Tensor, out: bool) -> Result<(), TchError> {
        let (d, rows) = (all.size()[0], all.size()[1]);
        let worlds = rows / self.all;
        let width = |t: &Tensor| t.size().get(2).copied().unwrap_or(1);
        let narrow = width(own);
        let all = all.f_view([d, worlds, self.all, width(all)])?;
        let own = own.f_view([d, worlds, self.own(), narrow])?;
        let mut at = 0;
        for &(first, len) in &self.runs {
            let mut all = all.f_narrow(2, first, len)?.f_narrow(3, 0, narrow)?;
            let mut own = own.f_narrow(2, at, len)?;
            if out {
                all.f_copy_(&own)?;
            } else {
                own.f_copy_(&all)?;
            }
            at += len;
        }
        Ok(())
    }

    /// [`copy`](Self::copy) for the rows of one step.
    fn copy_step(&self, all: &Tensor, own: &Tensor, out: bool) -> Result<(), TchError> {
        self.copy(&all.f_unsqueeze(0)?, &own.f_unsqueeze(0)?, out)
    }

    fn desk(
        &mut self,
        policy: &dyn Policy,
        rows: i64,
        out: &Act<'_>,
    ) -> Result<&DecisionBuffers, TchError> {
        let worlds = rows / self.all;
        let fits = self.desk.as_ref().is_some_and(|d| d.worlds == worlds);
        if !fits {
            let device = out.action.device();
            let desk =
                DecisionBuffers::new(policy, &self.spec, worlds, worlds * self.own(), device);
            self.desk = Some(desk.map_err(own_memory)?);
        }
        self.desk.as_ref().ok_or_else(|| TchError::Torch("no room to act in".into()))
    }

    /// [`Policy::act`] for the policy's rows of `obs [R,O]`.
    pub(crate) fn act(
        &mut self,
        policy: &mut dyn Policy,
        obs: &Tensor,
        noise: &Tensor,
        out: &Act<'_>,
    ) -> Result<(), TchError> {
        self.desk(policy, obs.size2()?.0, out)?;
        let Some(desk) = &self.desk else {
            return Ok(());
        };
        self.copy_step(obs, &desk.obs, false)?;
        self.copy_step(noise, &desk.noise, false)?;
        let own = Act {
            action: &desk.action,
            dist: &desk.dist,
            std: &desk.std,
            hidden: self.lend(desk, out.hidden)?,
        };
        policy.act(&desk.obs, &desk.noise, &own)?;
        self.take_back(desk, out.hidden)?;
        self.copy_step(out.action, &desk.action, true)?;
        self.copy_step(out.dist, &desk.dist, true)?;
        self.copy_step(out.std, &desk.std, true)
    }

    /// The policy's rows of hidden states, for a step.
    fn lend<'a>(
        &self,
        desk: &'a DecisionBuffers,
        all: Option<Hidden<'_>>,
    ) -> Result<Option<Hidden<'a>>, TchError> {
        let (Some([before, after]), Some(all)) = (&desk.hidden, all) else {
            return Ok(None);
        };
        self.copy_step(all.before, before, false)?;
        Ok(Some(Hidden { before, after }))
    }

    /// Copies the new states back.
    fn take_back(&self, desk: &DecisionBuffers, all: Option<Hidden<'_>>) -> Result<(), TchError> {
        match (&desk.hidden, all) {
            (Some([_, after]), Some(all)) => self.copy_step(all.after, after, true),
            _ => Ok(()),
        }
    }

    /// [`Policy::act_mean`] for the policy's rows of `obs [R,O]`.
    pub(crate) fn act_mean(
        &mut self,
        policy: &mut dyn Policy,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let out = Act { action, dist: action, std: action, hidden };
        self.desk(policy, obs.size2()?.0, &out)?;
        let Some(desk) = &self.desk else {
            return Ok(());
        };
        self.copy_step(obs, &desk.obs, false)?;
        policy.act_mean(&desk.obs, self.lend(desk, hidden)?, &desk.action)?;
        self.take_back(desk, hidden)?;
        self.copy_step(action, &desk.action, true)
    }

    /// A rollout of the policy's agents alone, without content.
    pub(crate) fn rollout(
        &self,
        policy: &dyn Policy,
        steps: i64,
        device: Device,
    ) -> Result<Rollout, LearnError> {
        Ok(Rollout::new(&self.spec, steps, policy.widths(), device)?)
    }

    /// Copies the policy's agents from `all` to `own`.
    pub(crate) fn take(&self, all: &Rollout, own: &Rollout) -> Result<(), TchError> {
        all.tensors().zip(own.tensors()).try_for_each(|(all, own)| self.copy(all, own, false))
    }
}

impl DecisionBuffers {
    fn new(
        policy: &dyn Policy,
        spec: &EnvSpec,
        worlds: i64,
        rows: i64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let matrix = |width: i64| zeros("agents' decisions", &[rows, width], Kind::Float, device);
        let action = spec.action.width() as i64;
        Ok(Self {
            worlds,
            obs: matrix(spec.obs.policy as i64)?,
            noise: matrix(policy.noise().0)?,
            action: matrix(action)?,
            dist: matrix(policy.dist_width())?,
            std: matrix(action)?,
            hidden: match policy.hidden_width() {
                0 => None,
                h => Some([matrix(h)?, matrix(h)?]),
            },
        })
    }
}
