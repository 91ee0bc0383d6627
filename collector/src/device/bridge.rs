//! Environments on the host, policy on a device.
//!
//! A control step is one copy each way: actions to the host, which waits for them, and
//! observations back, for which nobody waits. Data that the policy does not read (rewards,
//! flags, the critic's observations) and the random numbers of the actions cross once per
//! rollout. As actions are waited for in every step, all copies of the step before have landed
//! when the host next writes their sources.

use super::Traffic;
use super::envs::{NoiseSpec, TensorEnvironments};
use super::stream::{CudaSync, Landing, Outgoing, Queue};
use crate::buffers::ended;
use crate::env::Environments;
use crate::memory::zeros;
use crate::rollout::views;
use crate::{CollectError, Policy, Rollout, noise};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::{EnvError, EnvSpec};
use ostler_sim::memory::MemoryError;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use tch::{Kind, Tensor};

/// Environments on the host whose rollout lies on another device.
#[derive(Debug)]
pub struct Bridge<E: ?Sized> {
    env: Box<E>,
    queue: Queue,
    rollout: Rollout,
    noise: ActionNoise,
    /// Rows of the rollout on the device.
    there: DeviceBuffers,
    /// The same numbers on the host.
    here: HostBuffers,
    /// For a recurrent policy: one row of ends, here and there. It has left when the next is
    /// written.
    ended: Option<(Outgoing<f32>, Tensor)>,
    /// Whether copies may still be reading the host's memory.
    in_flight: bool,
    /// The state that [`capture_in_place`](TensorEnvironments::capture_in_place) left.
    captured: Vec<u8>,
}

#[derive(Debug)]
struct ActionNoise {
    spec: NoiseSpec,
    here: Outgoing<f32>,
    there: Tensor,
    rows: Vec<Tensor>,
}

#[derive(Debug)]
struct DeviceBuffers {
    /// Policy's observations, `T + 1` rows.
    obs: Vec<Tensor>,
    action: Vec<Tensor>,
    /// Critic's observations: the first row, and all others.
    critic: Option<[Tensor; 2]>,
}

#[derive(Debug)]
struct HostBuffers {
    action: Landing,
    /// One row: it has left when the next is written.
    obs: Outgoing<f32>,
    critic: Option<Critic>,
    reward: Outgoing<f32>,
    terminated: Outgoing<f32>,
    truncated: Outgoing<f32>,
    valid: Outgoing<f32>,
    final_slot: Outgoing<i32>,
    final_obs: Groups<Outgoing<f32>>,
}

#[derive(Debug)]
struct Critic {
    first: Outgoing<f32>,
    others: Outgoing<f32>,
}

impl<E: Environments + ?Sized> Bridge<E> {
    /// Allocates a rollout of `steps` steps on the queue's device, and on the host the buffers that
    /// its numbers leave from. `seed` keys the noise of actions.
    ///
    /// # Errors
    /// No memory on either side.
    pub fn new(
        env: Box<E>,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        queue: Queue,
    ) -> Result<Self, CollectError> {
        let spec = env.spec();
        let (device, steps) = (queue.device(), i64::try_from(steps).unwrap_or(i64::MAX));
        let rollout = Rollout::new(spec, steps, policy.widths(), device)?;
        let numbers = NoiseSpec::of(policy, seed);
        let size = [steps, spec.rows() as i64, numbers.width as i64];
        let noise_there = zeros("action noise", &size, Kind::Float, device)?;
        let r = &rollout;
        let out = |what: &str, like: &Tensor| Outgoing::like(&queue, what, like);
        let critic = match &r.obs.critic {
            Some(all) => Some([all.f_narrow(0, 0, 1)?, all.f_narrow(0, 1, steps)?]),
            None => None,
        };
        let here = HostBuffers {
            action: Landing::like(&queue, "actions", &r.action.f_get(0)?)?,
            obs: out("observations", &r.obs.policy.f_narrow(0, 0, 1)?)?,
            critic: match &critic {
                Some([first, others]) => Some(Critic {
                    first: out("critic's observations", first)?,
                    others: out("critic's observations", others)?,
                }),
                None => None,
            },
            reward: out("rewards", &r.reward)?,
            terminated: out("terminations", &r.terminated)?,
            truncated: out("truncations", &r.truncated)?,
            valid: out("validity", &r.valid)?,
            final_slot: Outgoing::like(&queue, "slots", &r.final_slot)?,
            final_obs: Groups {
                policy: out("final observations", &r.final_obs.policy)?,
                critic: match &r.final_obs.critic {
                    Some(critic) => Some(out("final observations", critic)?),
                    None => None,
                },
            },
        };
        let ends = || -> Result<_, CollectError> {
            let there = zeros("ends of episodes", &[1, r.envs], Kind::Float, device)?;
            Ok((out("ends of episodes", &there)?, there))
        };
        Ok(Self {
            ended: (policy.hidden_width() > 0).then(ends).transpose()?,
            noise: ActionNoise {
                spec: numbers,
                here: out("action noise", &noise_there)?,
                rows: views(&noise_there)?,
                there: noise_there,
            },
            there: DeviceBuffers {
                obs: views(&r.obs.policy.f_unsqueeze(1)?)?,
                action: views(&r.action)?,
                critic,
            },
            here,
            rollout,
            queue,
            env,
            in_flight: false,
            captured: Vec::new(),
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

    /// Waits until no copy reads the host's memory any more.
    fn settle(&mut self) -> Result<(), CollectError> {
        if self.in_flight {
            self.queue.wait(CudaSync::Event)?;
            self.in_flight = false;
        }
        Ok(())
    }

    /// Lets the environments write the first row of observations, and sends it.
    fn first_row<R>(
        &mut self,
        write: impl FnOnce(&mut E, &mut Groups<&mut [f32]>) -> Result<R, CollectError>,
    ) -> Result<R, CollectError> {
        self.settle()?;
        let here = &mut self.here;
        let mut row = Groups {
            policy: here.obs.rows.row_mut(0)?,
            critic: match &mut here.critic {
                Some(critic) => Some(critic.first.rows.row_mut(0)?),
                None => None,
            },
        };
        let result = write(&mut self.env, &mut row)?;
        here.obs.send(&self.queue, &self.there.obs[0])?;
        if let (Some(here), Some([first, _])) = (&here.critic, &self.there.critic) {
            here.first.send(&self.queue, first)?;
        }
        self.in_flight = !self.queue.waits_for_uploads();
        Ok(result)
    }
}

impl<E: Environments + ?Sized> TensorEnvironments for Bridge<E> {
    fn spec(&self) -> &EnvSpec {
        self.env.spec()
    }

    fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    fn noise(&self, t: usize) -> &Tensor {
        &self.noise.rows[t]
    }

    fn reset(&mut self, spread: bool) -> Result<(), CollectError> {
        self.first_row(|env, obs| {
            env.reset(spread, obs)?;
            Ok(())
        })
    }

    fn begin_rollout(&mut self, step: u64) -> Result<(), CollectError> {
        self.settle()?;
        let noise = &mut self.noise;
        for t in 0..noise.rows.len() {
            let row = noise.here.rows.row_mut(t)?;
            let spec = noise.spec;
            noise::fill(row, spec.width, spec.kind, spec.seed, 0, step + t as u64);
        }
        noise.here.send(&self.queue, &noise.there)?;
        self.env.begin_rollout();
        Ok(())
    }

    fn step(&mut self, t: usize) -> Result<(), CollectError> {
        let here = &mut self.here;
        let actions = here.action.fetch(&self.queue, &self.there.action[t])?;
        let mut out = StepOut {
            obs: Groups {
                policy: here.obs.rows.row_mut(0)?,
                critic: match &mut here.critic {
                    Some(critic) => Some(critic.others.rows.row_mut(t)?),
                    None => None,
                },
            },
            reward: here.reward.rows.row_mut(t)?,
            terminated: here.terminated.rows.row_mut(t)?,
            truncated: here.truncated.rows.row_mut(t)?,
            valid: here.valid.rows.row_mut(t)?,
            final_obs: Groups {
                policy: here.final_obs.policy.rows.all_mut()?,
                critic: match &mut here.final_obs.critic {
                    Some(critic) => Some(critic.rows.all_mut()?),
                    None => None,
                },
            },
            final_slot: here.final_slot.rows.row_mut(t)?,
        };
        self.env.step(actions, &mut out)?;
        here.obs.send(&self.queue, &self.there.obs[t + 1])
    }

    fn ended(&mut self, t: usize) -> Result<Tensor, CollectError> {
        let Some((out, there)) = &mut self.ended else {
            return Ok(self.rollout.ended()?.f_get(t as i64)?);
        };
        let here = &self.here;
        let [terminated, truncated, valid] =
            [&here.terminated, &here.truncated, &here.valid].map(|f| f.rows.row(t));
        let flags = ended(terminated?, truncated?, valid?);
        for (to, ended) in out.rows.row_mut(0)?.iter_mut().zip(flags) {
            *to = f32::from(u8::from(ended));
        }
        out.send(&self.queue, there)?;
        Ok(there.f_get(0)?.f_gt(0.0)?)
    }

    fn end_rollout(&mut self, into: &mut EpisodeStats) -> Result<(), CollectError> {
        let (queue, here, r) = (&self.queue, &self.here, &self.rollout);
        if let (Some(here), Some([_, others])) = (&here.critic, &self.there.critic) {
            here.others.send(queue, others)?;
        }
        here.reward.send(queue, &r.reward)?;
        here.terminated.send(queue, &r.terminated)?;
        here.truncated.send(queue, &r.truncated)?;
        here.valid.send(queue, &r.valid)?;
        here.final_slot.send(queue, &r.final_slot)?;
        here.final_obs.policy.send(queue, &r.final_obs.policy)?;
        if let (Some(here), Some(there)) = (&here.final_obs.critic, &r.final_obs.critic) {
            here.send(queue, there)?;
        }
        self.in_flight = !self.queue.waits_for_uploads();
        self.env.take_stats(into);
        Ok(())
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        Ok(self.env.capture(out)?)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), CollectError> {
        Ok(self.env.restore(bytes)?)
    }

    fn restore_range(&mut self, bytes: &[u8], spread: bool) -> Result<usize, CollectError> {
        self.first_row(|env, obs| Ok(env.restore_range(bytes, spread, obs)?))
    }

    fn capture_in_place(&mut self) -> Result<(), CollectError> {
        self.captured.clear();
        Ok(self.env.capture(&mut self.captured)?)
    }

    fn restore_in_place(&mut self) -> Result<(), CollectError> {
        Ok(self.env.restore(&self.captured)?)
    }

    fn captured_in_place(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        let bytes = self.captured.len();
        out.try_reserve(bytes)
            .map_err(|_| MemoryError { what: "a snapshot of the environments".into(), bytes })?;
        out.extend_from_slice(&self.captured);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env.set_task(task)
    }
}
