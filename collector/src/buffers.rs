//! The memory of one rollout on the host, as the policy and as the environments see it.

use crate::memory::HostRows;
use crate::policy::Widths;
use crate::rollout::views;
use crate::snapshot::GROUPS;
use crate::{CollectError, Rollout};
use ostler_sim::Groups;
use ostler_sim::env::EnvSpec;
use ostler_sim::memory::{MemoryError, zeroed};
use tch::{Device, Tensor};

/// One rollout's memory, as the policy and as the environments see it.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub rollout: Rollout,
    pub rows: Rows,
    pub host: Host,
}

/// One tensor per step over each buffer that the policy reads or writes, made once.
#[derive(Debug)]
pub(crate) struct Rows {
    pub obs: Vec<Tensor>,
    pub action: Vec<Tensor>,
    pub dist: Vec<Tensor>,
    pub std: Vec<Tensor>,
    pub hidden: Option<Vec<Tensor>>,
}

/// The same memory as slices.
#[derive(Debug)]
pub(crate) struct Host {
    pub obs: Groups<HostRows<f32>>,
    pub action: HostRows<f32>,
    pub dist: HostRows<f32>,
    pub std: HostRows<f32>,
    pub reward: HostRows<f32>,
    pub terminated: HostRows<f32>,
    pub truncated: HostRows<f32>,
    pub valid: HostRows<f32>,
    pub version: HostRows<i32>,
    pub final_obs: Groups<HostRows<f32>>,
    pub final_slot: HostRows<i32>,
    pub hidden: Option<HostRows<f32>>,
}

/// # Safety
/// As for [`HostRows::new`].
unsafe fn host_groups(groups: &Groups<Tensor>) -> Result<Groups<HostRows<f32>>, CollectError> {
    // SAFETY: the caller's promise, for both.
    let rows = |tensor: &Tensor| unsafe { HostRows::new(tensor) };
    Ok(Groups {
        policy: rows(&groups.policy)?,
        critic: groups.critic.as_ref().map(rows).transpose()?,
    })
}

pub(crate) fn row_mut(
    groups: &mut Groups<HostRows<f32>>,
    i: usize,
) -> Result<Groups<&mut [f32]>, CollectError> {
    Ok(Groups {
        policy: groups.policy.row_mut(i)?,
        critic: groups.critic.as_mut().map(|c| c.row_mut(i)).transpose()?,
    })
}

/// Copies row `from` over all rows after `to`, that one included.
fn repeat(rows: &mut HostRows<f32>, from: usize, to: usize) -> Result<(), CollectError> {
    let width = rows.width();
    let all = rows.all_mut()?;
    for start in (to * width..all.len()).step_by(width.max(1)) {
        all.copy_within(from * width..(from + 1) * width, start);
    }
    Ok(())
}

/// The first row of the next rollout.
#[derive(Debug)]
pub(crate) struct Next {
    /// First observations `[N][O]`.
    pub obs: Groups<Vec<f32>>,
    /// Hidden states `[N][H]`; empty without any.
    pub hidden: Vec<f32>,
}

impl Next {
    /// Zeros, for a policy's hidden states.
    pub(crate) fn new(spec: &EnvSpec, widths: Widths) -> Result<Self, MemoryError> {
        let rows = |what: &str, width: usize| zeroed::<f32>(what, width * spec.rows());
        let obs = |width: usize| rows("observations", width);
        Ok(Self {
            obs: Groups {
                policy: obs(spec.obs.policy)?,
                critic: spec.obs.critic.map(obs).transpose()?,
            },
            hidden: rows("hidden states", widths.hidden as usize)?,
        })
    }

    /// All there is: the policy's and the critic's observations, hidden states.
    pub(crate) fn groups(&self) -> [&[f32]; GROUPS] {
        let critic = self.obs.critic.as_deref().unwrap_or_default();
        [&self.obs.policy, critic, &self.hidden]
    }

    /// The same, to write.
    pub(crate) fn groups_mut(&mut self) -> [&mut [f32]; GROUPS] {
        let critic = self.obs.critic.as_deref_mut().unwrap_or_default();
        [&mut self.obs.policy, critic, &mut self.hidden]
    }
}

impl Host {
    /// Rows of the rollout that one step passes on to the next: observations, hidden states.
    fn carried(&mut self) -> impl Iterator<Item = &mut HostRows<f32>> {
        let obs = std::iter::once(&mut self.obs.policy).chain(&mut self.obs.critic);
        obs.chain(&mut self.hidden)
    }

    /// Writes the first row.
    pub(crate) fn begin(&mut self, next: &Next) -> Result<(), CollectError> {
        let groups = next.groups().into_iter().filter(|g| !g.is_empty());
        for (rows, group) in self.carried().zip(groups) {
            rows.row_mut(0)?.copy_from_slice(group);
        }
        Ok(())
    }

    /// Hands row `i` on to the next rollout.
    pub(crate) fn end(&mut self, i: usize, next: &mut Next) -> Result<(), CollectError> {
        let groups = next.groups_mut().into_iter().filter(|g| !g.is_empty());
        for (rows, group) in self.carried().zip(groups) {
            group.copy_from_slice(rows.row(i)?);
        }
        Ok(())
    }

    /// Hidden states are zero where step `t` ended an episode.
    pub(crate) fn forget_ended(&mut self, t: usize) -> Result<(), CollectError> {
        let Some(hidden) = &mut self.hidden else {
            return Ok(());
        };
        let flags = [&self.terminated, &self.truncated, &self.valid];
        let [terminated, truncated, valid] = flags.map(|f| f.row(t));
        let ended = ended(terminated?, truncated?, valid?);
        forget(hidden.row_mut(t + 1)?, ended);
        Ok(())
    }
}

/// Which rows of a step ended an episode, or broke, from its flags `[N]` each.
pub fn ended<'a>(
    terminated: &'a [f32],
    truncated: &'a [f32],
    valid: &'a [f32],
) -> impl ExactSizeIterator<Item = bool> + 'a {
    let flags = terminated.iter().zip(truncated).zip(valid);
    flags.map(|((terminated, truncated), valid)| {
        *terminated > 0.0 || *truncated > 0.0 || *valid <= 0.0
    })
}

/// Zeros in rows of hidden states `[N][H]` that ended.
pub(crate) fn forget(hidden: &mut [f32], ended: impl ExactSizeIterator<Item = bool>) {
    let width = (hidden.len() / ended.len().max(1)).max(1);
    for (row, ended) in hidden.chunks_exact_mut(width).zip(ended) {
        if ended {
            row.fill(0.0);
        }
    }
}

impl Buffers {
    pub(crate) fn new(spec: &EnvSpec, steps: usize, widths: Widths) -> Result<Self, CollectError> {
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let rollout = Rollout::new(spec, steps, widths, Device::Cpu)?;
        // SAFETY: a new rollout is written all over, and each of its tensors has memory of its
        // own. Slices are borrowed in `Stepper::run` and in `mask` alone, for a step of the
        // environments or a copy. The policy works on `rows` between two of them, in the same
        // thread; the learner on `rollout`, once whoever collects has handed it over.
        let host = unsafe {
            Host {
                obs: host_groups(&rollout.obs)?,
                action: HostRows::new(&rollout.action)?,
                dist: HostRows::new(&rollout.dist)?,
                std: HostRows::new(&rollout.std)?,
                reward: HostRows::new(&rollout.reward)?,
                terminated: HostRows::new(&rollout.terminated)?,
                truncated: HostRows::new(&rollout.truncated)?,
                valid: HostRows::new(&rollout.valid)?,
                version: HostRows::new(&rollout.version)?,
                final_obs: host_groups(&rollout.final_obs)?,
                final_slot: HostRows::new(&rollout.final_slot)?,
                hidden: match &rollout.hidden {
                    Some(hidden) => Some(HostRows::new(hidden)?),
                    None => None,
                },
            }
        };
        Ok(Self {
            rows: Rows {
                obs: views(&rollout.obs.policy)?,
                action: views(&rollout.action)?,
                dist: views(&rollout.dist)?,
                std: views(&rollout.std)?,
                hidden: rollout.hidden.as_ref().map(views).transpose()?,
            },
            host,
            rollout,
        })
    }

    /// Marks all steps from `made` on as not to be learnt from, with numbers that are
    /// finite: those of the last step that was made. Before the first step all are
    /// observations `[N][O]` and hidden states of `next`, actions 0 of mean 0 and standard
    /// deviation 1.
    pub(crate) fn mask(&mut self, made: usize, next: &Next) -> Result<(), CollectError> {
        let (steps, host) = (self.rollout.steps as usize, &mut self.host);
        if made == 0 {
            host.begin(next)?;
            host.action.row_mut(0)?.fill(0.0);
            host.dist.row_mut(0)?.fill(0.0);
            host.std.row_mut(0)?.fill(1.0);
            host.version.row_mut(0)?.fill(-1);
        }
        for rows in host.carried() {
            repeat(rows, made, made + 1)?;
        }
        let last = made.saturating_sub(1);
        for rows in [&mut host.action, &mut host.dist, &mut host.std] {
            repeat(rows, last, last + 1)?;
        }
        for t in made..steps {
            for rows in
                [&mut host.reward, &mut host.terminated, &mut host.truncated, &mut host.valid]
            {
                rows.row_mut(t)?.fill(0.0);
            }
            let version = host.version.row(last)?[0];
            host.version.row_mut(t)?.fill(version);
            host.final_slot.row_mut(t)?.fill(-1);
        }
        Ok(())
    }
}
