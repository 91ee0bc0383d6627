//! How a run comes to be: fresh, from another run's weights, or resumed.

use super::counters::Counters;
use super::engine::{build_envs, kernel};
use super::error::RunError;
use super::evaluate::{DEVICE_STEPS, DeviceEvaluator, Evaluates, Evaluations, Evaluator, History};
use super::guards::{Guards, Health, MemoryGuard, tell_pressure};
use super::load::{fits, load_run, mark, read_back};
use super::pace::Pace;
use super::parts::{Parts, fitting, keep_teacher, nowhere, pin_teacher, reduce, to_evaluate};
use super::report::Report;
use super::schedules::Schedules;
use super::setup::{
    Earlier, Options, Plan, Setup, as_asked, forget_replay, fresh, leave_processes, restore,
    resumed, set_aside, wandb,
};
use super::signals::{LATE, StopFlag};
use super::store::Store;
use super::store::dir::{METRICS, RunDir};
use super::store::hash::hash;
use super::store::meta::MetaWriter;
use super::{Run, schedules};
use crate::forecast::fit::Foreseen;
use crate::log::errln;
use crate::log::metrics::last_iteration;
use crate::log::progress::Progress;
use crate::log::sinks::Sinks;
use crate::log::trace::{self, TraceError};
use crate::supervise::{Message, Reporter};
use ostler_collector::peers::Group;
use ostler_learn::config::curriculum::Stage;
use ostler_learn::config::{Config, Loaded};
use ostler_learn::drill::{Drill, RunDrill};
use ostler_learn::learner::{Opened, check_same_network};
use ostler_machine::memory::{MemoryMonitor, Sources};
use ostler_machine::torch::TorchSetup;
use ostler_sim::Model;
use ostler_sim::config::Backend;
use ostler_sim::process::give_up_after;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Keeps the evaluation's draws apart from the run's own.
const EVAL_SEED: u64 = 0x6576_616c_0000_0000;

impl Run {
    /// Builds everything a run needs; nothing is simulated yet.
    ///
    /// # Errors
    /// The configuration, the robot, a folder or a checkpoint cannot be used.
    pub fn start(options: &Options) -> Result<Self, RunError> {
        let stop = StopFlag::install(options.quiet)
            .map_err(|e| RunError::Usage(format!("cannot watch for signals: {e}")))?;
        let (plan, earlier) = match &options.resume {
            Some(run) => resumed(options, run).map(|(plan, e)| (plan, Some(e)))?,
            None => (fresh(options)?, None),
        };
        let Plan { mut loaded, model, mut notes, mut warnings } = plan;
        pin_teacher(&mut loaded.config, earlier.as_ref().map(|e| e.dir.path()));
        let folder = folder_of(&loaded);
        wandb::check(&mut loaded.config, &folder)?;
        let (drills, said) = announced(&loaded.config);
        warnings.extend(said);
        // Before anything expensive is built for nothing.
        let weights = options.init_from.as_deref().map(load_run).transpose()?;
        let kernel = match kernel::settle(&mut loaded, &model, options.quiet, Some(&stop)) {
            Err(e) if earlier.is_some() => return Err(kernel::without_its_own(e)),
            kernel => kernel?,
        };
        notes.extend(kernel.line());
        let torch = ostler_machine::torch::init(loaded.config.learner_threads())?;
        let asked_envs = loaded.config.env.num_envs;
        let (mut parts, foreseen) =
            fit(options, &stop, &mut loaded, &model, earlier.as_ref(), &mut warnings)?;
        notes.push(foreseen.note);
        if let Some(reflection) = &foreseen.spec.reflection {
            notes.extend(reflection.lines(&model));
        }
        if let Some(other) = weights {
            let task = mark(&model, &parts.spec, &loaded.config.task.action);
            fits(&other.checkpoint.meta.task, &task, &other.file)?;
            let (configs, weights) = ([&loaded.config, &other.config], &other.checkpoint.learner);
            check_same_network(parts.learner.state(), weights, configs)?;
            parts.learner.load_weights(weights)?;
        }
        let evaluator = evaluator(&loaded, &model, &parts)?;
        let mut past = Past::none(options, &loaded.config, &parts)?;
        let (mut dir, opened) =
            open(options, &stop, earlier, &loaded, &model, &mut parts, &mut past)?;
        notes.extend(opened.map(|opened| replay_as_opened(&mut loaded.config, opened)));
        keep_teacher(&dir, &mut loaded.config)?;
        let config = &loaded.config;
        // Before anything is in it that a start after a death would have to refuse.
        options.reporter.folder(dir.path());
        let text = dir.write_config(&as_asked(config, asked_envs), &model)?;
        let written = (text, hash(&model.sources).unwrap_or_default());
        read_back(dir.path(), &model)?;
        let begun = match options.restarted {
            true => last_iteration(&dir.path().join(METRICS)) + 1,
            false => 0,
        };
        install_log(&dir, config)?;
        options.reporter.say(&Message::NumEnvs(config.env.num_envs));
        let monitor = monitor(config, &dir, options.reporter.clone());
        let iteration = past.counters.iteration;
        let at = |e| RunError::file("write into", dir.path())(e);
        let mut sinks = Sinks::open(dir.path(), iteration, config.log.tensorboard).map_err(at)?;
        if let Some(wandb) = wandb::begin(config, &dir) {
            sinks.attach(wandb);
        }
        let facts = facts(options, &model, &parts, iteration, &torch)?;
        let meta = MetaWriter::create(dir.path(), facts).map_err(at)?;
        if let Some(folder) = &past.aside {
            notes.push(format!(
                "going on from iteration {iteration}: what came after it is kept in {}",
                folder.display()
            ));
        }
        notes.extend(parts.workers.take());
        notes.extend(parts.spec.reference.iter().cloned());
        let events = parts.spec.events.iter().flat_map(|e| &e.warnings);
        warnings.extend(events.chain(&foreseen.spec.doubts).cloned());
        say(options, config, &model, &parts, &notes, &warnings);
        let progress = Progress::new(options.quiet, config.runner.max_iterations);
        let started = Instant::now();
        if let Some(time) = options.max_time {
            give_up_after(time.saturating_add(LATE));
        }
        let mut evaluations =
            Evaluations::new(evaluator, past.history, foreseen.spec.max_episode_steps);
        evaluations.owed = past.owed;
        let pace = Pace::new(options.max_time, started, past.done);
        let schedules = Schedules::new(past.schedules, past.stage, pace);
        if schedules.complete(config) {
            evaluations.reached =
                reached_before(options, config, &past.counters, &evaluations.history);
        }
        let git_folder = folder_of(&loaded);
        let saved = options.resume.is_some().then_some(iteration);
        dir.begun(&loaded.config);
        Ok(Self {
            setup: Setup {
                loaded,
                asked_envs,
                model,
                spec: foreseen.spec,
                started,
                max_time: options.max_time,
                restarted: options.restarted,
                _kernel: kernel,
            },
            parts: Some(parts),
            counters: past.counters,
            schedules,
            evaluations,
            guards: Guards {
                health: past.health,
                memory: MemoryGuard::new(monitor, past.last_pressure),
                stop,
                drill: RunDrill::new(drills, 0, begun),
                reporter: options.reporter.clone(),
            },
            store: Store::new(dir, written, meta, git_folder, saved),
            report: Report::new(sinks, progress, iteration),
        })
    }
}

/// Faults on order for the run itself, and what is said about all of them.
fn announced(config: &Config) -> (Vec<Drill>, Vec<String>) {
    let mut said = Vec::new();
    for fault in &config.fault.inject {
        said.push(format!("DRILL: this run has a fault on order: {fault}"));
    }
    let drills = config.fault.drills().unwrap_or_default();
    said.extend(nowhere(&drills, config));
    (drills, said)
}

/// Collector and learner for as many environments as fit, of those that are planned.
fn fit(
    options: &Options,
    stop: &StopFlag,
    loaded: &mut Loaded,
    model: &Arc<Model>,
    earlier: Option<&Earlier>,
    warnings: &mut Vec<String>,
) -> Result<(Parts, Foreseen), RunError> {
    let asked = loaded.config.env.num_envs;
    // Schedules are followed before the first iteration; this is where it starts.
    let planned = match earlier {
        Some(earlier) => earlier.checkpoint.meta.task.num_envs,
        None => match loaded.config.back_off.last(0) {
            Some([_, cap]) => asked.min(cap as usize),
            None => asked,
        },
    };
    let least = loaded.config.back_off.min_num_envs.min(planned);
    let most = options.max_envs.unwrap_or(planned);
    loaded.config.env.num_envs = planned.min(most).max(least);
    let given_up = || stop.raised();
    let foreseen =
        stop.minded(|| crate::forecast::fit::foresee(loaded, model, options, &given_up))?;
    if stop.raised() {
        return Err(RunError::Stopped);
    }
    warnings.extend(reduce(&mut loaded.config, &foreseen));
    let parts = fitting(loaded, model, &foreseen.spec, warnings)?;
    let n = loaded.config.env.num_envs;
    if n < planned {
        let iteration = earlier.map_or(0, |e| e.checkpoint.meta.iteration);
        loaded.config.back_off.record(iteration, n);
    }
    Ok((parts, foreseen))
}

/// The environments of evaluations, where some are made.
fn evaluator(
    loaded: &Loaded,
    model: &Arc<Model>,
    parts: &Parts,
) -> Result<Option<Box<dyn Evaluates>>, RunError> {
    let (n, seed) = (loaded.config.eval_envs(), loaded.config.seed ^ EVAL_SEED);
    if n == 0 {
        return Ok(None);
    }
    let mut loaded = loaded.clone();
    loaded.config.task.begin_evenly(false);
    let (loaded, config) = (&loaded, &loaded.config);
    let noise = config.runner.eval_noise;
    // Returns of several agents are added up where episodes are counted: on the host.
    if config.agents.is_none() {
        let longest = parts.spec.max_episode_steps;
        let steps = DEVICE_STEPS.min(longest.max(1) as usize);
        let policy = parts.learner.policy();
        let there = to_evaluate(&parts.machine, loaded, model, policy, (n, steps, seed))?;
        if let Some(there) = there {
            return Ok(Some(Box::new(DeviceEvaluator::new(there, longest, noise)?)));
        }
    }
    let env = build_envs(loaded, config, model, (0, n), seed)?;
    Ok(Some(Box::new(Evaluator::new(env, noise)?)))
}

/// The run's past, as its checkpoint has it.
struct Past {
    counters: Counters,
    health: Health,
    history: History,
    schedules: schedules::Progress,
    stage: Stage,
    last_pressure: u64,
    /// The share of the run that was done.
    done: f64,
    /// The evaluation of the checkpoint's iteration was cut short.
    owed: bool,
    /// Where that was moved which came after the checkpoint.
    aside: Option<PathBuf>,
}

impl Past {
    /// Of a run that begins.
    fn none(options: &Options, config: &Config, parts: &Parts) -> Result<Self, RunError> {
        Ok(Self {
            counters: Counters::default(),
            health: Health::new(&config.guard, parts.learner.weights()?),
            history: History::new(options.init_from.is_some()),
            schedules: Vec::new(),
            stage: Vec::new(),
            last_pressure: 0,
            done: 0.0,
            owed: false,
            aside: None,
        })
    }
}

/// The run's folder, made or taken over, and the replay buffer in it. `parts` and `past` become
/// those of the checkpoint where there is an earlier run.
fn open(
    options: &Options,
    stop: &StopFlag,
    earlier: Option<Earlier>,
    loaded: &Loaded,
    model: &Model,
    parts: &mut Parts,
    past: &mut Past,
) -> Result<(RunDir, Option<Opened>), RunError> {
    let config = &loaded.config;
    let Some(earlier) = earlier else {
        stop.begun();
        let dir = match &options.again {
            Some(folder) if folder.exists() => RunDir::open(folder)?,
            // A start that failed took it away.
            Some(folder) => RunDir::create(config, Some(folder))?,
            None => RunDir::create(config, options.out.as_deref())?,
        };
        if options.again.is_some() {
            forget_replay(dir.path());
        }
        let opened = parts.open(dir.path(), false)?;
        return Ok((dir, opened));
    };
    // What is lost of the past is said.
    install_log(&earlier.dir, config)?;
    let mut earlier = earlier;
    let (meta, now) = (&mut earlier.checkpoint.meta, Group::current().size());
    let same = meta.processes == now;
    if !same {
        leave_processes(earlier.dir.path(), meta, now);
    }
    let opened = parts.open(earlier.dir.path(), same)?;
    // What follows changes files that are there.
    stop.begun();
    let task = mark(model, &parts.spec, &config.task.action);
    let spread = config.spreads_ages();
    restore(&earlier, &task, spread, parts, &mut past.counters)?;
    past.aside = set_aside(&earlier.dir, past.counters.iteration)?;
    let Earlier { dir, checkpoint: c, .. } = earlier;
    past.last_pressure = c.meta.last_pressure;
    past.schedules = c.meta.schedules;
    past.stage = c.meta.stage;
    past.done = c.meta.progress;
    past.owed = c.meta.evaluation_owed && config.runner.eval_interval() > 0;
    past.health.restore(c.meta.health, c.good, c.candidate);
    past.history.restore(c.meta.evaluations, c.best);
    Ok((dir, opened))
}

/// The configuration names the storage that the replay buffer got.
fn replay_as_opened(config: &mut Config, opened: Opened) -> String {
    config.replay.storage = opened.storage;
    if opened.storage.in_file() {
        config.replay.storage_device = "cpu".into();
    }
    opened.line
}

fn install_log(dir: &RunDir, config: &Config) -> Result<(), RunError> {
    trace::install(dir.path(), &config.log).map_err(|e| match e {
        TraceError::File(e) => RunError::file("write into", dir.path())(e),
        TraceError::Filter(e) => RunError::Usage(format!("log.level: {e}")),
    })
}

fn monitor(config: &Config, dir: &RunDir, reporter: Reporter) -> MemoryMonitor {
    let sources = Sources::host(Some(dir.path()));
    let sources = match config.gpu() {
        Some(index) => sources.with_gpu(index),
        None => sources,
    };
    MemoryMonitor::start_with(&config.memory, sources, Some(tell_pressure(reporter)))
}

/// The run's own part of `meta.json`.
fn facts(
    options: &Options,
    model: &Model,
    parts: &Parts,
    iteration: u64,
    torch: &TorchSetup,
) -> Result<Map<String, Value>, RunError> {
    let facts = json!({
        "robot": model.name,
        "num_envs": parts.spec.num_envs,
        "observations": parts.spec.obs.policy,
        "actions": parts.spec.action.width(),
        "resumed_at_iteration": iteration,
        "init_from": options.init_from,
        "libtorch": ostler_machine::torch::version(),
        "libtorch_threads": torch.threads,
        "libtorch_matmul_precision": ostler_machine::torch::matmul_precision()?.name(),
    });
    Ok(facts.as_object().cloned().unwrap_or_default())
}

/// Notes go to the log and the screen, warnings and details to the log.
fn say(
    options: &Options,
    config: &Config,
    model: &Model,
    parts: &Parts,
    notes: &[String],
    warnings: &[String],
) {
    for note in notes {
        tracing::info!("{note}");
        if !options.quiet {
            errln!("{note}");
        }
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    for line in model.ignored_lines() {
        tracing::info!("ignored {line}");
    }
    for note in &parts.physics_notes {
        tracing::info!("{}: {note}", config.sim.backend.name());
    }
    if let Some(kernel) = parts.collector.device_kernel() {
        tracing::info!("native: program {kernel} on {}", config.device);
    } else if config.sim.backend == Backend::Native && config.has_robot() {
        tracing::info!("native: kernel {}", config.sim.kernel);
    }
}

/// The configuration's folder.
fn folder_of(loaded: &Loaded) -> PathBuf {
    let parent = loaded.path.parent();
    let named = parent.filter(|p| !p.as_os_str().is_empty());
    named.unwrap_or(Path::new(".")).to_path_buf()
}

/// The return with which a run ended whose process died before it could say so.
fn reached_before(
    options: &Options,
    config: &Config,
    counters: &Counters,
    history: &History,
) -> Option<f64> {
    let goal = config.runner.stop_at_return;
    let value = match config.runner.eval_interval() {
        0 => counters.window.full().then(|| counters.window.means().0)?,
        // Of this very checkpoint.
        _ => {
            let last = history.record().last?;
            (last.iteration == counters.iteration).then_some(last.mean)?
        }
    };
    let over = goal != 0.0 && value >= goal;
    (options.restarted && over).then_some(value)
}
