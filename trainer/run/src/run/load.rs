//! A finished or running training as others see it: `play`, `eval`, `--init-from`.

use super::engine::{self, build_env, build_envs, kernel};
use super::error::RunError;
use super::schedules;
use super::store::checkpoint::{Checkpoint, TaskMark};
use super::store::{dir, keep};
use crate::forecast::weights;
use crate::log::errln;
use ostler_collector::env::Environments;
use ostler_learn::config::{Config, Loaded, load};
use ostler_learn::learner::{self, TrainedPolicy};
use ostler_sim::config::{ActionTerm, Backend};
use ostler_sim::env::EnvSpec;
use ostler_sim::model::mjcf;
use ostler_sim::referee::worlds::Failure;
use ostler_sim::text::word;
use ostler_sim::{BatchEnv, Model};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run's configuration, robot and weights.
#[derive(Debug)]
pub struct LoadedRun {
    /// The run's folder.
    pub dir: PathBuf,
    /// Its resolved configuration.
    pub config: Config,
    /// Its robot, from the run's own copy.
    pub model: Arc<Model>,
    /// The checkpoint's file.
    pub file: PathBuf,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    loaded: Loaded,
}

/// Loads a run from its folder (the newest checkpoint), from `runs/<name>` (its
/// newest run) or from one checkpoint file.
///
/// # Errors
/// There is no run, or a part of it cannot be read.
pub fn load_run(run: &Path) -> Result<LoadedRun, RunError> {
    let (dir, file, checkpoint, note) = newest_whole(run)?;
    if let Some(note) = note {
        errln!("warning: {note}");
    }
    let loaded = load(&dir.join(dir::CONFIG), &[])?;
    let model = robot(&loaded)?;
    Ok(LoadedRun { dir, config: loaded.config.clone(), model, file, checkpoint, loaded })
}

/// The robot, with the task's actuators and what its events make different between
/// environments.
///
/// # Errors
/// Its file cannot be read; a mistake in a term of the task, shown in its file.
pub fn robot(loaded: &Loaded) -> Result<Arc<Model>, RunError> {
    if let Some(foreign) = &loaded.foreign {
        return nothing(foreign.name());
    }
    let model = Arc::new(loaded.model()?);
    let config = &loaded.config;
    let made = ostler_sim::task::robot_of(&model, &config.sim, &config.env, &config.task);
    made.map_err(|e| loaded.places.explain(&e).into())
}

/// A model without bodies: environments that are no robot's have this one.
fn nothing(name: &str) -> Result<Arc<Model>, RunError> {
    let mut model = mjcf::parse(Path::new("nothing.xml"), "<mujoco/>".into())?;
    model.name = name.into();
    model.sources.clear();
    Ok(Arc::new(model))
}

/// Reads the configuration and the robot of a run from its folder, as everybody will who wants
/// its policy later.
///
/// # Errors
/// They cannot be read from there, or the robot is not `model`.
pub(super) fn read_back(run: &Path, model: &Model) -> Result<(), RunError> {
    let failed = |why: &dyn std::fmt::Display| RunError::ReadBack {
        run: run.to_path_buf(),
        why: why.to_string(),
    };
    let loaded = load(&run.join(dir::CONFIG), &[]).map_err(|e| failed(&e))?;
    let copy = robot(&loaded).map_err(|e| failed(&e))?;
    let mut copy = Arc::unwrap_or_clone(copy);
    // It lies elsewhere, and what is said of it was said.
    copy.sources.clone_from(&model.sources);
    copy.naming.clone_from(&model.naming);
    copy.ignored.clone_from(&model.ignored);
    match copy == *model {
        true => Ok(()),
        false => Err(failed(&"the robot in it is another one than the original")),
    }
}

fn folder_below(run: &Path) -> Option<PathBuf> {
    [run.to_path_buf(), run.join("latest")].into_iter().find(|d| d.join(dir::CONFIG).is_file())
}

/// The run's folder and the checkpoint meant.
///
/// # Errors
/// There is no run there, or it has no checkpoint yet.
pub fn find(run: &Path) -> Result<(PathBuf, PathBuf), RunError> {
    let usage = |m: String| Err(RunError::Usage(m));
    if run.is_file() {
        let dir = run.parent().and_then(Path::parent);
        return match dir.map(|d| if d.as_os_str().is_empty() { Path::new(".") } else { d }) {
            Some(dir) if dir.join(dir::CONFIG).is_file() => {
                Ok((dir.to_path_buf(), run.to_path_buf()))
            }
            _ => usage(format!(
                "{} is not in the checkpoints/ folder of a run: its config.toml is not beside it",
                run.display()
            )),
        };
    }
    let Some(dir) = folder_below(run) else {
        let why = if run.exists() { "it has no config.toml" } else { "there is no such folder" };
        return usage(format!(
            "{} is not a run: {why}; give a folder such as runs/NAME/latest or a file of its checkpoints/",
            run.display()
        ));
    };
    match keep::list(&dir.join("checkpoints")).pop() {
        Some((_, file)) => Ok((dir, file)),
        None => usage(format!(
            "{} has no checkpoint (yet): one is written every runner.save_interval iterations, every minute and at the end; `ostler train {}` starts the same run anew",
            dir.display(),
            word(&dir.join(dir::CONFIG))
        )),
    }
}

/// The run's folder, its newest checkpoint that is whole, and a line about those that
/// are not. A file that is named itself is the one that is meant, whole or not.
///
/// # Errors
/// There is no run, or no whole checkpoint.
pub(super) fn newest_whole(
    run: &Path,
) -> Result<(PathBuf, PathBuf, Checkpoint, Option<String>), RunError> {
    let (dir, file) = find(run)?;
    let e = match Checkpoint::read(&file) {
        Ok(checkpoint) => return Ok((dir, file, checkpoint, None)),
        Err(e) if run.is_file() => {
            let others = keep::list(&dir.join("checkpoints")).len() > 1;
            return Err(match others {
                true => RunError::Usage(format!("{e}; use another file of checkpoints/")),
                false => e.into(),
            });
        }
        // It may be whole: an older one would take back what was learnt.
        Err(e) if e.out_of_memory().is_some() => return Err(e.into()),
        Err(e) => e,
    };
    let older = keep::list(&dir.join("checkpoints")).into_iter().rev();
    for (_, file) in older.skip(1) {
        if let Ok(checkpoint) = Checkpoint::read(&file) {
            let note = format!("{e}; an earlier one is taken: {}", file.display());
            return Ok((dir, file, checkpoint, Some(note)));
        }
    }
    Err(RunError::Usage(format!(
        "{e}, and no other file of checkpoints/ is whole; `ostler train {}` starts the same run anew",
        word(&dir.join(dir::CONFIG))
    )))
}

impl LoadedRun {
    /// The configuration as read, with its places.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Brings the task's numbers to where the curriculum had them at this checkpoint, and starts to
    /// where a policy is [judged](ostler_sim::config::TaskConfig::begin_evenly); the numbers, by
    /// their keys. For before [`settle`](Self::settle).
    pub fn enter_stage(&mut self, begin: bool) -> Vec<(String, f64)> {
        let meta = &self.checkpoint.meta;
        let config = &mut self.loaded.config;
        let values = match meta.stage.is_empty() {
            true => schedules::stage(config, meta.iteration, &meta.schedules),
            false => meta.stage.clone(),
        };
        if !values.is_empty() {
            config.task = schedules::task_at(&values, config);
        }
        let task = &mut config.task;
        task.begin_evenly(begin);
        self.config.task.clone_from(task);
        values
    }

    /// Settles the engine for [`env`](Self::env): the run's own unless another is given.
    /// A kernel of the run's that is not on this machine is replaced, which is said: it
    /// computes the same but for the last bits.
    ///
    /// # Errors
    /// The engine cannot do something in the robot's model.
    pub fn settle(&mut self, backend: Option<Backend>) -> Result<(), RunError> {
        let own = self.loaded.config.sim.kernel.clone();
        let open = self.loaded.config.sim.kernel_is_open();
        if let Some(backend) = backend {
            self.loaded.config.sim.backend = backend;
        }
        kernel::settle_here(&mut self.loaded, &self.model)?;
        if !open && self.loaded.config.sim.kernel != own {
            errln!(
                "the run's kernel {} is not to be had here; {} is used, and the last digits may differ",
                kernel::short(&own),
                kernel::short(&self.loaded.config.sim.kernel)
            );
        }
        self.config = self.loaded.config.clone();
        Ok(())
    }

    /// `num_envs` environments of the run's task.
    ///
    /// # Errors
    /// The task does not compile or memory does not suffice.
    pub fn env(&self, num_envs: usize, seed: u64) -> Result<BatchEnv, RunError> {
        build_env(&self.loaded, &self.config, &self.model, num_envs, seed)
    }

    /// The same, or those in their place.
    ///
    /// # Errors
    /// Likewise.
    pub fn envs(&self, num_envs: usize, seed: u64) -> Result<Box<dyn Environments>, RunError> {
        build_envs(&self.loaded, &self.config, &self.model, (0, num_envs), seed)
    }

    /// The same, stepped by MuJoCo in `python` or the one that is found.
    ///
    /// # Errors
    /// Likewise, or there is no MuJoCo.
    pub fn judged_env(
        &self,
        num_envs: usize,
        seed: u64,
        python: Option<&Path>,
    ) -> Result<(BatchEnv, Failure), RunError> {
        engine::judged_env(&self.loaded, &self.config, &self.model, num_envs, seed, python)
    }

    /// The policy with the checkpoint's weights and normalisers.
    ///
    /// # Errors
    /// The checkpoint is of another robot, task or network.
    pub fn policy(&self, spec: &EnvSpec) -> Result<Box<dyn TrainedPolicy>, RunError> {
        self.policy_in(&self.model, spec, &self.config.task.action)
    }

    /// The same in the environments of another run, of whose robot and actions `spec` is.
    ///
    /// # Errors
    /// Likewise.
    pub fn policy_in(
        &self,
        model: &Model,
        spec: &EnvSpec,
        actions: &[ActionTerm],
    ) -> Result<Box<dyn TrainedPolicy>, RunError> {
        fits(&self.checkpoint.meta.task, &mark(model, spec, actions), &self.file)?;
        self.policy_on(spec, tch::Device::Cpu)
    }

    /// The same on any device, whatever robot and task the run is of.
    ///
    /// # Errors
    /// Its networks have other sizes.
    pub(super) fn policy_on(
        &self,
        spec: &EnvSpec,
        device: tch::Device,
    ) -> Result<Box<dyn TrainedPolicy>, RunError> {
        self.has_its_networks()?;
        let mut policy = learner::build_policy(&self.config, spec, device)?;
        policy.load(&self.checkpoint.learner)?;
        Ok(policy)
    }
}

impl LoadedRun {
    /// Refuses networks that the checkpoint cannot hold, before there is room for them.
    fn has_its_networks(&self) -> Result<(), RunError> {
        let tensors = self.checkpoint.learner.iter();
        let held: u64 = tensors.map(|(_, t)| t.numel() as u64).sum();
        let hidden = self.config.runner.algorithm.hidden(&self.config);
        let state = self.config.actor.hidden_width();
        // Inputs and outputs come on top.
        let mut needed: Vec<(String, u64)> = ["actor", "critic"]
            .into_iter()
            .zip(hidden)
            .map(|(key, hidden)| (format!("{key}.hidden_dims = {hidden:?}"), weights(1, hidden, 1)))
            .collect();
        let recurrent = weights(state as usize, &[], 3 * state as u64);
        needed.push((format!("actor.rnn_hidden_dim = {state}"), recurrent));
        match needed.into_iter().find(|(_, least)| *least > held) {
            None => Ok(()),
            Some((key, least)) => Err(RunError::Usage(format!(
                "{} does not fit: it holds {held} numbers, and {key} in {} needs {least}",
                self.file.display(),
                self.dir.join(dir::CONFIG).display()
            ))),
        }
    }
}

/// The task's name in its checkpoints.
pub(super) fn mark(model: &Model, spec: &EnvSpec, actions: &[ActionTerm]) -> TaskMark {
    let place = |name: &String| model.actuators.iter().position(|a| a.name == *name);
    let by_name = |term: &ActionTerm| {
        let places: Option<Vec<usize>> = term.actuators.iter().map(place).collect();
        places.is_some_and(|places| !places.is_sorted())
    };
    TaskMark {
        robot: model.name.clone(),
        obs: spec.obs.policy,
        critic_obs: spec.critic,
        action: spec.action.width(),
        outputs: spec.output_names().map(String::from).collect(),
        by_name: actions.iter().any(by_name),
        num_envs: spec.num_envs,
    }
}

/// Refuses weights whose outputs drive the same actuators in another order.
fn in_order(theirs: &TaskMark, ours: &TaskMark, file: &Path) -> Result<(), RunError> {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let [was, is] = [theirs, ours].map(|t| t.outputs.join(", "));
    let why = match theirs.outputs.is_empty() {
        // They did not say so, but they had one order.
        true if ours.by_name => format!(
            "it is of an earlier build, whose outputs stood in the order of the robot's file; here \
             they are {is}, as [[task.action]] has them: write the actuators there in the file's order"
        ),
        false if was != is && sorted(&theirs.outputs) == sorted(&ours.outputs) => format!(
            "its outputs are {was}, here they are {is}: write the actuators of [[task.action]] in \
             that order"
        ),
        _ => return Ok(()),
    };
    Err(RunError::Usage(format!("{} does not fit: {why}", file.display())))
}

/// Whether weights trained on `theirs` can serve `ours`.
pub(super) fn fits(theirs: &TaskMark, ours: &TaskMark, file: &Path) -> Result<(), RunError> {
    let same = TaskMark {
        num_envs: ours.num_envs,
        outputs: ours.outputs.clone(),
        by_name: ours.by_name,
        ..theirs.clone()
    };
    if same == *ours {
        return in_order(theirs, ours, file);
    }
    let say = |t: &TaskMark| {
        format!(
            "robot \"{}\" with {} observations{} and {} actions",
            t.robot,
            t.obs,
            t.critic_obs.map(|c| format!(" ({c} for the critic)")).unwrap_or_default(),
            t.action
        )
    };
    Err(RunError::Usage(format!(
        "{} does not fit: it is of {}, here it is {}",
        file.display(),
        say(theirs),
        say(ours)
    )))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
