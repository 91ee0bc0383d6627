//! How a training comes to be: fresh, from another run's weights, or resumed.

use super::checkpoint::Checkpoint;
use super::counters::{Counters, Window};
use super::dir::{self, RunDir};
use super::error::RunError;
use super::evaluate::Evaluator;
use super::load::{build_env, find, fits, load_run, mark};
use super::meta::MetaWriter;
use super::signals::StopFlag;
use super::{Run, keep, kernel, resume};
use crate::config::{Config, Loaded, Override, load};
use crate::learner::Ppo;
use crate::log::errln;
use crate::log::metrics::Record;
use crate::log::progress::Progress;
use crate::log::sinks::Sinks;
use crate::log::tensorboard::FILE_NAME;
use crate::log::trace;
use ostler_collector::{Collector, SyncCollector};
use ostler_sim::Model;
use ostler_sim::config::Backend;
use ostler_sim::env::EnvSpec;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Evaluation never uses more environments than this.
const MAX_EVAL_ENVS: usize = 64;
/// Keeps the evaluation's draws apart from the training's.
const EVAL_SEED: u64 = 0x6576_616c_0000_0000;

/// What `ostler train` was asked for.
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
}

/// A run that goes on: where, and from which checkpoint.
struct Earlier {
    dir: RunDir,
    file: PathBuf,
    checkpoint: Checkpoint,
}

/// A configuration with its robot, resolved.
struct Plan {
    loaded: Loaded,
    model: Arc<Model>,
    notes: Vec<String>,
}

impl Run {
    /// Builds everything a training needs; nothing is simulated yet.
    ///
    /// # Errors
    /// The configuration, the robot, a folder or a checkpoint cannot be used.
    pub fn start(options: &Options) -> Result<Self, RunError> {
        let stop = StopFlag::install(options.quiet)
            .map_err(|e| RunError::Usage(format!("cannot watch for signals: {e}")))?;
        let (plan, earlier) = match &options.resume {
            Some(run) => {
                let (plan, earlier) = resumed(options, run)?;
                (plan, Some(earlier))
            }
            None => (fresh(options)?, None),
        };
        let Plan {
            mut loaded,
            model,
            mut notes,
        } = plan;
        // Before anything expensive is built for nothing.
        let weights = options.init_from.as_deref().map(load_run).transpose()?;
        let kernel = match kernel::settle(&mut loaded, &model, options.quiet, Some(&stop)) {
            Err(e) if earlier.is_some() => return Err(kernel::without_its_own(e)),
            kernel => kernel?,
        };
        notes.extend(kernel.line());
        let config = loaded.config.clone();
        let torch = crate::torch::init(config.learner_threads())?;
        let Parts {
            mut collector,
            mut ppo,
            spec,
            physics_notes,
        } = build_parts(&loaded, &model)?;
        let task = mark(&model, &spec);
        if let Some(other) = weights {
            fits(&other.checkpoint.meta.task, &task, &other.file)?;
            ppo.policy_mut().load(&other.checkpoint.learner)?;
        }
        let evaluator = match config.runner.eval_interval {
            0 => None,
            _ => {
                let n = config.runner.eval_episodes.min(MAX_EVAL_ENVS);
                let seed = config.seed ^ EVAL_SEED;
                Some(Evaluator::new(build_env(
                    &loaded, &config, &model, n, seed,
                )?)?)
            }
        };
        let mut counters = Counters::default();
        let mut aside = None;
        let dir = match earlier {
            Some(earlier) => {
                restore(&earlier, &task, &mut ppo, &mut collector, &mut counters)?;
                aside = set_aside(&earlier.dir, counters.iteration)?;
                earlier.dir
            }
            None => RunDir::create(&config, options.out.as_deref())?,
        };
        dir.write_config(&config, &model.sources)?;
        let at = |e| RunError::file("write into", dir.path())(e);
        trace::install(dir.path()).map_err(at)?;
        let sinks =
            Sinks::open(dir.path(), counters.iteration, config.log.tensorboard).map_err(at)?;
        let facts = json!({
            "robot": model.name,
            "num_envs": spec.num_envs,
            "observations": spec.obs.policy,
            "actions": spec.action.width(),
            "resumed_at_iteration": counters.iteration,
            "init_from": options.init_from,
            "libtorch": crate::torch::version(),
            "libtorch_threads": torch.threads,
            "libtorch_matmul_precision": torch.precision.name(),
        });
        let facts = facts.as_object().cloned().unwrap_or_default();
        let meta = MetaWriter::create(dir.path(), facts).map_err(at)?;
        if let Some(folder) = aside {
            notes.push(format!(
                "going on from iteration {}: what came after it is kept in {}",
                counters.iteration,
                folder.display()
            ));
        }
        for note in &notes {
            tracing::info!("{note}");
            if !options.quiet {
                errln!("{note}");
            }
        }
        for i in &model.ignored {
            tracing::info!("ignored {} at {}: {}", i.what, i.place, i.why);
        }
        for note in &physics_notes {
            tracing::info!("{}: {note}", config.sim.backend.name());
        }
        if config.sim.backend == Backend::Native {
            tracing::info!("native: kernel {}", config.sim.kernel);
        }
        let git_folder = loaded
            .path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let progress = Progress::new(options.quiet, config.runner.max_iterations);
        let now = Instant::now();
        Ok(Self {
            task,
            reward_names: spec.reward_names,
            termination_names: spec.termination_names,
            _kernel: kernel,
            first_iteration: counters.iteration,
            saved_iteration: options.resume.is_some().then_some(counters.iteration),
            counters,
            sinks,
            progress,
            record: Record::default(),
            meta,
            git_folder: git_folder.to_path_buf(),
            stop,
            max_time: options.max_time,
            started: now,
            saved: now,
            watch: super::guard::Watch::default(),
            reached: None,
            curve: None,
            config,
            dir,
            collector,
            ppo,
            evaluator,
        })
    }
}

/// What works together in every iteration.
pub(crate) struct Parts {
    pub(crate) collector: SyncCollector,
    pub(crate) ppo: Ppo,
    pub(crate) spec: EnvSpec,
    /// What the physics does otherwise than MuJoCo.
    pub(crate) physics_notes: Vec<String>,
}

/// Builds environments, policy, learner and collector.
pub(crate) fn build_parts(loaded: &Loaded, model: &Arc<Model>) -> Result<Parts, RunError> {
    let config = &loaded.config;
    let env = build_env(loaded, config, model, config.env.num_envs, config.seed)?;
    let spec = env.spec().clone();
    let physics_notes = env.physics().notes().to_vec();
    super::Need::of(config, &spec).check(super::memory::available())?;
    let steps = config.runner.num_steps_per_env;
    let ppo = Ppo::new(
        &config.ppo,
        &config.actor,
        &config.critic,
        &spec,
        steps,
        config.seed,
        tch::Device::Cpu,
    )
    .map_err(|e| in_file(loaded, e))?;
    let spread = config.runner.init_at_random_ep_len;
    let collector = SyncCollector::new(env, steps, ppo.policy(), config.seed, spread)?;
    Ok(Parts {
        collector,
        ppo,
        spec,
        physics_notes,
    })
}

/// Reads, overrides and resolves a configuration (see [`crate::config::Config::resolve`]
/// for `earlier`), and loads its robot.
pub(crate) fn plan(
    path: &Path,
    overrides: &[Override],
    earlier: Option<&Config>,
) -> Result<(Loaded, Arc<Model>, Vec<String>), RunError> {
    let mut loaded = load(path, overrides)?;
    let mut notes = loaded.config.resolve(earlier)?.notes;
    let robot = loaded.robot();
    if !robot.is_file() {
        let message = match robot.is_dir() {
            true => format!("{} is a folder", robot.display()),
            false => format!("there is no file {}", robot.display()),
        };
        let error = ostler_sim::config::ConfigError::new("task.robot", message)
            .help("the path is relative to the configuration's folder");
        return Err(loaded.places.explain(&error).into());
    }
    let model = Arc::new(loaded.model()?);
    let (asked, own) = (loaded.config.sim.dt, model.options.timestep);
    if asked == 0.0 {
        loaded.config.sim.dt = own;
    } else if asked != own {
        notes.push(format!(
            "sim.dt = {asked} s replaces the model's own time step of {own} s"
        ));
    }
    if !model.ignored.is_empty() {
        notes.push(format!(
            "{} things in {} are ignored: log.txt and `ostler check` name them",
            model.ignored.len(),
            robot.display()
        ));
    }
    Ok((loaded, model, notes))
}

fn fresh(options: &Options) -> Result<Plan, RunError> {
    let path = options.config.as_deref().ok_or_else(|| {
        RunError::Usage(
            "which configuration? `ostler train CONFIG`; `ostler envs` lists them".into(),
        )
    })?;
    let (loaded, model, notes) = plan(path, &options.overrides, None)?;
    Ok(Plan {
        loaded,
        model,
        notes,
    })
}

fn resumed(options: &Options, run: &Path) -> Result<(Plan, Earlier), RunError> {
    if options.out.is_some() || options.init_from.is_some() {
        return Err(RunError::Usage(
            "--resume goes on in the run's own folder with its own weights: --out and --init-from do not go with it".into(),
        ));
    }
    let (folder, file) = find(run)?;
    let dir = RunDir::open(&folder)?;
    let own = folder.join(dir::CONFIG);
    let (before, old_model, _) = plan(&own, &[], None)?;
    let path = options.config.as_deref().unwrap_or(&own);
    let (mut loaded, model, notes) = plan(path, &options.overrides, Some(&before.config))?;
    resume::same_run(&before.config, &loaded.config, &folder)?;
    if !same_files(&old_model.sources, &model.sources) {
        return Err(RunError::Usage(format!(
            "cannot go on with {}: the robot in {} differs from the run's own copy",
            folder.display(),
            loaded.robot().display()
        )));
    }
    let checkpoint = Checkpoint::read(&file)?;
    if checkpoint.meta.iteration >= loaded.config.runner.max_iterations {
        return Err(RunError::Usage(format!(
            "{} has done {} of {} iterations; --set runner.max_iterations=N goes on",
            folder.display(),
            checkpoint.meta.iteration,
            loaded.config.runner.max_iterations
        )));
    }
    loaded.config.name.clone_from(&before.config.name);
    let plan = Plan {
        loaded,
        // From the run's own copy, so that copying it anew changes nothing.
        model: old_model,
        notes,
    };
    Ok((
        plan,
        Earlier {
            dir,
            file,
            checkpoint,
        },
    ))
}

/// Moves what the run would overwrite out of its way; see [`keep::set_aside`].
fn set_aside(dir: &RunDir, iteration: u64) -> Result<Option<PathBuf>, RunError> {
    let folder = dir.checkpoints();
    let newest = keep::list(&folder).pop().map_or(0, |f| f.0);
    if newest <= iteration {
        return Ok(None);
    }
    // A damaged best checkpoint is no reason to refuse: it stays where it is.
    let best = Checkpoint::read(&folder.join(keep::BEST)).ok();
    let copies = [dir.path().join(dir::METRICS), dir.path().join(FILE_NAME)];
    keep::set_aside(&folder, iteration, best.map(|b| b.meta.iteration), &copies).map_err(
        RunError::file("set aside the newer checkpoints in", &folder),
    )
}

fn same_files(a: &[PathBuf], b: &[PathBuf]) -> bool {
    let read = |p: &PathBuf| std::fs::read(p).ok();
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(x, y)| matches!((read(x), read(y)), (Some(x), Some(y)) if x == y))
}

fn restore(
    earlier: &Earlier,
    task: &super::TaskMark,
    ppo: &mut Ppo,
    collector: &mut SyncCollector,
    counters: &mut Counters,
) -> Result<(), RunError> {
    let c = &earlier.checkpoint;
    fits(&c.meta.task, task, &earlier.file)?;
    ppo.load(&c.learner)?;
    collector.restore(&c.collector).map_err(|e| {
        RunError::Usage(format!("{} cannot be resumed: {e}", earlier.file.display()))
    })?;
    *counters = Counters {
        iteration: c.meta.iteration,
        env_steps: c.meta.env_steps,
        wall_before_s: c.meta.wall_s,
        best: c.meta.best,
        window: Window::from_slice(&c.episodes),
    };
    Ok(())
}

/// Shows a learner's complaint about a key in its file.
fn in_file(loaded: &Loaded, e: crate::learner::LearnError) -> RunError {
    match e {
        crate::learner::LearnError::Config(e) => loaded.places.explain(&e).into(),
        e => e.into(),
    }
}
