//! T steps of N environments, allocated once.

use crate::CollectError;
use crate::memory::zeros;
use crate::policy::Widths;
use crate::transfer;
use ostler_sim::Groups;
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use ostler_sim::memory::MemoryError;
use std::sync::Arc;
use tch::{Device, Kind, TchError, Tensor};

/// Buffers of one rollout. Float32 unless noted; allocated once, written in place.
///
/// A transition `t` is (`obs[t]`, `action[t]`) -> (`reward[t]`, flags, `obs[t+1]`),
/// where `obs[t+1]` is already that of the next episode if one ended.
///
/// `N` counts environments, or where several agents share each of them, agents: row
/// `e * M + i` is agent `i` of environment `e`.
#[derive(Debug)]
pub struct Rollout {
    /// Steps, `T`.
    pub steps: i64,
    /// Rows, `N`: environments times agents.
    pub envs: i64,
    /// Raw observations `[T+1,N,O]`.
    pub obs: Groups<Tensor>,
    /// Actions as the policy gave them `[T,N,A]`.
    pub action: Tensor,
    /// Mean or logits `[T,N,D]`.
    pub dist: Tensor,
    /// Standard deviation `[T,N,A]`.
    pub std: Tensor,
    /// Rewards `[T,N]`.
    pub reward: Tensor,
    /// 1 where the task ended `[T,N]`.
    pub terminated: Tensor,
    /// 1 where time ran out `[T,N]`.
    pub truncated: Tensor,
    /// 0 where the environment broke, or the step was not made `[T,N]`.
    pub valid: Tensor,
    /// [Version](crate::Policy::version) of the policy that acted `[T,N]`, -1 where that
    /// is not known; int32.
    pub version: Tensor,
    /// Last observations of truncated episodes `[K,N,O]`.
    pub final_obs: Groups<Tensor>,
    /// Row of `final_obs` of the truncation at `[T,N]`, -1 for none; int32.
    pub final_slot: Tensor,
    /// A recurrent policy's hidden state before each step `[T+1,N,H]`: zeros where an
    /// episode begins.
    pub hidden: Option<Tensor>,
    /// Which columns of the critic's rows are whose.
    columns: Arc<ObsColumns>,
}

/// Columns of the critic's rows.
#[derive(Debug)]
struct ObsColumns {
    /// Columns that the critic sees, from the first on.
    critic: Option<i64>,
    /// Groups behind them: name, first column, columns.
    groups: Vec<(String, i64, i64)>,
}

impl ObsColumns {
    fn of(spec: &EnvSpec) -> Arc<Self> {
        let groups = spec.groups.iter();
        Arc::new(Self {
            critic: spec.critic.map(|w| w as i64),
            groups: groups.map(|g| (g.name.clone(), g.first as i64, g.width as i64)).collect(),
        })
    }
}

impl Rollout {
    /// Sum of the rewards of valid steps, and how many these are, of all rows.
    ///
    /// # Errors
    /// No memory is left to count them.
    pub fn rewards(&self) -> Result<[Tensor; 2], TchError> {
        let sum = self.reward.f_mul(&self.valid)?.f_sum(Kind::Double)?;
        Ok([sum, self.valid.f_sum(Kind::Double)?])
    }

    /// Allocates for `steps` steps on a device. Nothing is valid yet.
    ///
    /// # Errors
    /// [`CollectError::Memory`] where the device has no room for it.
    pub fn new(
        spec: &EnvSpec,
        steps: i64,
        widths: Widths,
        device: Device,
    ) -> Result<Self, CollectError> {
        let float = |what: &str, size: &[i64]| zeros(what, size, Kind::Float, device);
        let (t, n, a) = (steps, spec.rows() as i64, spec.action.width() as i64);
        let k = final_rows(spec, steps);
        let groups = |what: &str, rows: i64| -> Result<Groups<Tensor>, CollectError> {
            Ok(Groups {
                policy: float(what, &[rows, n, spec.obs.policy as i64])?,
                critic: spec.obs.critic.map(|o| float(what, &[rows, n, o as i64])).transpose()?,
            })
        };
        let final_slot = zeros("rollout slots", &[t, n], Kind::Int, device)?;
        let version = zeros("rollout versions", &[t, n], Kind::Int, device)?;
        for unknown in [&final_slot, &version] {
            let _ = unknown.shallow_clone().f_fill_(-1)?;
        }
        Ok(Self {
            steps,
            envs: n,
            obs: groups("rollout observations", t.saturating_add(1))?,
            action: float("rollout actions", &[t, n, a])?,
            dist: float("rollout distributions", &[t, n, widths.dist])?,
            std: float("rollout deviations", &[t, n, a])?,
            reward: float("rollout rewards", &[t, n])?,
            terminated: float("rollout terminations", &[t, n])?,
            truncated: float("rollout truncations", &[t, n])?,
            valid: float("rollout validity", &[t, n])?,
            version,
            final_obs: groups("rollout final observations", k)?,
            final_slot,
            columns: ObsColumns::of(spec),
            hidden: match widths.hidden {
                0 => None,
                h => Some(float("rollout hidden states", &[t.saturating_add(1), n, h])?),
            },
        })
    }

    /// The critic's part of `obs`, this rollout's [`obs`](Self::obs) or
    /// [`final_obs`](Self::final_obs): a view `[..,N,O]`.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn critic(&self, obs: &Groups<Tensor>) -> Result<Tensor, TchError> {
        match (&obs.critic, self.columns.critic) {
            (Some(rows), Some(width)) => rows.f_narrow(2, 0, width),
            _ => Ok(obs.policy.shallow_clone()),
        }
    }

    /// Whether the critic sees other observations than the policy.
    pub fn has_critic_obs(&self) -> bool {
        self.columns.critic.is_some()
    }

    /// Observations of a group that neither actor nor critic sees: a view `[T+1,N,W]`; none
    /// where the task has no such group.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn group(&self, name: &str) -> Result<Option<Tensor>, TchError> {
        let found = self.columns.groups.iter().find(|g| g.0 == name);
        match (&self.obs.critic, found) {
            (Some(rows), Some((_, first, width))) => rows.f_narrow(2, *first, *width).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether an episode ended with a step `[T,N]`, or the environment broke: the next row
    /// is another episode's.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn ended(&self) -> Result<Tensor, TchError> {
        ended(&self.terminated, &self.truncated, &self.valid)
    }

    /// The device of all buffers.
    pub fn device(&self) -> Device {
        self.action.device()
    }

    /// A copy on another device; `None` where this one is there already. Copied bytes
    /// are counted.
    ///
    /// # Errors
    /// The device has no room for it, or fails.
    pub fn brought(&self, device: Device, crossed: &Counts) -> Result<Option<Self>, TchError> {
        if self.device() == device {
            return Ok(None);
        }
        let to = |t: &Tensor| transfer::brought(t, device, crossed);
        let groups = |g: &Groups<Tensor>| -> Result<Groups<Tensor>, TchError> {
            Ok(Groups { policy: to(&g.policy)?, critic: g.critic.as_ref().map(to).transpose()? })
        };
        Ok(Some(Self {
            steps: self.steps,
            envs: self.envs,
            obs: groups(&self.obs)?,
            action: to(&self.action)?,
            dist: to(&self.dist)?,
            std: to(&self.std)?,
            reward: to(&self.reward)?,
            terminated: to(&self.terminated)?,
            truncated: to(&self.truncated)?,
            valid: to(&self.valid)?,
            version: to(&self.version)?,
            final_obs: groups(&self.final_obs)?,
            final_slot: to(&self.final_slot)?,
            hidden: self.hidden.as_ref().map(to).transpose()?,
            columns: Arc::clone(&self.columns),
        }))
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> usize {
        4 * self.tensors().map(Tensor::numel).sum::<usize>()
    }

    /// All buffers, of four bytes a number; rows are along dimension 1.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let groups = [&self.obs, &self.final_obs];
        let groups = groups.into_iter().flat_map(|g| [Some(&g.policy), g.critic.as_ref()]);
        let columns = [
            &self.action,
            &self.dist,
            &self.std,
            &self.reward,
            &self.terminated,
            &self.truncated,
            &self.valid,
            &self.version,
            &self.final_slot,
        ];
        groups.flatten().chain(columns).chain(&self.hidden)
    }
}

/// Flags of a step, or of several, as one.
pub(crate) fn ended(
    terminated: &Tensor,
    truncated: &Tensor,
    valid: &Tensor,
) -> Result<Tensor, TchError> {
    let over = terminated.f_gt(0.0)?.f_logical_or(&truncated.f_gt(0.0)?)?;
    over.f_logical_or(&valid.f_le(0.0)?)
}

/// Rows `K` of the last observations: how often an episode can time out in `steps`
/// steps. At least one, so that an index is never out of range.
pub(crate) fn final_rows(spec: &EnvSpec, steps: i64) -> i64 {
    u64::try_from(steps).unwrap_or(0).div_ceil(u64::from(spec.min_truncation_steps.max(1))).max(1)
        as i64
}

/// One tensor per row of `t`, sharing its memory: made once, so that a step makes none.
pub(crate) fn views(t: &Tensor) -> Result<Vec<Tensor>, CollectError> {
    let count = t.size().first().copied().unwrap_or(0);
    let mut rows = Vec::new();
    rows.try_reserve_exact(count as usize).map_err(|_| MemoryError {
        what: format!("{count} rows of a rollout"),
        bytes: (count as usize).saturating_mul(std::mem::size_of::<Tensor>()),
    })?;
    for i in 0..count {
        rows.push(t.f_get(i)?);
    }
    Ok(rows)
}
