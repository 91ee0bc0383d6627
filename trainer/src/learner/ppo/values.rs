//! Inputs of the networks and values of all observations of a rollout.

use crate::learner::LearnError;
use crate::learner::nn::zeros;
use crate::learner::normalizer::Normalizer;
use crate::learner::policy::net::NetSpace;
use crate::learner::policy::{ActorCritic, CriticNorm};
use ostler_collector::Rollout;
use ostler_sim::env::EnvSpec;
use tch::{Device, Kind, TchError, Tensor};

/// Rows that one pass of the critic takes on a host.
const CHUNK: i64 = 8192;

/// The same on a GPU, where launches cost more than memory.
const CHUNK_ON_GPU: i64 = 65_536;

/// Buffers for the estimates of one rollout.
#[derive(Debug)]
pub struct Values {
    /// Normalised observations of the actor `[(T+1) N, O]`, or the raw ones.
    actor: Input,
    /// The critic's, if they differ.
    critic: Option<Input>,
    /// Normalised last observations, a chunk at a time.
    scratch: Tensor,
    space: NetSpace,
    chunk: i64,
    /// Values `[T+1,N]`.
    pub value: Tensor,
    /// Values of the last observations of truncated episodes `[K,N]`.
    pub final_value: Tensor,
    /// Advantages `[T,N]`.
    pub advantage: Tensor,
}

/// One group's observations as a network sees them.
#[derive(Debug)]
struct Input {
    /// Where normalised ones go; none where the network sees raw ones.
    buffer: Option<Tensor>,
    /// What the network sees `[(T+1) N, O]`.
    seen: Tensor,
}

impl Input {
    fn new(normalized: bool, rows: i64, width: i64, device: Device) -> Result<Self, LearnError> {
        let buffer = normalized
            .then(|| {
                zeros(
                    "normalised observations",
                    &[rows, width],
                    Kind::Float,
                    device,
                )
            })
            .transpose()?;
        Ok(Self {
            buffer,
            seen: Tensor::new(),
        })
    }

    fn fill(&mut self, obs: &Tensor, normalizer: Option<&Normalizer>) -> Result<(), TchError> {
        let (steps, envs, width) = obs.size3()?;
        let obs = obs.f_view([steps * envs, width])?;
        self.seen = match (normalizer, &self.buffer) {
            (Some(normalizer), Some(buffer)) => {
                normalizer.apply(&obs, buffer)?;
                buffer.shallow_clone()
            }
            _ => obs,
        };
        Ok(())
    }
}

impl Values {
    /// Allocates for rollouts of `steps` steps. `same`: the critic sees exactly what
    /// the actor sees.
    pub fn new(
        policy: &ActorCritic,
        spec: &EnvSpec,
        steps: i64,
        same: bool,
    ) -> Result<Self, LearnError> {
        let (n, device) = (spec.rows() as i64, policy.device);
        let rows = (steps + 1) * n;
        let own = !matches!(policy.norm.critic, CriticNorm::Raw);
        let width = spec.obs.critic.unwrap_or(spec.obs.policy) as i64;
        let k = (steps as u64)
            .div_ceil(u64::from(spec.min_truncation_steps.max(1)))
            .max(1) as i64;
        let most = match device {
            Device::Cpu => CHUNK,
            _ => CHUNK_ON_GPU,
        };
        let chunk = most.min(rows.max(k * n));
        let float = |what: &str, size: &[i64]| zeros(what, size, Kind::Float, device);
        Ok(Self {
            actor: Input::new(
                policy.norm.actor.is_some(),
                rows,
                spec.obs.policy as i64,
                device,
            )?,
            critic: if same {
                None
            } else {
                Some(Input::new(own, rows, width, device)?)
            },
            scratch: float("normalised observations", &[chunk, width])?,
            space: policy.net.space(chunk, false, device)?,
            chunk,
            value: float("values", &[steps + 1, n])?,
            final_value: float("values", &[k, n])?,
            advantage: float("advantages", &[steps, n])?,
        })
    }

    /// What the actor sees of the last rollout, `[(T+1) N, O]`, and what the critic
    /// sees if that differs.
    pub fn inputs(&self) -> (&Tensor, Option<&Tensor>) {
        (&self.actor.seen, self.critic.as_ref().map(|c| &c.seen))
    }

    /// Normalises the rollout's observations and estimates, in units of rewards, the values of all of them.
    pub fn estimate(&mut self, policy: &ActorCritic, rollout: &Rollout) -> Result<(), TchError> {
        let actor_norm = policy.norm.actor.as_ref();
        let critic_norm = match &policy.norm.critic {
            CriticNorm::Raw => None,
            CriticNorm::AsActor => actor_norm,
            CriticNorm::Own(own) => Some(own),
        };
        self.actor.fill(&rollout.obs.policy, actor_norm)?;
        if let Some(critic) = &mut self.critic {
            let obs = rollout.obs.critic.as_ref().unwrap_or(&rollout.obs.policy);
            critic.fill(obs, critic_norm)?;
        }
        let seen = self.critic.as_ref().map_or(&self.actor.seen, |c| &c.seen);
        self.pass(policy, seen, None, &self.value)?;

        let last = rollout
            .final_obs
            .critic
            .as_ref()
            .unwrap_or(&rollout.final_obs.policy);
        let (k, n, width) = last.size3()?;
        let last = last.f_view([k * n, width])?;
        self.pass(policy, &last, critic_norm, &self.final_value)?;
        if let Some(returns) = &policy.norm.returns {
            returns.denormalize(&self.value)?;
            returns.denormalize(&self.final_value)?;
        }
        Ok(())
    }

    /// Calls `f(first, count, space)` for all of `rows` rows, a chunk at a time.
    pub(super) fn in_chunks(
        &self,
        rows: i64,
        mut f: impl FnMut(i64, i64, &NetSpace) -> Result<(), TchError>,
    ) -> Result<(), TchError> {
        for at in (0..rows).step_by(self.chunk as usize) {
            let len = self.chunk.min(rows - at);
            f(at, len, &self.space.narrow(len)?)?;
        }
        Ok(())
    }

    /// The critic over all rows of `x`, a chunk at a time, into `out`.
    fn pass(
        &self,
        policy: &ActorCritic,
        x: &Tensor,
        normalizer: Option<&Normalizer>,
        out: &Tensor,
    ) -> Result<(), TchError> {
        let rows = x.size2()?.0;
        let out = out.f_view([rows, 1])?;
        self.in_chunks(rows, |at, len, space| {
            let mut part = x.f_narrow(0, at, len)?;
            if let Some(normalizer) = normalizer {
                let scratch = self.scratch.f_narrow(0, 0, len)?;
                normalizer.apply(&part, &scratch)?;
                part = scratch;
            }
            policy.net.forward_value(&part, space)?;
            out.f_narrow(0, at, len)?.f_copy_(&space.value)
        })
    }
}
