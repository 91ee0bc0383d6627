//! From the command line to a configuration with its robot, resolved.

use crate::run::error::RunError;
use crate::run::load::robot;
use crate::run::parts::Machine;
use crate::supervise::Reporter;
use ostler_collector::CollectError;
use ostler_collector::gymnasium::GymError;
use ostler_collector::peers::Group;
use ostler_collector::replay::StorageKind;
use ostler_learn::config::{Config, Gpus, Loaded, Override, load};
use ostler_learn::learner::Half;
use ostler_sim::Model;
use ostler_sim::config::{ConfigError, FollowFrom, SimDevice};
use ostler_sim::model::Cone;
use ostler_sim::physics::pool::Pool;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Options of `ostler train`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The configuration; may be absent on resume.
    pub config: Option<PathBuf>,
    /// Overrides, in order.
    pub overrides: Vec<Override>,
    /// The run's folder, instead of one below `log.dir`.
    pub out: Option<PathBuf>,
    /// Go on with this run.
    pub resume: Option<PathBuf>,
    /// Start from this run's weights and normalisers.
    pub init_from: Option<PathBuf>,
    /// Stop after this time.
    pub max_time: Option<Duration>,
    /// No progress line.
    pub quiet: bool,
    /// The supervising process started this one after another one died.
    pub restarted: bool,
    /// The folder of this very run, which died before its first checkpoint: it starts
    /// anew in it.
    pub again: Option<PathBuf>,
    /// No more environments than this: memory did not hold more.
    pub max_envs: Option<usize>,
    /// Tells the process that supervises this one.
    pub reporter: Reporter,
}

/// A configuration with its robot, resolved.
pub(crate) struct Plan {
    pub(in crate::run) loaded: Loaded,
    pub(in crate::run) model: Arc<Model>,
    pub(in crate::run) notes: Vec<String>,
    pub(in crate::run) warnings: Vec<String>,
}

/// Reads, overrides and resolves a configuration (see [`ostler_learn::config::Config::resolve`]
/// for `earlier` and `gpus`), and loads its robot.
pub fn plan(
    path: &Path,
    overrides: &[Override],
    earlier: Option<&Config>,
    gpus: Gpus<'_>,
) -> Result<(Loaded, Arc<Model>, Vec<String>), RunError> {
    let mut loaded = load(path, overrides)?;
    // Decided by the memory that was free when the run began.
    if let Some(earlier) = earlier
        && loaded.config.replay.storage == StorageKind::Auto
    {
        loaded.config.replay.storage = earlier.replay.storage;
        loaded.config.replay.storage_device.clone_from(&earlier.replay.storage_device);
    }
    let by_itself = loaded.config.sim.device == SimDevice::Auto;
    let mut notes = loaded.config.resolve(earlier, gpus)?.notes;
    if matches!(gpus, Gpus::Ask(_)) && loaded.config.runner.algorithm.off_policy() {
        // Before anything is built: memory that cannot be pinned, a storage elsewhere.
        let gpu = loaded.config.gpu();
        let device = gpu.map_or(tch::Device::Cpu, tch::Device::Cuda);
        let errors = loaded.config.replay.validate_device(device, gpu.is_some());
        if let Some(error) = errors.first() {
            return Err(loaded.places.explain(error).into());
        }
    }
    if matches!(gpus, Gpus::Ask(_))
        && let Err(error) = Half::of(&loaded.config)
    {
        return Err(loaded.places.explain(&error).into());
    }
    let foreign_steps = match loaded.foreign.clone() {
        Some(foreign) => {
            if foreign.forgets() {
                notes.push(
                    "episodes of Gymnasium begin anew after a roll-back and a resume: their state cannot be saved"
                        .into(),
                );
            }
            let facts = foreign.facts().map_err(|e| shown(&loaded, e.into()))?;
            Some(facts.spec.max_episode_steps)
        }
        None => None,
    };
    let file = loaded.robot();
    if loaded.foreign.is_none() && !file.is_file() {
        let message = match file.is_dir() {
            true => format!("{} is a folder", file.display()),
            false => format!("there is no file {}", file.display()),
        };
        let error = ostler_sim::config::ConfigError::new("task.robot", message)
            .help("the path is relative to the configuration's folder");
        return Err(loaded.places.explain(&error).into());
    }
    let model = robot(&loaded)?;
    let (asked, own) = (loaded.config.sim.dt, model.options.timestep);
    if asked == 0.0 {
        loaded.config.sim.dt = own;
    } else if asked != own {
        notes.push(format!("sim.dt = {asked} s replaces the model's own time step of {own} s"));
    }
    if loaded.auto_envs {
        // With the number in its place everything else is decided anew: threads depend
        // on it.
        let (n, note) = match earlier {
            Some(earlier) => (earlier.env.num_envs, None),
            None => {
                let machine = match gpus {
                    Gpus::Ask(_) => Machine::of(&loaded.config)?,
                    Gpus::Trust => Machine::host(),
                };
                let fit = crate::forecast::fit::estimated(&machine, &loaded, &model)?;
                (fit.num_envs, Some(fit.to_string()))
            }
        };
        let number = Override::flag("env.num_envs = auto", "env.num_envs", n);
        let overrides = [overrides, &[number]].concat();
        let (loaded, model, notes) = plan(path, &overrides, earlier, gpus)?;
        return Ok((loaded, model, note.into_iter().chain(notes).collect()));
    }
    let config = &mut loaded.config;
    if by_itself {
        notes.extend(physics_doubt(config, &model));
    }
    // Episodes that are too short or too long are refused where environments are built.
    let step_dt = config.sim.dt * config.env.decimation as f64;
    let own = || config.env.max_episode_steps(step_dt).unwrap_or(1);
    let episode_steps = foreign_steps.unwrap_or_else(own);
    notes.extend(config.resolve_evaluation(earlier, episode_steps));
    notes.extend(config.without_effect());
    notes.extend(failures_apart(config, Group::current().size()));
    if !model.ignored.is_empty() {
        let what = match model.ignored.len() {
            1 => "1 element of".to_string(),
            n => format!("{n} elements of"),
        };
        notes.push(format!(
            "ignored: {what} {}; log.txt and `ostler check` name them",
            file.display()
        ));
    }
    Ok((loaded, model, notes))
}

/// What a resolved configuration is told whose episodes begin where others failed, and whose
/// environments several threads or `processes` have.
fn failures_apart(config: &Config, processes: usize) -> Option<String> {
    let threads = if config.is_async() { config.workers() } else { 1 };
    let adaptive = config.task.reference.iter().any(|r| r.start == Some(FollowFrom::Adaptive));
    (adaptive && threads * processes > 1).then(|| {
        format!(
            "task.reference: start = \"adaptive\" begins episodes where environments of the same part of the batch failed, of which there are {}: a run with another number has other bits",
            threads * processes
        )
    })
}

/// What a resolved configuration is told whose physics is on a GPU and may be faster on this
/// machine's cores.
pub fn physics_doubt(config: &Config, model: &Model) -> Option<String> {
    let kind = (model.nv, model.options.cone);
    let on_gpu = config.sim.device == SimDevice::Cuda;
    on_gpu.then(|| slow_on_gpu(kind, config.env.num_envs, Pool::available())).flatten()
}

/// What a run says whose physics a processor may do faster. A GPU's thread steps an environment:
/// those of a robot with many degrees of freedom, or whose contacts need an iteration each, do
/// different things at a time. The numbers are docs/benchmarks.md's, of an H200 beside 16 cores.
fn slow_on_gpu((nv, cone): (usize, Cone), num_envs: usize, cores: usize) -> Option<String> {
    let heavy = nv >= 18 || cone == Cone::Elliptic;
    (heavy && num_envs <= 8192 && cores >= 8).then(|| {
        format!(
            "physics is on the GPU; of a Go1 16 cores were 1.7 times as fast as an H200 with 4096 \
             environments: compare `ostler bench` with sim.device=cpu, which leaves it to these \
             {cores} cores (docs/gpu.md)"
        )
    })
}

/// Why there are no environments, shown where they are named.
fn shown(loaded: &Loaded, e: RunError) -> RunError {
    let RunError::Collect(CollectError::Gymnasium(why)) = &e else {
        return e;
    };
    let key = match **why {
        GymError::Start { .. } | GymError::Missing { .. } => "gymnasium.python",
        GymError::Refused { .. } | GymError::NoLimit { .. } => "gymnasium.env",
        GymError::Gone { .. } => return e,
    };
    let error = ConfigError::new(key, why.to_string());
    loaded.places.explain(&error).into()
}

pub(crate) fn fresh(options: &Options) -> Result<Plan, RunError> {
    let path = options.config.as_deref().ok_or_else(|| {
        RunError::Usage(
            "which configuration? `ostler train CONFIG`; `ostler envs` lists them".into(),
        )
    })?;
    let (loaded, model, notes) = plan(path, &options.overrides, None, Gpus::HERE)?;
    Ok(Plan { loaded, model, notes, warnings: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_learn::config::CollectorKind;
    use ostler_sim::config::Auto;

    /// A walking robot at thousands of environments, beside enough cores; not a cart.
    #[test]
    fn physics_on_a_gpu_is_doubted_where_cores_were_faster() {
        assert_eq!(slow_on_gpu((2, Cone::Pyramidal), 4096, 16), None);
        let said = slow_on_gpu((12, Cone::Elliptic), 4096, 16).unwrap();
        assert!(said.contains("sim.device=cpu") && said.contains("these 16 cores"), "{said}");
        assert_eq!(slow_on_gpu((12, Cone::Elliptic), 16_384, 16), None);
        assert_eq!(slow_on_gpu((12, Cone::Elliptic), 4096, 4), None);
        assert!(slow_on_gpu((18, Cone::Pyramidal), 4096, 16).is_some());
    }

    #[test]
    fn parts_of_a_batch_that_learn_of_their_own_failures_are_told() {
        let mut config = Config::default();
        config.env.num_envs = 64;
        let term = r#"files = ["a.csv"]
            start = "adaptive""#;
        config.task.reference = vec![toml::from_str(term).unwrap()];
        assert_eq!(failures_apart(&config, 1), None);
        assert!(failures_apart(&config, 2).unwrap().contains("there are 2"));
        config.collector.kind = CollectorKind::Async;
        config.collector.workers = Auto::N(3);
        assert!(failures_apart(&config, 2).unwrap().contains("there are 6"));
        config.task.reference[0].start = Some(FollowFrom::Uniform);
        assert_eq!(failures_apart(&config, 2), None);
    }
}
