//! The loop over control steps on the host, which every collector there runs.

use crate::buffers::{Buffers, Host, Next, row_mut};
use crate::env::Environments;
use crate::memory::{HostRows, host_zeros};
use crate::policy::{Hidden, Noise, Widths};
use crate::snapshot::{self, Saved};
use crate::{Act, CollectError, CollectTimes, Policy, noise};
use ostler_sim::env::ActionSpace;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use std::time::Instant;
use tch::{Kind, TchError, Tensor};

/// How steps are made, whichever collector makes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stepping {
    /// Control steps at the start of a run whose actions are uniform within the policy's
    /// [bounds](Policy::bounds), else in -1..1 (or among the choices), instead of the policy's.
    pub init_random_steps: u64,
    /// Every rollout begins with new episodes.
    pub reset_at_each_iter: bool,
}

/// Decision before a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Version of the policy that acts.
    pub version: i32,
    /// Whether the step is to be made at all.
    pub go_on: bool,
}

/// Who acts.
pub(crate) trait Actor {
    /// Called before step `t` of the rollout.
    fn look(&mut self, t: usize) -> Result<Look, CollectError>;
    /// As [`Policy::act`].
    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError>;
    /// As [`Policy::bounds`].
    fn bounds(&self) -> &[f32];
}

/// A policy in its own thread.
pub(crate) struct LocalPolicy<'a>(pub &'a mut dyn Policy);

impl Actor for LocalPolicy<'_> {
    fn look(&mut self, _: usize) -> Result<Look, CollectError> {
        Ok(Look { version: self.0.version(), go_on: true })
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        self.0.act(obs, noise, out)
    }

    fn bounds(&self) -> &[f32] {
        self.0.bounds()
    }
}

/// Environments and all else that goes on from one rollout to the next.
#[derive(Debug)]
pub(crate) struct Stepper<E: ?Sized> {
    pub env: Box<E>,
    next: Next,
    noise: Tensor,
    noise_rows: HostRows<f32>,
    noise_width: usize,
    noise_kind: Noise,
    seed: u64,
    /// Global number of the first row; keys the noise.
    first: u32,
    /// Control steps since the run began; keys the noise.
    pub step: u64,
    stepping: Stepping,
}

/// Result of a rollout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Steps that were made.
    pub steps: usize,
    pub times: CollectTimes,
}

impl<E: Environments + ?Sized> Stepper<E> {
    /// Environments `first..` of a batch, whose episodes are yet to be started. `seed`
    /// keys the noise of actions.
    pub(crate) fn new(
        env: Box<E>,
        widths: Widths,
        noise: (i64, Noise),
        seed: u64,
        first: u32,
        stepping: Stepping,
    ) -> Result<Self, CollectError> {
        let spec = env.spec();
        let (width, kind) = noise;
        let size = [spec.rows() as i64, width];
        let noise = host_zeros("action noise", &[&[1], &size[..]].concat(), Kind::Float)?;
        // SAFETY: zeros that only this value has. `run` fills them before it has the policy
        // read them, and holds no slice meanwhile.
        let noise_rows = unsafe { HostRows::new(&noise) }?;
        Ok(Self {
            next: Next::new(spec, widths)?,
            noise_rows,
            noise: noise.f_view(size)?,
            noise_width: width as usize,
            noise_kind: kind,
            first: first.wrapping_mul(spec.agents_per_env() as u32),
            env,
            seed,
            step: 0,
            stepping,
        })
    }

    fn next_rows(&mut self) -> (&mut E, Groups<&mut [f32]>) {
        let next = Groups {
            policy: &mut self.next.obs.policy[..],
            critic: self.next.obs.critic.as_deref_mut(),
        };
        (&mut *self.env, next)
    }

    /// New episodes for all.
    pub(crate) fn reset(&mut self, spread: bool) -> Result<(), CollectError> {
        let (env, mut next) = self.next_rows();
        env.reset(spread, &mut next)?;
        self.next.hidden.fill(0.0);
        Ok(())
    }

    /// Whether the next rollout begins with a reset.
    pub(crate) fn begins_anew(&self) -> bool {
        self.stepping.reset_at_each_iter && self.step > 0
    }

    /// Makes the steps of one rollout, as many as the actor wants; the others are masked.
    pub(crate) fn run(
        &mut self,
        buffers: &mut Buffers,
        actor: &mut impl Actor,
    ) -> Result<Outcome, CollectError> {
        let start = Instant::now();
        let mut policy_time = 0.0;
        let steps = buffers.rollout.steps as usize;
        if self.begins_anew() {
            self.reset(false)?;
        }
        let Buffers { rows, host, .. } = buffers;
        host.begin(&self.next)?;
        self.env.begin_rollout();
        let mut made = 0;
        while made < steps {
            let t = made;
            let before = Instant::now();
            crate::go_on()?;
            let look = actor.look(t)?;
            if !look.go_on {
                break;
            }
            host.version.row_mut(t)?.fill(look.version);
            if self.step < self.stepping.init_random_steps {
                self.act_at_random(host, t, actor.bounds())?;
            } else {
                noise::fill(
                    self.noise_rows.row_mut(0)?,
                    self.noise_width,
                    self.noise_kind,
                    self.seed,
                    self.first,
                    self.step,
                );
                let act = Act {
                    action: &rows.action[t],
                    dist: &rows.dist[t],
                    std: &rows.std[t],
                    hidden: rows
                        .hidden
                        .as_ref()
                        .map(|hidden| Hidden { before: &hidden[t], after: &hidden[t + 1] }),
                };
                actor.act(&rows.obs[t], &self.noise, &act)?;
            }
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
            self.env.step(host.action.row(t)?, &mut out)?;
            host.forget_ended(t)?;
            self.step += 1;
            made += 1;
        }
        host.end(made, &mut self.next)?;
        if made < steps {
            buffers.mask(made, &self.next)?;
        }
        let total = start.elapsed().as_secs_f64();
        Ok(Outcome {
            steps: made,
            times: CollectTimes { policy: policy_time, env: total - policy_time, total },
        })
    }

    /// Uniform actions, without a look at the observations.
    fn act_at_random(&self, host: &mut Host, t: usize, bounds: &[f32]) -> Result<(), CollectError> {
        let space = self.env.spec().action;
        let row = host.action.row_mut(t)?;
        let key = (self.seed, self.first, self.step);
        noise::fill(row, space.width(), Noise::Uniform, key.0, key.1, key.2);
        match space {
            ActionSpace::Continuous(_) => row.iter_mut().for_each(|x| *x = 2.0 * *x - 1.0),
            ActionSpace::Discrete(n) => row.iter_mut().for_each(|x| *x = (*x * n as f32).floor()),
        }
        host.dist.row_mut(t)?.fill(0.0);
        if let Some(hidden) = &mut host.hidden {
            hidden.row_mut(t + 1)?.fill(0.0);
        }
        let std = host.std.row_mut(t)?;
        // Of a uniform number in -1..1.
        std.fill(1.0 / 3.0_f32.sqrt());
        if !bounds.is_empty() {
            let scale = |x: &mut [f32]| x.iter_mut().zip(bounds).for_each(|(x, b)| *x *= b);
            host.action.row_mut(t)?.chunks_mut(bounds.len()).for_each(scale);
            host.std.row_mut(t)?.chunks_mut(bounds.len()).for_each(scale);
        }
        Ok(())
    }

    /// Lets a whole rollout pass in which nothing is learnt: all of it masked.
    pub(crate) fn miss(&mut self, buffers: &mut Buffers) -> Result<(), CollectError> {
        buffers.mask(0, &self.next)
    }

    /// Statistics of episodes since the last call.
    pub(crate) fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.env.take_stats(into);
    }

    /// Appends all but the environments, with the bytes that they are to follow.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        snapshot::write_head(out, self.step, self.next.groups())
    }

    /// Takes over the state beside the environments', of `taken` environments from `from` on.
    pub(crate) fn fill(&mut self, saved: &Saved<'_>, from: usize, taken: usize) {
        let n = self.env.spec().num_envs;
        // New environments begin without memories.
        self.next.hidden.fill(0.0);
        let groups = self.next.groups_mut();
        for (group, stored) in groups.into_iter().zip(saved.groups) {
            let each = group.len() / n.max(1);
            let stored = stored.get(4 * from * each..).unwrap_or_default();
            let own = group.get_mut(..taken * each).unwrap_or_default();
            snapshot::copy(stored, own);
        }
        self.step = saved.step;
    }

    /// A captured state that fits, of so many rows if that is known.
    pub(crate) fn read<'a>(
        &self,
        blob: &'a [u8],
        rows: Option<usize>,
    ) -> Result<Saved<'a>, CollectError> {
        let spec = self.env.spec();
        let hidden = self.next.hidden.len() / spec.rows().max(1);
        Saved::read(blob, &spec.obs, hidden as i64, rows)
    }

    /// Takes over the number of control steps alone.
    pub(crate) fn take_step(&mut self, blob: &[u8]) -> Result<(), CollectError> {
        self.step = self.read(blob, None)?.step;
        Ok(())
    }

    /// As [`crate::Collector::restore_range`], of environments `from..` of those saved.
    pub(crate) fn restore_range(
        &mut self,
        blob: &[u8],
        from: usize,
        spread: bool,
    ) -> Result<usize, CollectError> {
        let saved = self.read(blob, None)?;
        let (env, mut next) = self.next_rows();
        let taken = env.restore_range(saved.env, spread, &mut next)?;
        self.fill(&saved, from, taken);
        Ok(taken)
    }
}
