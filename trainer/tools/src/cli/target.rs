//! Target of `play` and `eval`: a run, or a configuration without one.

use super::engine::JudgeArg;
use super::instead::{Instead, Who};
use super::shipped;
use clap::ValueEnum;
use ostler_collector::env::Environments;
use ostler_learn::config::curriculum::NUM_ENVS;
use ostler_learn::config::{Config, Gpus, Loaded, Override};
use ostler_run::export::PolicyFile;
use ostler_run::log::errln;
use ostler_run::run::stage::Agent;
use ostler_run::run::{RunError, build_envs, judged_env, load_run, no_robot, plan, settle_here};
use ostler_sim::config::Backend;
use ostler_sim::names::few;
use ostler_sim::referee::worlds::Failure;
use ostler_sim::{BatchEnv, Model};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who decides on actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentKind {
    /// The trained policy, mean actions
    Policy,
    /// Zeros
    Zero,
    /// Uniform in -1..1
    Random,
}

/// Whether the task's events happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Events {
    /// As in training
    On,
    /// The robot of its file, no pushes
    Off,
}

/// Environments and who acts in them.
pub(super) struct Target {
    /// The configuration's name.
    pub name: String,
    /// The environments.
    pub env: Box<dyn Environments>,
    /// Name of the engine.
    pub backend: &'static str,
    /// Tells why the environments stand still, where MuJoCo steps them.
    pub failure: Option<Failure>,
    /// The robot.
    pub model: Arc<Model>,
    /// The configuration that names it.
    pub loaded: Loaded,
    /// Who acts.
    pub agent: Agent,
    /// Seed of the episodes' starts.
    pub seed: u64,
    /// The checkpoint's file, if it is a run.
    pub checkpoint: Option<PathBuf>,
}

/// Options beside the run or configuration itself.
#[derive(Debug, Default)]
pub(crate) struct Wish<'a> {
    /// The policy of a run unless given.
    pub agent: Option<AgentKind>,
    /// `--set`, for configurations.
    pub overrides: &'a [Override],
    /// The configuration's number unless given.
    pub envs: Option<usize>,
    /// 1000 + the configuration's unless given, so that a policy is not judged on the
    /// starts it was trained from.
    pub seed: Option<u64>,
    /// The configuration's unless given.
    pub backend: Option<JudgeArg>,
    /// The Python that has MuJoCo; found unless given.
    pub python: Option<&'a Path>,
    /// Who acts for single agents.
    pub instead: &'a [Instead],
    /// An exported policy acts in place of the run's own.
    pub policy: Option<&'a Path>,
    /// Without events.
    pub calm: bool,
    /// Reference motions are followed from their first frames.
    pub begin: bool,
}

impl Target {
    /// Environments of a robot.
    ///
    /// # Errors
    /// There is none: `what` needs one.
    pub(crate) fn robot(&self, what: &str) -> Result<&BatchEnv, RunError> {
        self.env.robot().ok_or_else(|| no_robot(what))
    }
}

/// Environments of a robot, taken.
///
/// # Errors
/// There is none: `what` needs one.
pub(super) fn robot(env: Box<dyn Environments>, what: &str) -> Result<Box<BatchEnv>, RunError> {
    env.into_robot().ok_or_else(|| no_robot(what))
}

/// Opens a run (a folder or a checkpoint) or a configuration (a `.toml` file).
///
/// # Errors
/// There is nothing there, or it cannot be used; a configuration has no policy.
pub(super) fn open(path: &Path, wish: &Wish<'_>) -> Result<Target, RunError> {
    let mut target = open_one(path, wish)?;
    if let Some(policy) = wish.policy {
        target.agent = file(&target, policy, None)?;
    }
    target.env.set_events(!wish.calm);
    for instead in wish.instead {
        target = replaced(target, instead)?;
    }
    Ok(target)
}

/// The same with another one acting for one of its agents.
fn replaced(mut target: Target, instead: &Instead) -> Result<Target, RunError> {
    let spec = target.env.spec();
    let of = instead.place(spec)?;
    let by = match &instead.who {
        Who::Zero => Agent::Zero,
        Who::Random => Agent::Random(target.seed ^ 1 << 32),
        Who::Run(path) => {
            let actions = &target.loaded.config.task.action;
            Agent::Policy(load_run(path)?.policy_in(&target.model, spec, actions)?.into())
        }
        Who::File(path) => file(&target, path, Some(&instead.agent))?,
    };
    target.agent = Agent::Instead { by: Box::new(by), of, rest: Box::new(target.agent) };
    Ok(target)
}

/// A policy of a file for all agents, or for one of them.
fn file(target: &Target, path: &Path, agent: Option<&str>) -> Result<Agent, RunError> {
    let config = &target.loaded.config;
    let hidden = match config.runner.algorithm.recurrent() {
        true => config.actor.hidden_width(),
        false => 0,
    };
    let file = PolicyFile::open(path, target.robot("an exported policy")?, agent)?;
    Ok(Agent::File(file.with_hidden(hidden)))
}

/// rapier has one robot for all environments: without its events a task runs there, too.
///
/// # Errors
/// The task's expressions read what events drew.
fn without_events(
    config: &mut Config,
    backend: Option<Backend>,
    wish: &Wish<'_>,
) -> Result<(), RunError> {
    let engine = backend.unwrap_or(config.sim.backend);
    if !wish.calm || engine != Backend::Rapier {
        return Ok(());
    }
    let read = |name: &str| {
        let texts = toml::to_string(&config.task).unwrap_or_default();
        texts.contains(&format!("event.{name}"))
    };
    if let Some(event) = config.task.event.iter().find(|e| read(&e.name)) {
        return Err(RunError::Usage(format!(
            "rapier has no events, and the task reads event.{}: --backend native and --backend \
             mujoco have them, also with --events off",
            event.name
        )));
    }
    config.task.event.clear();
    Ok(())
}

fn open_one(path: &Path, wish: &Wish<'_>) -> Result<Target, RunError> {
    // A configuration that comes with the program may be meant by its name.
    let found = path.to_str().map(shipped::find);
    let path = found.as_deref().unwrap_or(path);
    let Wish { agent, overrides, envs, seed, python, .. } = *wish;
    let mujoco = wish.backend == Some(JudgeArg::Mujoco);
    if python.is_some() && !mujoco {
        let why = "--python names the Python of MuJoCo: it goes with --backend mujoco";
        return Err(RunError::Usage(why.into()));
    }
    let backend = wish.backend.and_then(JudgeArg::backend);
    let name = |own: Backend| match wish.backend {
        Some(asked) => asked.name(),
        None => own.name(),
    };
    let is_config = path.extension().is_some_and(|e| e == "toml");
    if is_config {
        let (mut loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
        loaded.config.sim.backend = backend.unwrap_or(loaded.config.sim.backend);
        if mujoco && loaded.foreign.is_some() {
            return Err(no_robot("--backend mujoco"));
        }
        without_events(&mut loaded.config, backend, wish)?;
        if !mujoco {
            settle_here(&mut loaded, &model)?;
        }
        let config = &loaded.config;
        if let Some(line) = unstaged(config) {
            errln!("{line}");
        }
        ostler_machine::torch::init(config.learner_threads())?;
        let seed = seed.unwrap_or(config.seed.wrapping_add(1000));
        // A policy of a file takes its place.
        let own = if wish.policy.is_some() { AgentKind::Zero } else { AgentKind::Policy };
        let agent = simple(agent.unwrap_or(own), seed).ok_or_else(|| {
            RunError::Usage(format!(
                "{} is a configuration, which has no policy: give a run's folder, --policy with an \
                 exported policy, or --agent zero or --agent random",
                path.display()
            ))
        })?;
        let envs = envs.unwrap_or(config.env.num_envs);
        let (env, failure): (Box<dyn Environments>, _) = if mujoco {
            let (env, failure) = judged_env(&loaded, config, &model, envs, seed, python)?;
            (Box::new(env), Some(failure))
        } else {
            (build_envs(&loaded, config, &model, (0, envs), seed)?, None)
        };
        return Ok(Target {
            name: loaded.config.name.clone(),
            env,
            backend: engine(&loaded, name(loaded.config.sim.backend)),
            failure,
            model,
            loaded,
            agent,
            seed,
            checkpoint: None,
        });
    }
    if !overrides.is_empty() {
        return Err(RunError::Usage(
            "a run is played with the configuration it was trained with; --set works on a configuration \
             (.toml): ostler export RUN --format onnx writes the policy, and --policy FILE.onnx lets \
             it act there"
                .into(),
        ));
    }
    let mut run = load_run(path)?;
    if mujoco && run.loaded().foreign.is_some() {
        return Err(no_robot("--backend mujoco"));
    }
    if wish.begin && run.config.task.reference.is_empty() {
        let why = "--begin is for tasks with reference motions ([[task.reference]])";
        return Err(RunError::Usage(why.into()));
    }
    let stage = run.enter_stage(wish.begin);
    if !mujoco {
        run.settle(backend)?;
    }
    without_events(&mut run.config, backend, wish)?;
    if let Some(line) = staged(run.checkpoint.meta.iteration, &stage) {
        errln!("{line}");
    }
    ostler_machine::torch::init(run.config.learner_threads())?;
    let seed = seed.unwrap_or(run.config.seed.wrapping_add(1000));
    let envs = envs.unwrap_or(run.config.env.num_envs);
    let (env, failure): (Box<dyn Environments>, _) = if mujoco {
        let (env, failure) = run.judged_env(envs, seed, python)?;
        (Box::new(env), Some(failure))
    } else {
        (run.envs(envs, seed)?, None)
    };
    let agent = match simple(agent.unwrap_or(AgentKind::Policy), seed) {
        Some(agent) => agent,
        None => Agent::Policy(run.policy(env.spec())?.into()),
    };
    Ok(Target {
        name: run.config.name.clone(),
        env,
        backend: engine(run.loaded(), name(run.config.sim.backend)),
        failure,
        model: run.model.clone(),
        loaded: run.loaded().clone(),
        agent,
        seed,
        checkpoint: Some(run.file),
    })
}

/// The engine's name: there is none without a robot.
fn engine(loaded: &Loaded, name: &'static str) -> &'static str {
    match &loaded.foreign {
        Some(_) => "-",
        None => name,
    }
}

/// Says which stage of a curriculum a policy is shown in.
fn staged(iteration: u64, values: &[(String, f64)]) -> Option<String> {
    let shown: Vec<String> = values.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let line = || format!("curriculum as at iteration {iteration}: {}", few(&shown, 4));
    (!values.is_empty()).then(line)
}

/// Says that a configuration's curriculum has not begun.
fn unstaged(config: &Config) -> Option<String> {
    let keys = config.curriculum.iter().map(|schedule| schedule.key.as_str());
    let keys: Vec<_> = keys.filter(|key| *key != NUM_ENVS).collect();
    let line = || {
        format!("curriculum: a configuration is at no iteration; as in the file: {}", few(&keys, 4))
    };
    (!keys.is_empty()).then(line)
}

fn simple(kind: AgentKind, seed: u64) -> Option<Agent> {
    match kind {
        AgentKind::Policy => None,
        AgentKind::Zero => Some(Agent::Zero),
        AgentKind::Random => Some(Agent::Random(seed)),
    }
}
