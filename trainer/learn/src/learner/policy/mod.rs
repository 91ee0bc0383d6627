//! Actor and critic.

pub mod block;
mod config;
pub mod net;
mod replica;
mod sample;

pub use super::nn::activation::Activation;
pub use config::{ActorConfig, Architecture, CriticConfig, RnnType, StdType};

use super::nn::Params;
use super::nn::host::ActorPass;
use super::normalizer::Normalizer;
use super::returns::ReturnNormalizer;
use super::{Network, State, TrainedPolicy, error::LearnError};
use crate::learner::tensors::zeros;
use crate::learner::turn::Turn;
use net::{Net, NetSpace};
use ostler_collector::peers::Group;
use ostler_collector::transfer::brought;
use ostler_collector::{
    Act, Hidden, Policy, Replicate, Rollout, memory::memory_as_tch, policy::Noise,
};
use ostler_sim::config::ConfigError;
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use ostler_sim::env::mirror::Signed;
use tch::{Device, Kind, TchError, Tensor};

/// Actor and critic with their normalisers.
#[derive(Debug)]
pub struct ActorCritic {
    pub(super) net: Net,
    pub(super) params: Params,
    pub(super) norm: Norms,
    pub(super) device: Device,
    /// Number of updates behind it.
    pub(super) version: i32,
    /// Configuration for copies.
    config: ActorConfig,
    spec: EnvSpec,
    act: ActSpace,
}

/// Normalisers of the two networks' inputs.
#[derive(Debug)]
pub(super) struct Norms {
    pub(super) actor: Option<Normalizer>,
    pub(super) critic: CriticNorm,
    /// Statistics of returns, where the critic learns them normalised.
    pub(super) returns: Option<ReturnNormalizer>,
}

#[derive(Debug)]
pub(super) enum CriticNorm {
    /// Raw observations.
    Raw,
    /// Exactly the actor's input, normalised or not.
    AsActor,
    /// Statistics of its own.
    Own(Normalizer),
}

/// Buffers of [`Policy::act`] for `rows` environments.
#[derive(Debug)]
struct ActSpace {
    rows: i64,
    input: Tensor,
    net: NetSpace,
    action: Tensor,
    /// On a host, the network at once.
    pass: Option<ActorPass>,
}

impl ActSpace {
    fn new(net: &Net, obs: i64, rows: i64, device: Device) -> Result<Self, LearnError> {
        let width = if net.is_categorical() { 1 } else { net.dist_width() };
        Ok(Self {
            rows,
            input: zeros("observations", &[rows, obs], Kind::Float, device)?,
            net: net.space(rows, false, device)?,
            action: zeros("actions", &[rows, width], Kind::Float, device)?,
            pass: net.actor_pass()?,
        })
    }
}

impl ActorCritic {
    /// Freshly initialised networks for a task's sizes; `seed` keys every draw.
    pub fn new(
        actor: &ActorConfig,
        critic: &CriticConfig,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let errors: Vec<ConfigError> = [actor.validate(), critic.validate()].concat();
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        let _no_grad = tch::no_grad_guard();
        let (net, params) = Net::new(actor, critic, spec, seed, device)?;
        let norm = Norms::new(actor, critic, spec, device)?;
        let act = ActSpace::new(&net, spec.obs.policy as i64, spec.rows() as i64, device)?;
        Ok(Self {
            net,
            params,
            norm,
            device,
            version: 0,
            config: actor.clone(),
            spec: spec.clone(),
            act,
        })
    }

    /// From now on the critic's outputs are normalised returns.
    pub(super) fn normalize_returns(&mut self) -> Result<(), LearnError> {
        self.norm.returns = Some(ReturnNormalizer::new(self.device)?);
        Ok(())
    }

    /// Runs the actor on raw observations; results lie in `self.act.net`, and hidden states
    /// where they are to go.
    fn forward(&mut self, obs: &Tensor, hidden: Option<Hidden<'_>>) -> Result<(), TchError> {
        let (rows, width) = obs.size2()?;
        if rows != self.act.rows {
            // Another number of environments than before: an evaluation, or a back-off.
            self.act = ActSpace::new(&self.net, width, rows, self.device).map_err(own_memory)?;
        }
        let norm = self.norm.actor.as_ref().map(Normalizer::applied);
        if let Some(pass) = &mut self.act.pass
            && self.net.forward_on_host(pass, obs, norm, hidden, &self.act.net)?
        {
            return Ok(());
        }
        let obs = obs.f_to_device(self.device)?;
        let x = match &self.norm.actor {
            Some(normalizer) => {
                normalizer.apply(&obs, &self.act.input)?;
                &self.act.input
            }
            None => &obs,
        };
        let before = hidden.map(|h| h.before.f_to_device(self.device));
        let space = &self.act.net;
        let seen = self.net.see(x, before.transpose()?.as_ref(), space)?;
        self.net.forward_actor(seen, space)?;
        match hidden {
            Some(hidden) if self.net.hidden_width() > 0 => {
                let after = self.net.hidden_of(seen)?;
                hidden.after.shallow_clone().f_copy_(&after)
            }
            _ => Ok(()),
        }
    }
}

/// An error of acting in the words of libtorch, which is what
/// [`Policy::act`] may give.
pub(super) fn own_memory(e: LearnError) -> TchError {
    match e {
        LearnError::Torch(e) => e,
        LearnError::Memory(e) => memory_as_tch(e),
        e => TchError::Torch(e.to_string()),
    }
}

impl Norms {
    /// As the networks' configurations ask for, without statistics yet.
    pub(super) fn new(
        actor: &ActorConfig,
        critic: &CriticConfig,
        spec: &EnvSpec,
        device: Device,
    ) -> Result<Self, LearnError> {
        let normalizer = |name, width: usize| Normalizer::new(name, width as i64, device);
        let own = spec.critic;
        let critic_norm = match (critic.shared, own, critic.obs_normalization) {
            (true, _, _) => CriticNorm::AsActor,
            (_, None, on) if on == actor.obs_normalization => CriticNorm::AsActor,
            (_, _, true) => CriticNorm::Own(normalizer(
                "critic.obs_normalizer",
                own.unwrap_or(spec.obs.policy),
            )?),
            (_, _, false) => CriticNorm::Raw,
        };
        Ok(Self {
            actor: actor
                .obs_normalization
                .then(|| normalizer("actor.obs_normalizer", spec.obs.policy))
                .transpose()?,
            critic: critic_norm,
            returns: None,
        })
    }

    /// Observations count with their reflections from now on: `policy` of the actor's, `critic` of
    /// the critic's where it has its own.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn reflect(
        &mut self,
        policy: &Signed,
        critic: Option<&Signed>,
        device: Device,
    ) -> Result<(), TchError> {
        if let Some(own) = &mut self.actor {
            own.reflect(Turn::new(policy, device)?)?;
        }
        if let CriticNorm::Own(own) = &mut self.critic {
            own.reflect(Turn::new(critic.unwrap_or(policy), device)?)?;
        }
        Ok(())
    }

    /// Enters all statistics into a state. Returns that are not normalised are what no
    /// statistics of them mean.
    pub(super) fn declare(&self, state: &mut State) {
        self.inputs().for_each(|n| n.declare(state, false));
        if let Some(returns) = &self.returns {
            returns.stats().declare(state, true);
        }
    }

    /// Observations of a rollout enter the statistics. Bytes copied to the device are counted.
    pub(super) fn merge(
        &mut self,
        rollout: &Rollout,
        device: Device,
        crossed: &Counts,
    ) -> Result<(), LearnError> {
        let total = rollout.steps * rollout.envs;
        let valid = brought(&rollout.valid, device, crossed)?.f_view([total, 1])?;
        let rows = |t: &Tensor| -> Result<Tensor, TchError> {
            let seen = t.f_narrow(0, 0, rollout.steps)?.f_view([total, -1])?;
            brought(&seen, device, crossed)
        };
        if let Some(normalizer) = &mut self.actor {
            normalizer.merge(&rows(&rollout.obs.policy)?, &valid)?;
        }
        if let CriticNorm::Own(normalizer) = &mut self.critic {
            normalizer.merge(&rows(&rollout.critic(&rollout.obs)?)?, &valid)?;
        }
        Ok(())
    }

    /// From now on what all these processes see counts.
    pub(super) fn join(&mut self, group: &Group) {
        if let Some(normalizer) = &mut self.actor {
            normalizer.join(group);
        }
        if let CriticNorm::Own(normalizer) = &mut self.critic {
            normalizer.join(group);
        }
        if let Some(returns) = &mut self.returns {
            returns.join(group);
        }
    }

    /// Computes the values that derive from the statistics.
    pub(super) fn derive(&mut self) -> Result<(), TchError> {
        if let Some(normalizer) = &mut self.actor {
            normalizer.derive()?;
        }
        if let CriticNorm::Own(normalizer) = &mut self.critic {
            normalizer.derive()?;
        }
        match &mut self.returns {
            Some(returns) => returns.derive(),
            None => Ok(()),
        }
    }

    /// Those of observations.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Normalizer> {
        let critic = match &self.critic {
            CriticNorm::Own(normalizer) => Some(normalizer),
            _ => None,
        };
        self.actor.iter().chain(critic)
    }
}

impl Policy for ActorCritic {
    fn version(&self) -> i32 {
        self.version
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        Some(self)
    }

    fn dist_width(&self) -> i64 {
        self.net.dist_width()
    }

    fn hidden_width(&self) -> i64 {
        self.net.hidden_width()
    }

    fn noise(&self) -> (i64, Noise) {
        let kind = if self.net.is_categorical() { Noise::Uniform } else { Noise::Normal };
        (self.net.dist_width(), kind)
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.forward(obs, out.hidden)?;
        let (dist, log_std) = (&self.act.net.dist, &self.act.net.log_std);
        if !self.net.is_categorical() && sample::gaussian(dist, log_std, noise, out) {
            return Ok(());
        }
        let noise = noise.f_to_device(self.device)?;
        if self.net.is_categorical() {
            // The largest of logit + Gumbel noise is a draw from the softmax. A
            // uniform number of 0 would give -inf for every choice at once.
            let gumbel = noise.f_clamp_min(1e-12)?.f_log()?.f_neg()?.f_log()?;
            let choice = dist.f_sub(&gumbel)?.f_argmax(1, true)?;
            out.action.shallow_clone().f_copy_(&choice)?;
        } else {
            let std = log_std.f_exp()?;
            if out.action.device() == self.device && out.action.size() == dist.size() {
                let _ = dist.f_addcmul_out(out.action, &noise, &std)?;
            } else {
                let _ = dist.f_addcmul_out(&self.act.action, &noise, &std)?;
                out.action.shallow_clone().f_copy_(&self.act.action)?;
            }
            out.std.shallow_clone().f_copy_(&std)?;
        }
        out.dist.shallow_clone().f_copy_(dist)
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.forward(obs, hidden)?;
        let dist = &self.act.net.dist;
        if self.net.is_categorical() {
            action.shallow_clone().f_copy_(&dist.f_argmax(1, true)?)
        } else {
            action.shallow_clone().f_copy_(dist)
        }
    }
}

impl TrainedPolicy for ActorCritic {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        self.params.declare(state)?;
        self.norm.declare(state);
        Ok(())
    }

    fn renew(&mut self, loaded: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.norm.derive()?;
        match self.norm.returns {
            Some(_) => Ok(()),
            None => ReturnNormalizer::fold(loaded, self.net.value_head()),
        }
    }

    fn num_parameters(&self) -> i64 {
        self.params.len()
    }

    fn network(&self, _policy: usize) -> Result<Option<Network>, LearnError> {
        Ok(Some(self.net.export(self.norm.actor.as_ref())?))
    }
}
