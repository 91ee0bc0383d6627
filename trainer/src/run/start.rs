//! How a training comes to be: fresh, from another run's weights, or resumed.

use super::again::{forget_memory, restore, resumed, set_aside};
use super::counters::Counters;
use super::dir::RunDir;
use super::error::RunError;
use super::evaluate::Evaluator;
use super::evaluations::Evaluations;
use super::fitting::{fitting, nowhere, reduce};
use super::health::Health;
use super::load::{build_env, fits, load_run, mark};
use super::meta::MetaWriter;
use super::pace::Pace;
use super::signals::StopFlag;
use super::size::as_asked;
use super::{Machine, Run, kernel};
use crate::config::{Config, Gpus, Loaded, Override, load};
use crate::drill::{Drill, RunDrill};
use crate::log::errln;
use crate::log::metrics::{Record, last_iteration};
use crate::log::progress::Progress;
use crate::log::sinks::Sinks;
use crate::log::trace::{self, TraceError};
use crate::memory::{Hook, Level, MemoryMonitor, Sources};
use crate::supervise::{Message, Reporter};
use ostler_sim::Model;
use ostler_sim::config::Backend;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keeps the evaluation's draws apart from the training's.
const EVAL_SEED: u64 = 0x6576_616c_0000_0000;

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
pub(super) struct Plan {
    pub(super) loaded: Loaded,
    pub(super) model: Arc<Model>,
    pub(super) notes: Vec<String>,
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
        let mut drilled = Vec::new();
        for fault in &loaded.config.fault.inject {
            drilled.push(format!("DRILL: this run has a fault on order: {fault}"));
        }
        let drills = loaded.config.fault.drills().unwrap_or_default();
        drilled.extend(nowhere(&drills, &loaded.config));
        let drills = drills.into_iter().filter_map(|d| match d {
            Drill::Run(fault) => Some(fault),
            Drill::Env(_) | Drill::Update(_) => None,
        });
        let drills = drills.collect();
        // Before anything expensive is built for nothing.
        let weights = options.init_from.as_deref().map(load_run).transpose()?;
        let kernel = match kernel::settle(&mut loaded, &model, options.quiet, Some(&stop)) {
            Err(e) if earlier.is_some() => return Err(kernel::without_its_own(e)),
            kernel => kernel?,
        };
        notes.extend(kernel.line());
        let torch = crate::torch::init(loaded.config.learner_threads())?;
        let asked_envs = loaded.config.env.num_envs;
        // Schedules are followed before the first iteration; this is where it starts.
        let planned_envs = match &earlier {
            Some(earlier) => earlier.checkpoint.meta.task.num_envs,
            None => match loaded.config.back_off.last(0) {
                Some([_, cap]) => asked_envs.min(cap as usize),
                None => asked_envs,
            },
        };
        let least = loaded.config.back_off.min_num_envs.min(planned_envs);
        let most = options.max_envs.unwrap_or(planned_envs);
        loaded.config.env.num_envs = planned_envs.min(most).max(least);
        let asked = || stop.raised();
        let foreseen =
            stop.minded(|| crate::memory::fit::foresee(&loaded, &model, options, &asked))?;
        if stop.raised() {
            return Err(RunError::Stopped);
        }
        let mut warnings = drilled;
        warnings.extend(reduce(&mut loaded.config, &foreseen));
        notes.push(foreseen.note);
        let (mut parts, first) = fitting(&mut loaded, &model, &foreseen.spec, &mut warnings)?;
        let start = earlier.as_ref().map_or(0, |e| e.checkpoint.meta.iteration);
        if loaded.config.env.num_envs < planned_envs {
            let n = loaded.config.env.num_envs;
            loaded.config.back_off.record(start, n);
        }
        let config = loaded.config.clone();
        let task = mark(&model, &parts.spec);
        if let Some(other) = weights {
            fits(&other.checkpoint.meta.task, &task, &other.file)?;
            parts.learner.load_weights(&other.checkpoint.learner)?;
        }
        let evaluator = match config.eval_envs() {
            0 => None,
            n => {
                let seed = config.seed ^ EVAL_SEED;
                Some(Evaluator::new(build_env(
                    &loaded, &config, &model, n, seed,
                )?)?)
            }
        };
        let mut counters = Counters::default();
        let mut health = Health::new(&config.guard, parts.learner.weights()?);
        let mut evaluations = Evaluations::new(options.init_from.is_some());
        let (mut aside, mut last_pressure, mut progress_of) = (None, 0, Vec::new());
        let mut done_before = 0.0;
        let (dir, opened) = match earlier {
            Some(earlier) => {
                let opened = parts.open(earlier.dir.path(), true)?;
                // What follows changes files that are there.
                stop.begun();
                let spread = config.runner.init_at_random_ep_len;
                restore(&earlier, &task, spread, &mut parts, &mut counters)?;
                aside = set_aside(&earlier.dir, counters.iteration)?;
                let c = earlier.checkpoint;
                last_pressure = c.meta.last_pressure;
                progress_of = c.meta.schedules;
                done_before = c.meta.progress;
                health.restore(c.meta.health, c.good, c.candidate);
                evaluations.restore(c.meta.evaluations, c.best);
                (earlier.dir, opened)
            }
            None => {
                stop.begun();
                let dir = match &options.again {
                    Some(folder) => RunDir::open(folder)?,
                    None => RunDir::create(&config, options.out.as_deref())?,
                };
                if options.again.is_some() {
                    forget_memory(dir.path());
                }
                let opened = parts.open(dir.path(), false)?;
                (dir, opened)
            }
        };
        if let Some(opened) = opened {
            let replay = &mut loaded.config.replay;
            replay.storage = opened.storage;
            if opened.storage.in_file() {
                replay.storage_device = "cpu".into();
            }
            notes.push(opened.line);
        }
        let config = loaded.config.clone();
        // Before anything is in it that a start after a death would have to refuse.
        options.reporter.folder(dir.path());
        dir.write_config(&as_asked(&config, asked_envs), &model.sources)?;
        let at = |e| RunError::file("write into", dir.path())(e);
        let begun = match options.restarted {
            true => last_iteration(&dir.path().join(super::METRICS)) + 1,
            false => 0,
        };
        trace::install(dir.path(), &config.log).map_err(|e| match e {
            TraceError::File(e) => at(e),
            TraceError::Filter(e) => RunError::Usage(format!("log.level: {e}")),
        })?;
        options.reporter.say(&Message::NumEnvs(config.env.num_envs));
        let sources = Sources::host(Some(dir.path()));
        let monitor = MemoryMonitor::start_with(
            &config.memory,
            match config.gpu() {
                Some(index) => sources.with_gpu(index),
                None => sources,
            },
            Some(told(options.reporter.clone())),
        );
        let sinks =
            Sinks::open(dir.path(), counters.iteration, config.log.tensorboard).map_err(at)?;
        let facts = json!({
            "robot": model.name,
            "num_envs": parts.spec.num_envs,
            "observations": parts.spec.obs.policy,
            "actions": parts.spec.action.width(),
            "resumed_at_iteration": counters.iteration,
            "init_from": options.init_from,
            "libtorch": crate::torch::version(),
            "libtorch_threads": torch.threads,
            "libtorch_matmul_precision": crate::torch::matmul_precision()?.name(),
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
        notes.extend(parts.collector.line());
        for note in &notes {
            tracing::info!("{note}");
            if !options.quiet {
                errln!("{note}");
            }
        }
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        for i in &model.ignored {
            tracing::info!("ignored {} at {}: {}", i.what, i.place, i.why);
        }
        for note in &parts.physics_notes {
            tracing::info!("{}: {note}", config.sim.backend.name());
        }
        if let Some(kernel) = parts.collector.device_kernel() {
            tracing::info!("native: program {kernel} on {}", config.device);
        } else if config.sim.backend == Backend::Native {
            tracing::info!("native: kernel {}", config.sim.kernel);
        }
        let git_folder = loaded
            .path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_path_buf();
        let progress = Progress::new(options.quiet, config.runner.max_iterations);
        let now = Instant::now();
        let reached = reached_before(options, &config, &counters, &evaluations);
        Ok(Self {
            task,
            spec: foreseen.spec,
            loaded,
            asked_envs,
            model,
            parts: Some(parts),
            start: first,
            committed: true,
            health,
            crowded: None,
            last_pressure,
            progress_of,
            floor_said: false,
            scheduled: Vec::new(),
            schedules_looked_at: false,
            thrift: super::thrift::Thrift::default(),
            drill: RunDrill::new(drills, begun),
            monitor,
            reporter: options.reporter.clone(),
            _kernel: kernel,
            first_iteration: counters.iteration,
            saved_iteration: options.resume.is_some().then_some(counters.iteration),
            counters,
            sinks,
            progress,
            record: Record::default(),
            meta,
            git_folder,
            stop,
            max_time: options.max_time,
            pace: Pace::new(options.max_time, now, done_before),
            started: now,
            saved: now,
            restarted: options.restarted,
            watch: super::guard::Watch::default(),
            reached,
            curve: None,
            dir,
            evaluator,
            evaluations,
            evaluated: now,
            evaluation_s: 0.0,
        })
    }
}

/// Tells the supervising process when memory is tight, and when no longer.
fn told(reporter: Reporter) -> Hook {
    let mut before = Level::Calm;
    Box::new(move |memory, _| {
        if memory.level != Level::Calm || before != Level::Calm {
            before = memory.level;
            reporter.say(&Message::Memory {
                level: memory.level.name().into(),
                share: memory.share(),
                what: memory.pressure().to_string(),
            });
        }
    })
}

/// Reads, overrides and resolves a configuration (see [`crate::config::Config::resolve`]
/// for `earlier` and `gpus`), and loads its robot.
pub(crate) fn plan(
    path: &Path,
    overrides: &[Override],
    earlier: Option<&Config>,
    gpus: Gpus<'_>,
) -> Result<(Loaded, Arc<Model>, Vec<String>), RunError> {
    let mut loaded = load(path, overrides)?;
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
                let fit = crate::memory::fit::estimated(&machine, &loaded, &model)?;
                (fit.num_envs, Some(fit.to_string()))
            }
        };
        let number = Override::flag("env.num_envs = auto", "env.num_envs", n);
        let overrides = [overrides, &[number]].concat();
        let (loaded, model, notes) = plan(path, &overrides, earlier, gpus)?;
        return Ok((loaded, model, note.into_iter().chain(notes).collect()));
    }
    let config = &mut loaded.config;
    // Episodes that are too short or too long are refused where environments are built.
    let step_dt = config.sim.dt * config.env.decimation as f64;
    let episode_steps = config.env.max_episode_steps(step_dt).unwrap_or(1);
    config.resolve_evaluation(earlier, episode_steps);
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
    let (loaded, model, notes) = plan(path, &options.overrides, None, Gpus::HERE)?;
    Ok(Plan {
        loaded,
        model,
        notes,
    })
}

/// The return with which a run ended whose process died before it could say so.
fn reached_before(
    options: &Options,
    config: &Config,
    counters: &Counters,
    evaluations: &Evaluations,
) -> Option<f64> {
    let goal = config.runner.stop_at_return;
    let value = match config.runner.eval_interval() {
        0 => counters.window.full().then(|| counters.window.means().0)?,
        // Of this very checkpoint.
        _ => {
            let last = evaluations.record().last?;
            (last.iteration == counters.iteration).then_some(last.mean)?
        }
    };
    let over = goal != 0.0 && value >= goal;
    (options.restarted && over).then_some(value)
}
