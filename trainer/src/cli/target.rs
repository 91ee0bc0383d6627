//! What `play` and `eval` are pointed at: a run, or a configuration without one.

use crate::config::Override;
use crate::run::stage::Agent;
use crate::run::{RunError, build_env, load_run, plan, settle_here};
use clap::ValueEnum;
use ostler_sim::config::Backend;
use ostler_sim::{BatchEnv, Model};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who decides on actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentKind {
    /// The trained policy, mean actions
    Policy,
    /// Zeros
    Zero,
    /// Uniform in -1..1
    Random,
}

/// Environments and who acts in them.
#[derive(Debug)]
pub struct Target {
    /// The configuration's name.
    pub name: String,
    /// The environments.
    pub env: BatchEnv,
    /// The engine that simulates them.
    pub backend: Backend,
    /// The robot.
    pub model: Arc<Model>,
    /// Who acts.
    pub agent: Agent,
    /// Seed of the episodes' starts.
    pub seed: u64,
    /// The checkpoint's file, if it is a run.
    pub checkpoint: Option<PathBuf>,
}

/// Opens a run (a folder or a checkpoint) or a configuration (a `.toml` file).
///
/// `agent`: the policy of a run unless given. `envs`: the configuration's number
/// unless given. `seed`: 1000 + the configuration's unless given, so that a policy
/// is not judged on the starts it was trained from. `backend`: the configuration's
/// unless given.
///
/// # Errors
/// There is nothing there, or it cannot be used; a configuration has no policy.
pub fn open(
    path: &Path,
    agent: Option<AgentKind>,
    overrides: &[Override],
    envs: Option<usize>,
    seed: Option<u64>,
    backend: Option<Backend>,
) -> Result<Target, RunError> {
    let is_config = path.extension().is_some_and(|e| e == "toml");
    if is_config {
        let (mut loaded, model, _) = plan(path, overrides, None)?;
        loaded.config.sim.backend = backend.unwrap_or(loaded.config.sim.backend);
        settle_here(&mut loaded, &model)?;
        let config = &loaded.config;
        crate::torch::init(config.learner_threads())?;
        let seed = seed.unwrap_or(config.seed.wrapping_add(1000));
        let agent = simple(agent.unwrap_or(AgentKind::Policy), seed).ok_or_else(|| {
            RunError::Usage(format!(
                "{} is a configuration, which has no policy: give a run's folder, or play it with --agent zero or --agent random",
                path.display()
            ))
        })?;
        let envs = envs.unwrap_or(config.env.num_envs);
        return Ok(Target {
            name: config.name.clone(),
            env: build_env(&loaded, config, &model, envs, seed)?,
            backend: config.sim.backend,
            model,
            agent,
            seed,
            checkpoint: None,
        });
    }
    if !overrides.is_empty() {
        return Err(RunError::Usage(
            "a run is played with the configuration it was trained with; --set works on a configuration (.toml)"
                .into(),
        ));
    }
    let mut run = load_run(path)?;
    run.settle(backend)?;
    crate::torch::init(run.config.learner_threads())?;
    let seed = seed.unwrap_or(run.config.seed.wrapping_add(1000));
    let env = run.env(envs.unwrap_or(run.config.env.num_envs), seed)?;
    let agent = match simple(agent.unwrap_or(AgentKind::Policy), seed) {
        Some(agent) => agent,
        None => Agent::Policy(Box::new(run.policy(env.spec())?)),
    };
    Ok(Target {
        name: run.config.name.clone(),
        env,
        backend: run.config.sim.backend,
        model: run.model.clone(),
        agent,
        seed,
        checkpoint: Some(run.file),
    })
}

fn simple(kind: AgentKind, seed: u64) -> Option<Agent> {
    match kind {
        AgentKind::Policy => None,
        AgentKind::Zero => Some(Agent::Zero),
        AgentKind::Random => Some(Agent::Random(seed)),
    }
}
