//! Collects in the caller's thread: policy and environments take turns.

use crate::env::Environments;
use crate::memory::{HostRows, host_zeros};
use crate::policy::Noise;
use crate::rollout::views;
use crate::state::{self, Saved};
use crate::{Act, CollectError, CollectTimes, Collector, Policy, Rollout, noise};
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};
use std::time::Instant;
use tch::{Device, Kind, Tensor};

/// The synchronous collector.
#[derive(Debug)]
pub struct SyncCollector<E = BatchEnv> {
    env: E,
    rollout: Rollout,
    rows: Rows,
    host: Host,
    noise: Tensor,
    noise_rows: HostRows<f32>,
    noise_width: usize,
    noise_kind: Noise,
    seed: u64,
    /// Control steps since the run began; keys the noise.
    step: u64,
    /// Whether the next rollout starts where the last one ended. Else the first row
    /// of observations is in place already: after a reset or a restore.
    go_on: bool,
    stats: EpisodeStats,
    times: CollectTimes,
}

/// One tensor per step over each buffer that the policy reads or writes, made once.
#[derive(Debug)]
struct Rows {
    obs: Vec<Tensor>,
    action: Vec<Tensor>,
    dist: Vec<Tensor>,
    std: Vec<Tensor>,
}

/// The same memory as slices for the environments.
#[derive(Debug)]
struct Host {
    obs: Groups<HostRows<f32>>,
    action: HostRows<f32>,
    reward: HostRows<f32>,
    terminated: HostRows<f32>,
    truncated: HostRows<f32>,
    valid: HostRows<f32>,
    final_obs: Groups<HostRows<f32>>,
    final_slot: HostRows<i32>,
}

fn host_groups(groups: &Groups<Tensor>) -> Result<Groups<HostRows<f32>>, CollectError> {
    Ok(Groups {
        policy: HostRows::new(&groups.policy)?,
        critic: groups.critic.as_ref().map(HostRows::new).transpose()?,
    })
}

impl<E: Environments> SyncCollector<E> {
    /// Allocates rollouts of `steps` steps for this policy's sizes and starts all
    /// episodes. `seed` keys the noise of actions; `spread` gives the first episodes
    /// random ages, so that resets spread out in time.
    pub fn new(
        mut env: E,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        spread: bool,
    ) -> Result<Self, CollectError> {
        let spec = env.spec();
        let (noise_width, noise_kind) = policy.noise();
        let size = [spec.num_envs as i64, noise_width];
        let noise = host_zeros("action noise", &[&[1], &size[..]].concat(), Kind::Float)?;
        let rollout = Rollout::new(
            spec,
            i64::try_from(steps).unwrap_or(i64::MAX),
            policy.dist_width(),
            Device::Cpu,
        )?;
        let mut host = Host {
            obs: host_groups(&rollout.obs)?,
            action: HostRows::new(&rollout.action)?,
            reward: HostRows::new(&rollout.reward)?,
            terminated: HostRows::new(&rollout.terminated)?,
            truncated: HostRows::new(&rollout.truncated)?,
            valid: HostRows::new(&rollout.valid)?,
            final_obs: host_groups(&rollout.final_obs)?,
            final_slot: HostRows::new(&rollout.final_slot)?,
        };
        let stats = EpisodeStats::with_room(spec)?;
        env.reset(spread, &mut row_mut(&mut host.obs, 0)?);
        Ok(Self {
            rows: Rows {
                obs: views(&rollout.obs.policy)?,
                action: views(&rollout.action)?,
                dist: views(&rollout.dist)?,
                std: views(&rollout.std)?,
            },
            noise_rows: HostRows::new(&noise)?,
            noise: noise.f_view(size)?,
            noise_width: noise_width as usize,
            noise_kind,
            env,
            rollout,
            host,
            seed,
            step: 0,
            go_on: false,
            stats,
            times: CollectTimes::default(),
        })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// The environments, to change their settings between rollouts.
    pub fn env_mut(&mut self) -> &mut E {
        &mut self.env
    }

    /// The row of observations that the next rollout starts from.
    fn next_row(&self) -> usize {
        if self.go_on {
            self.rollout.steps as usize
        } else {
            0
        }
    }
}

fn row_mut(
    groups: &mut Groups<HostRows<f32>>,
    i: usize,
) -> Result<Groups<&mut [f32]>, CollectError> {
    Ok(Groups {
        policy: groups.policy.row_mut(i)?,
        critic: groups.critic.as_mut().map(|c| c.row_mut(i)).transpose()?,
    })
}

/// Copies one row over the first.
fn carry_over(rows: &mut HostRows<f32>, from: usize) -> Result<(), CollectError> {
    let width = rows.width();
    rows.all_mut()?
        .copy_within(from * width..(from + 1) * width, 0);
    Ok(())
}

impl<E: Environments> Collector for SyncCollector<E> {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        let start = Instant::now();
        let mut policy_time = 0.0;
        let host = &mut self.host;
        let steps = self.rollout.steps as usize;
        if self.go_on {
            carry_over(&mut host.obs.policy, steps)?;
            if let Some(critic) = &mut host.obs.critic {
                carry_over(critic, steps)?;
            }
        }
        self.env.begin_rollout();
        for t in 0..steps {
            let before = Instant::now();
            noise::fill(
                self.noise_rows.row_mut(0)?,
                self.noise_width,
                self.noise_kind,
                self.seed,
                self.step,
            );
            let act = Act {
                action: &self.rows.action[t],
                dist: &self.rows.dist[t],
                std: &self.rows.std[t],
            };
            policy.act(&self.rows.obs[t], &self.noise, &act)?;
            policy_time += before.elapsed().as_secs_f64();

            let mut out = StepOut {
                obs: row_mut(&mut host.obs, t + 1)?,
                reward: host.reward.row_mut(t)?,
                terminated: host.terminated.row_mut(t)?,
                truncated: host.truncated.row_mut(t)?,
                valid: host.valid.row_mut(t)?,
                final_obs: Groups {
                    policy: host.final_obs.policy.all_mut()?,
                    critic: match &mut host.final_obs.critic {
                        Some(critic) => Some(critic.all_mut()?),
                        None => None,
                    },
                },
                final_slot: host.final_slot.row_mut(t)?,
            };
            self.env.step(host.action.row(t)?, &mut out);
            self.step += 1;
        }
        self.go_on = true;
        self.env.take_stats(&mut self.stats);
        let total = start.elapsed().as_secs_f64();
        self.times = CollectTimes {
            policy: policy_time,
            env: total - policy_time,
            total,
        };
        Ok(&self.rollout)
    }

    fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    fn times(&self) -> CollectTimes {
        self.times
    }

    fn save(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        self.write_head(out)?;
        Ok(self.env.save(out)?)
    }

    fn restore(&mut self, blob: &[u8]) -> Result<(), CollectError> {
        let n = self.env.spec().num_envs;
        let saved = Saved::read(blob, &self.env.spec().obs, Some(n))?;
        self.env.restore(saved.env)?;
        self.fill(&saved)
    }

    fn keep(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        out.clear();
        self.write_head(out)?;
        Ok(self.env.keep(out)?)
    }

    fn revert(&mut self, kept: &[u8]) -> Result<(), CollectError> {
        let n = self.env.spec().num_envs;
        let saved = Saved::read(kept, &self.env.spec().obs, Some(n))?;
        self.env.revert(saved.env)?;
        self.fill(&saved)
    }

    fn adopt(&mut self, blob: &[u8], spread: bool) -> Result<usize, CollectError> {
        let saved = Saved::read(blob, &self.env.spec().obs, None)?;
        let mut first = row_mut(&mut self.host.obs, 0)?;
        let taken = self.env.adopt(saved.env, spread, &mut first)?;
        self.fill(&saved)?;
        Ok(taken)
    }

    fn environments_of<'a>(&self, kept: &'a [u8]) -> Result<&'a [u8], CollectError> {
        Ok(Saved::read(kept, &self.env.spec().obs, None)?.env)
    }
}

impl<E: Environments> SyncCollector<E> {
    /// Appends all but the environments, with the bytes that they are to follow.
    fn write_head(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        let row = self.next_row();
        let obs = &self.host.obs;
        state::write_head(
            out,
            self.step,
            [
                Some(obs.policy.row(row)?),
                obs.critic.as_ref().map(|c| c.row(row)).transpose()?,
            ],
        )
    }

    /// Takes over what is not the environments'.
    fn fill(&mut self, saved: &Saved<'_>) -> Result<(), CollectError> {
        let obs = &mut self.host.obs;
        let groups = std::iter::once(&mut obs.policy).chain(&mut obs.critic);
        for (group, stored) in groups.zip(saved.obs) {
            state::copy(stored, group.row_mut(0)?);
        }
        self.step = saved.step;
        self.go_on = false;
        Ok(())
    }
}
