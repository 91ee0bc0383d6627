//! Inputs of the networks and values of all observations of a rollout.

use crate::learner::error::LearnError;
use crate::learner::normalizer::Normalizer;
use crate::learner::policy::net::NetSpace;
use crate::learner::policy::{ActorCritic, CriticNorm, own_memory};
use crate::learner::tensors::zeros;
use ostler_collector::Rollout;
use ostler_sim::env::EnvSpec;
use tch::{Device, Kind, TchError, Tensor};

/// Rows that one pass of the critic takes on a host.
const CHUNK: i64 = 8192;

/// The same on a GPU, where launches cost more than memory.
const CHUNK_ON_GPU: i64 = 65_536;

/// Buffers for the estimates of one rollout.
#[derive(Debug)]
pub(crate) struct Values {
    /// Normalised observations of the actor `[(T+1) N, O]`, or the raw ones.
    actor: Input,
    /// The critic's, if they differ.
    critic: Option<Input>,
    memory: Option<Memory>,
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

/// Hidden states of a recurrent actor after each observation of a rollout.
#[derive(Debug)]
struct Memory {
    /// The actor's inputs and hidden states `[(T+1) N, O+H]`.
    seen: Tensor,
    /// The critic's inputs with them `[(T+1) N, O'+H]`, where these differ.
    critic: Option<Tensor>,
    /// Hidden states before the last observations of truncated episodes `[K N + 1, H]`.
    /// Nobody reads the row too many.
    before_last: Tensor,
    /// 1 where a sample's hidden state is that of the step before `[T N, 1]`.
    keep: Tensor,
}

/// One group's observations as a network sees them.
#[derive(Debug)]
struct Input {
    /// Where normalised ones go; none where the network sees raw ones.
    buffer: Option<Tensor>,
    /// Inputs of the network `[(T+1) N, O]`.
    seen: Tensor,
}

impl Input {
    fn new(normalized: bool, rows: i64, width: i64, device: Device) -> Result<Self, LearnError> {
        let buffer = normalized
            .then(|| zeros("normalised observations", &[rows, width], Kind::Float, device))
            .transpose()?;
        Ok(Self { buffer, seen: Tensor::new() })
    }

    fn fill(&mut self, obs: &Tensor, normalizer: Option<&Normalizer>) -> Result<(), TchError> {
        let (steps, envs, width) = obs.size3()?;
        // Columns of a wider row become a matrix of their own.
        let obs = obs.f_view([steps * envs, width])?.f_contiguous()?;
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
    pub(crate) fn new(
        policy: &ActorCritic,
        spec: &EnvSpec,
        steps: i64,
        same: bool,
    ) -> Result<Self, LearnError> {
        let (n, device) = (spec.rows() as i64, policy.device);
        let rows = (steps + 1) * n;
        let own = !matches!(policy.norm.critic, CriticNorm::Raw);
        let width = spec.critic.unwrap_or(spec.obs.policy) as i64;
        let k = (steps as u64).div_ceil(u64::from(spec.min_truncation_steps.max(1))).max(1) as i64;
        let most = match device {
            Device::Cpu => CHUNK,
            _ => CHUNK_ON_GPU,
        };
        let chunk = most.min(rows.max(k * n));
        let float = |what: &str, size: &[i64]| zeros(what, size, Kind::Float, device);
        let hidden = policy.net.hidden_width();
        let memory = || -> Result<Memory, LearnError> {
            let what = "hidden states";
            Ok(Memory {
                seen: float(what, &[rows, spec.obs.policy as i64 + hidden])?,
                critic: match same {
                    true => None,
                    false => Some(float(what, &[rows, width + hidden])?),
                },
                before_last: float(what, &[k * n + 1, hidden])?,
                keep: float("starts of episodes", &[steps * n, 1])?,
            })
        };
        Ok(Self {
            memory: (hidden > 0).then(memory).transpose()?,
            actor: Input::new(policy.norm.actor.is_some(), rows, spec.obs.policy as i64, device)?,
            critic: if same { None } else { Some(Input::new(own, rows, width, device)?) },
            scratch: float("normalised observations", &[chunk, width])?,
            space: policy.net.space(chunk, false, device)?,
            chunk,
            value: float("values", &[steps + 1, n])?,
            final_value: float("values", &[k, n])?,
            advantage: float("advantages", &[steps, n])?,
        })
    }

    /// The actor's inputs from the last rollout, `[(T+1) N, O]`.
    pub(crate) fn actor_inputs(&self) -> &Tensor {
        &self.actor.seen
    }

    /// Inputs of the actor's layers from it: of a recurrent one hidden states, too.
    pub(super) fn actor_sees(&self) -> &Tensor {
        let memory = self.memory.as_ref();
        memory.map_or(&self.actor.seen, |m| &m.seen)
    }

    /// Inputs of the critic's layers.
    pub(super) fn critic_sees(&self) -> &Tensor {
        let own = match &self.memory {
            Some(memory) => memory.critic.as_ref(),
            None => self.critic.as_ref().map(|c| &c.seen),
        };
        own.unwrap_or(self.actor_sees())
    }

    /// Of a recurrent actor, where a sample's hidden state is that of the step before
    /// `[T N, 1]`.
    pub(super) fn keep(&self) -> Option<&Tensor> {
        self.memory.as_ref().map(|m| &m.keep)
    }

    /// Hidden states after each observation of a rollout, from those before that it has.
    fn remember(&self, policy: &ActorCritic, rollout: &Rollout) -> Result<(), TchError> {
        let (Some(memory), Some(before)) = (&self.memory, &rollout.hidden) else {
            return Ok(());
        };
        let rows = memory.seen.size2()?.0;
        let before = before.f_view([rows, -1])?;
        self.in_chunks(rows, |at, len, space| {
            let x = self.actor.seen.f_narrow(0, at, len)?;
            let before = before.f_narrow(0, at, len)?;
            let seen = policy.net.see(&x, Some(&before), space)?;
            memory.seen.f_narrow(0, at, len)?.f_copy_(seen)
        })?;
        if let (Some(critic), Some(own)) = (&memory.critic, &self.critic) {
            let hidden = policy.net.hidden_of(&memory.seen)?;
            let _ = Tensor::f_cat_out(critic, &[&own.seen, &hidden], 1)?;
        }
        let n = rollout.envs;
        let ended = rollout.ended()?.f_view([-1, 1])?;
        let later = memory.keep.f_narrow(0, n, (rollout.steps - 1) * n)?;
        let before_end = ended.f_narrow(0, 0, (rollout.steps - 1) * n)?;
        later.shallow_clone().f_copy_(&before_end.f_logical_not()?)
    }

    /// The critic's inputs for the last observations of truncated episodes, which a
    /// recurrent actor remembers as the others.
    fn last_seen(
        &self,
        policy: &ActorCritic,
        rollout: &Rollout,
        norms: [Option<&Normalizer>; 2],
    ) -> Result<Option<Tensor>, TchError> {
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        let [actor_norm, critic_norm] = norms;
        let flat = |t: &Tensor| t.f_view([-1, t.size()[2]]);
        let seen = |x: Tensor, norm: Option<&Normalizer>| -> Result<Tensor, TchError> {
            let Some(norm) = norm else { return Ok(x) };
            let to = x.f_empty_like()?;
            norm.apply(&x, &to)?;
            Ok(to)
        };
        let last = &rollout.final_obs;
        let (k, n, _) = last.policy.size3()?;
        // The state before is that after the step of the truncation.
        let envs = Tensor::f_arange(n, (Kind::Int64, rollout.device()))?;
        let slot = rollout.final_slot.f_to_kind(Kind::Int64)?;
        let to = slot.f_mul_scalar(n)?.f_add(&envs)?;
        let nowhere = to.f_full_like(k * n)?;
        let to = to.f_where_self(&slot.f_ge(0)?, &nowhere)?.f_view([-1])?;
        let states = policy.net.hidden_of(&memory.seen)?;
        let states = states.f_narrow(0, 0, rollout.steps * n)?;
        let before = memory.before_last.shallow_clone();
        let before = before.f_index_copy(0, &to, &states)?;
        let before = before.f_narrow(0, 0, k * n)?;
        let x = seen(flat(&last.policy)?, actor_norm)?;
        let space = policy.net.space(k * n, false, policy.device);
        let space = space.map_err(own_memory)?;
        let actor = policy.net.see(&x, Some(&before), &space)?;
        if memory.critic.is_none() {
            return Ok(Some(actor.shallow_clone()));
        }
        let own = seen(flat(&rollout.critic(last)?)?, critic_norm)?;
        let hidden = policy.net.hidden_of(actor)?;
        Ok(Some(Tensor::f_cat(&[own, hidden], 1)?))
    }

    /// Normalises the rollout's observations and estimates, in units of rewards, the values of all of them.
    pub(crate) fn estimate(
        &mut self,
        policy: &ActorCritic,
        rollout: &Rollout,
    ) -> Result<(), TchError> {
        let actor_norm = policy.norm.actor.as_ref();
        let critic_norm = match &policy.norm.critic {
            CriticNorm::Raw => None,
            CriticNorm::AsActor => actor_norm,
            CriticNorm::Own(own) => Some(own),
        };
        self.actor.fill(&rollout.obs.policy, actor_norm)?;
        if let Some(critic) = &mut self.critic {
            critic.fill(&rollout.critic(&rollout.obs)?, critic_norm)?;
        }
        self.remember(policy, rollout)?;
        self.pass(policy, self.critic_sees(), None, &self.value)?;

        match self.last_seen(policy, rollout, [actor_norm, critic_norm])? {
            Some(last) => self.pass(policy, &last, None, &self.final_value)?,
            None => {
                let last = rollout.critic(&rollout.final_obs)?.f_contiguous()?;
                let (k, n, width) = last.size3()?;
                let last = last.f_view([k * n, width])?;
                self.pass(policy, &last, critic_norm, &self.final_value)?;
            }
        }
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
