//! The memory of one rollout on the host, as the policy and as the environments see it.

use crate::memory::HostRows;
use crate::rollout::views;
use crate::{CollectError, Rollout};
use ostler_sim::Groups;
use ostler_sim::env::EnvSpec;
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

impl Buffers {
    pub fn new(spec: &EnvSpec, steps: usize, dist_width: i64) -> Result<Self, CollectError> {
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let rollout = Rollout::new(spec, steps, dist_width, Device::Cpu)?;
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
            }
        };
        Ok(Self {
            rows: Rows {
                obs: views(&rollout.obs.policy)?,
                action: views(&rollout.action)?,
                dist: views(&rollout.dist)?,
                std: views(&rollout.std)?,
            },
            host,
            rollout,
        })
    }

    /// Marks all steps from `made` on as not to be learnt from, with numbers that are
    /// finite: those of the last step that was made. Before the first step all are
    /// observations `[N][O]` of `next`, actions 0 of mean 0 and deviation 1.
    pub fn mask(&mut self, made: usize, next: &Groups<Vec<f32>>) -> Result<(), CollectError> {
        let (steps, host) = (self.rollout.steps as usize, &mut self.host);
        if made == 0 {
            host.obs.policy.row_mut(0)?.copy_from_slice(&next.policy);
            if let (Some(rows), Some(next)) = (&mut host.obs.critic, &next.critic) {
                rows.row_mut(0)?.copy_from_slice(next);
            }
            host.action.row_mut(0)?.fill(0.0);
            host.dist.row_mut(0)?.fill(0.0);
            host.std.row_mut(0)?.fill(1.0);
            host.version.row_mut(0)?.fill(-1);
        }
        for rows in std::iter::once(&mut host.obs.policy).chain(&mut host.obs.critic) {
            repeat(rows, made, made + 1)?;
        }
        let last = made.saturating_sub(1);
        for rows in [&mut host.action, &mut host.dist, &mut host.std] {
            repeat(rows, last, last + 1)?;
        }
        for t in made..steps {
            for rows in [
                &mut host.reward,
                &mut host.terminated,
                &mut host.truncated,
                &mut host.valid,
            ] {
                rows.row_mut(t)?.fill(0.0);
            }
            let version = host.version.row(last)?[0];
            host.version.row_mut(t)?.fill(version);
            host.final_slot.row_mut(t)?.fill(-1);
        }
        Ok(())
    }
}
