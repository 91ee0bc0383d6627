//! The policy that another one imitates: `ppo.imitation.teacher`.

use crate::run::error::RunError;
use crate::run::load::load_run;
use ostler_learn::config::Loaded;
use ostler_learn::learner::TrainedPolicy;
use ostler_sim::Groups;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use ostler_sim::names::nearest;
use std::path::Path;
use tch::Device;

/// Whether the teacher that a configuration names can be had, and fits the task of `spec`.
///
/// # Errors
/// Those of a run that is about to start.
pub fn check_teacher(loaded: &Loaded, spec: &EnvSpec) -> Result<(), RunError> {
    teacher(loaded, spec, Device::Cpu).map(|_| ())
}

/// The teacher that a configuration names, for the environments of `spec`; none where it
/// names none.
///
/// # Errors
/// There is no such run, or it does not fit the task's group of observations or its actions.
pub(super) fn teacher(
    loaded: &Loaded,
    spec: &EnvSpec,
    device: Device,
) -> Result<Option<Box<dyn TrainedPolicy>>, RunError> {
    let wanted = &loaded.config.ppo.imitation;
    if !wanted.is_on() {
        return Ok(None);
    }
    let refuse = |key: &str, why: String, help: String| -> RunError {
        let error = ConfigError::new(format!("ppo.imitation.{key}"), why);
        loaded.places.explain(&error.help(help)).into()
    };
    let Some(group) = spec.group(&wanted.group) else {
        let names = spec.groups.iter().map(|g| g.name.as_str());
        let why = format!("the task has no observations of the group \"{}\"", wanted.group);
        let help = match nearest(&wanted.group, names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("add [[task.observation]] with group = \"{}\"", wanted.group),
        };
        return Err(refuse("group", why, help));
    };
    let run = load_run(Path::new(&wanted.teacher))
        .map_err(|e| refuse("teacher", e.to_string(), "a run's folder, or a checkpoint".into()))?;
    let task = &run.checkpoint.meta.task;
    if run.config.actor.is_recurrent() {
        let why = "a recurrent policy cannot be asked about single states".into();
        return Err(refuse("teacher", why, "actor.rnn_type = \"none\" for the teacher".into()));
    }
    if (task.obs, task.action) != (group.width, spec.action.width()) {
        let why = format!(
            "{} sees {} numbers and does {}; the group \"{}\" has {}, and the task's actions {}",
            run.dir.display(),
            task.obs,
            task.action,
            group.name,
            group.width,
            spec.action.width()
        );
        let help = "give the group the terms that the teacher was trained with, in their order";
        return Err(refuse("teacher", why, help.into()));
    }
    let own = EnvSpec {
        obs: Groups { policy: task.obs, critic: task.critic_obs },
        critic: task.critic_obs,
        groups: Vec::new(),
        agents: Vec::new(),
        policy_names: Vec::new(),
        ..spec.clone()
    };
    let policy = run.policy_on(&own, device);
    policy.map(Some).map_err(|e| match e {
        RunError::Learn(e) => refuse("teacher", e.to_string(), "another run".into()),
        e => e,
    })
}
