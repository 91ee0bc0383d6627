//! What works together in every iteration: environments, policy, learner, collector.
//! All of it is replaced at once when the number of environments changes.

use super::error::RunError;
use super::load::build_env;
use crate::config::Loaded;
use crate::drill::Drill;
use crate::learner::{LearnError, Ppo};
use crate::memory::{Need, available};
use ostler_collector::{Collector, SyncCollector};
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use ostler_sim::{BatchEnv, Model};
use std::sync::Arc;

/// Collector and learner for one number of environments.
pub(crate) struct Parts {
    pub(crate) collector: SyncCollector,
    pub(crate) ppo: Ppo,
    pub(crate) spec: EnvSpec,
    /// What the physics does otherwise than MuJoCo.
    pub(crate) physics_notes: Vec<String>,
}

/// The state at an iteration's start. The learner's part lies beside the learner.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Environments and collector.
    pub(super) collector: Vec<u8>,
}

impl Parts {
    /// Builds everything for `env.num_envs` environments; `spec`: of any number.
    ///
    /// # Errors
    /// The task has a mistake, or memory does not suffice.
    pub(crate) fn build(
        loaded: &Loaded,
        model: &Arc<Model>,
        spec: &EnvSpec,
    ) -> Result<Self, RunError> {
        crate::torch::returnable(|| Self::build_all(loaded, model, spec))
    }

    fn build_all(loaded: &Loaded, model: &Arc<Model>, spec: &EnvSpec) -> Result<Self, RunError> {
        let config = &loaded.config;
        // The only place that keeps a training from a GPU: environments, collector and
        // learner are built for the processor below.
        if config.gpu().is_some() {
            return Err(RunError::GpuNotYet(config.device.clone()));
        }
        // The system grants more than there is and later kills whoever touches it.
        Need::of(config, spec).check(available())?;
        let mut env = build_env(loaded, config, model, config.env.num_envs, config.seed)?;
        let spec = env.spec().clone();
        let physics_notes = env.physics().notes().to_vec();
        let steps = config.runner.num_steps_per_env;
        let mut ppo = Ppo::new(
            &config.ppo,
            &config.actor,
            &config.critic,
            &spec,
            steps,
            config.seed,
            tch::Device::Cpu,
        )
        .map_err(|e| in_file(loaded, e))?;
        let drills = config.fault.drills().unwrap_or_default();
        if !drills.is_empty() {
            inject(&drills, &mut env, &mut ppo).map_err(|e| in_fault(loaded, e))?;
        }
        let spread = config.runner.init_at_random_ep_len;
        let collector = SyncCollector::new(env, steps, ppo.policy(), config.seed, spread)?;
        Ok(Self {
            collector,
            ppo,
            spec,
            physics_notes,
        })
    }

    /// Notes the state, so that an iteration can be taken back.
    ///
    /// # Errors
    /// Memory does not suffice; nothing has changed.
    pub(super) fn keep(&mut self, kept: &mut Kept) -> Result<(), RunError> {
        self.collector.keep(&mut kept.collector)?;
        Ok(self.ppo.keep()?)
    }

    /// Takes the iteration back.
    ///
    /// # Errors
    /// A defect: what was kept does not fit.
    pub(super) fn revert(&mut self, kept: &Kept) -> Result<(), RunError> {
        self.collector.revert(&kept.collector)?;
        Ok(self.ppo.revert()?)
    }
}

/// Gives environments and learner their faults.
fn inject(drills: &[Drill], env: &mut BatchEnv, ppo: &mut Ppo) -> Result<(), String> {
    let (mut of_env, mut of_update) = (Vec::new(), Vec::new());
    for drill in drills {
        match drill {
            Drill::Env(fault) => of_env.push(fault.clone()),
            Drill::Update(fault) => of_update.push(fault.clone()),
            Drill::Run(_) => {}
        }
    }
    env.inject(of_env).map_err(|e| e.to_string())?;
    ppo.inject(of_update).map_err(|e| e.to_string())
}

fn in_fault(loaded: &Loaded, why: String) -> RunError {
    loaded
        .places
        .explain(&ConfigError::new("fault.inject", why))
        .into()
}

/// Shows a learner's complaint about a key in its file.
fn in_file(loaded: &Loaded, e: LearnError) -> RunError {
    match e {
        LearnError::Config(e) => loaded.places.explain(&e).into(),
        e => e.into(),
    }
}
