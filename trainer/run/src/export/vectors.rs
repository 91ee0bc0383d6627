//! Test vectors: what the program itself decides in the first steps of an episode.

use crate::run::{Rows, RunError};
use ostler_collector::transfer::read_into;
use ostler_collector::{CollectError, HiddenStates};
use ostler_learn::learner::TrainedPolicy;
use ostler_sim::BatchEnv;
use ostler_sim::task::deploy::Deployment;
use serde::Serialize;
use tch::{Device, Kind, Tensor};

/// One control step.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Vector {
    /// An episode begins.
    first: bool,
    /// Observations before scaling `[K]`.
    obs: Vec<f32>,
    /// Clipped outputs `[A]`.
    actions: Vec<f32>,
    /// Controls `[U]`.
    controls: Vec<f32>,
}

/// Plays the first `steps` control steps without noise.
///
/// # Errors
/// libtorch refuses, or memory does not suffice.
pub(crate) fn record(
    env: &mut BatchEnv,
    policy: &mut dyn TrainedPolicy,
    of: &Deployment<'_>,
    steps: usize,
) -> Result<Vec<Vector>, RunError> {
    env.set_noise(false);
    let spec = env.spec().clone();
    let agent = agent_row(env, of);
    let (rows, width, out) = (spec.rows(), spec.obs.policy, spec.action.width());
    let mut results = Rows::new(&spec).map_err(CollectError::from)?;
    results.reset(env, false)?;
    let mut hidden = HiddenStates::of(&*policy, rows)?;
    let mut actions = vec![0.0; rows * out];
    let action = Tensor::f_zeros([rows as i64, out as i64], (Kind::Float, Device::Cpu))?;
    let mut first = true;
    let mut all = Vec::new();
    for _ in 0..steps {
        let obs = Tensor::f_from_slice(&results.obs)?.f_view([rows as i64, width as i64])?;
        policy.act_mean(&obs, hidden.as_ref().map(HiddenStates::step), &action)?;
        read_into(&action, &mut actions)?;
        let mut terms = vec![0.0; of.inputs()];
        of.terms_of_row(&results.obs[agent * width..][..of.width], &mut terms);
        let (clipped, controls) = of.act(&actions[agent * out..(agent + 1) * out]);
        all.push(Vector { first, obs: terms, actions: clipped, controls });
        env.begin_rollout();
        results.step(env, &actions)?;
        first = results.ended().next().unwrap_or(false);
        if let Some(hidden) = &mut hidden {
            hidden.advance(results.ended())?;
        }
    }
    Ok(all)
}

/// What a manifest reads of the environments.
fn agent_row(env: &BatchEnv, deployment: &Deployment<'_>) -> usize {
    let agents = &env.spec().agents;
    let own = |name: &String| agents.iter().position(|a| a.name == *name);
    deployment.name.as_ref().and_then(own).unwrap_or(0)
}
