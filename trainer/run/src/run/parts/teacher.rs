//! The policy that another one imitates: `ppo.imitation.teacher`.

use crate::run::error::RunError;
use crate::run::load::{load_run, newest_whole};
use crate::run::store::dir::{self, RunDir};
use ostler_learn::config::{Config, Loaded};
use ostler_learn::learner::TrainedPolicy;
use ostler_sim::Groups;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use ostler_sim::files;
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

/// Names the teacher as it is now, by the file of its policy: of a run that goes on its own copy,
/// of a new one the newest checkpoint. One that cannot be found stays as it is written, for who
/// builds it says what is wrong.
pub(in crate::run) fn pin(config: &mut Config, earlier: Option<&Path>) {
    let wanted = &mut config.ppo.imitation;
    if !wanted.is_on() {
        return;
    }
    let copy = earlier.map(|run| run.join(dir::TEACHER)).filter(|c| c.join(dir::CONFIG).is_file());
    let now = || newest_whole(Path::new(&wanted.teacher)).ok().map(|(_, file, ..)| file);
    let found = copy.or_else(|| if earlier.is_none() { now() } else { None });
    if let Some(path) = found.as_deref().and_then(Path::to_str) {
        wanted.teacher = path.to_string();
    }
}

/// Copies the teacher into a run's folder, which goes on with it whatever becomes of the original,
/// and names the copy.
///
/// # Errors
/// It cannot be read or written.
pub(in crate::run) fn keep(run: &RunDir, config: &mut Config) -> Result<(), RunError> {
    let wanted = &mut config.ppo.imitation;
    let copy = run.path().join(dir::TEACHER);
    if !wanted.is_on() || copy == Path::new(&wanted.teacher) {
        return Ok(());
    }
    let teacher = load_run(Path::new(&wanted.teacher))?;
    // Of a start that died in the midst of it.
    if copy.is_dir() {
        std::fs::remove_dir_all(&copy).map_err(RunError::file("replace", &copy))?;
    }
    let checkpoints = copy.join(dir::CHECKPOINTS);
    std::fs::create_dir_all(&checkpoints).map_err(RunError::file("make", &checkpoints))?;
    let file = checkpoints.join(teacher.file.file_name().unwrap_or_default());
    let copied = || -> std::io::Result<u64> {
        std::io::copy(&mut files::open(&teacher.file)?, &mut files::create(&file)?)
    };
    copied().map_err(RunError::file("write", &file))?;
    run.write_config_into(&copy, &teacher.config, &teacher.model)?;
    if let Some(path) = copy.to_str() {
        wanted.teacher = path.to_string();
    }
    Ok(())
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
