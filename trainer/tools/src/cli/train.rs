//! `ostler train`.

use super::config::ConfigArgs;
use super::time;
use clap::Args;
use ostler_collector::peers::Group;
use ostler_learn::config::ALLOW_NATIVE;
use ostler_learn::config::{Config, Device, Override, load};
use ostler_machine::memory::gpu_names;
use ostler_machine::torch::peers::Patience;
use ostler_run::log::progress::{duration, thousands};
use ostler_run::log::{errln, outln};
use ostler_run::run::dir::CONFIG;
use ostler_run::run::error::{DISK_FULL, FAILED, LOST, OK, POISONED};
use ostler_run::run::peers::{self, Launch};
pub(crate) use ostler_run::run::{
    Ended, Next, Options, Run, RunError, find as find_run_of, newest_unfinished,
};
use ostler_run::supervise::{Attempt, Wish, in_as_many, supervise};
use ostler_sim::config::Auto;
use ostler_sim::text::word;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Help for `--inject`.
const INJECT: &str =
    "A fault on order, for drills: \"nan qpos[2] env=3 step=50\" (docs/robustness.md)";

/// Flags of `ostler train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The run's folder [default: runs/NAME/DATE_TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run from its newest checkpoint; CONFIG may be left out. "auto": the
    /// newest unfinished run of CONFIG, a new one if there is none
    #[arg(long, value_name = "auto|RUN")]
    resume: Option<PathBuf>,
    /// Start from the weights and normalisers of a run
    #[arg(long, value_name = "RUN")]
    init_from: Option<PathBuf>,
    /// Save and stop after this time: 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    max_time: Option<Duration>,
    #[arg(long, value_name = "FAULT", help = INJECT)]
    inject: Vec<String>,
    /// Train with so many processes on this machine as one [default: 1, or those of torchrun
    /// and srun]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nproc: Option<u32>,
    /// No progress, no summary
    #[arg(long, short)]
    quiet: bool,
}

/// Trains, in a process of its own where that is configured, and says where everything
/// is. `log_level`: what the command line or the environment wants to be logged.
pub(crate) fn run(args: &TrainArgs, log_level: Option<String>) -> Result<i32, RunError> {
    let (config, mut overrides) = args.config.split()?;
    if let Some(level) = log_level {
        overrides.push(Override::flag("--log-level", "log.level", level));
    }
    if !args.inject.is_empty() {
        let list = toml::Value::from(args.inject.clone());
        overrides.push(Override::flag("--inject", "fault.inject", list));
    }
    let mut options = Options {
        config,
        overrides,
        out: args.out.clone(),
        resume: args.resume.clone(),
        init_from: args.init_from.clone(),
        max_time: args.max_time,
        quiet: args.quiet,
        ..Options::default()
    };
    let launched = peers::of_environment(&|name| std::env::var(name).ok());
    let launched = match (launched.map_err(RunError::Usage)?, args.nproc) {
        (_, Some(1)) => None,
        (Some(launch), Some(n)) => {
            return Err(RunError::Usage(format!(
                "--nproc {n} starts processes on one machine, and this is already one of {} that \
                 torchrun or srun has started: leave --nproc out, or --nproc 1 trains alone",
                launch.meeting.size
            )));
        }
        (launched, _) => launched,
    };
    let first = launched.as_ref().is_none_or(|l| l.meeting.rank == 0);
    // What torchrun starts again goes on with what it has.
    let again = launched.as_ref().is_some_and(|l| l.restarts > 0);
    let auto = args.resume.as_deref() == Some(Path::new("auto"));
    if first && (auto || (again && options.resume.is_none())) && find_run(&mut options)? {
        return Ok(OK);
    }
    if options.resume.is_none() && first {
        measure_num_envs(&mut options)?;
    }
    options.restarted |= again && !first;
    let here = launched.as_ref().map_or(args.nproc.unwrap_or(1) as usize, |l| l.here);
    divide_threads(&mut options, here);
    let go = |options: &Options| match (&launched, args.nproc) {
        (Some(launch), _) => together(options, launch, || train(options)),
        (None, Some(n)) if n > 1 => forked(options, n, || train(options)),
        _ => train(options),
    };
    match wish(&options, args.nproc).filter(|_| launched.is_none()) {
        Some(wish) => Ok(supervise(wish, &|attempt| go(&of_attempt(&options, attempt)))),
        None => Ok(go(&options)),
    }
}

/// Of `here` processes on this machine each has its share of the cores, where the configuration
/// leaves their number open.
pub(super) fn divide_threads(options: &mut Options, here: usize) {
    let Some(path) = options.config.as_deref().filter(|_| here > 1) else {
        return;
    };
    // What is wrong with it is said where it is used.
    let Ok(loaded) = load(path, &options.overrides) else {
        return;
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let config = &loaded.config;
    let workers = config.gymnasium.as_ref().map(|gym| ("gymnasium.workers", gym.workers));
    let open = [("sim.threads", config.sim.threads), ("learner.threads", config.learner.threads)];
    let open = open.into_iter().chain(workers);
    for (key, _) in open.filter(|(_, threads)| matches!(threads, Auto::Auto(_))) {
        let threads = (cores / here).max(1);
        options.overrides.push(Override::flag("several processes", key, threads));
    }
}

/// One of several processes: the first does `work`, the others follow; returns the exit code.
pub(super) fn together(options: &Options, launch: &Launch, work: impl FnOnce() -> i32) -> i32 {
    let runner = config_of(options).map(|c| c.runner).unwrap_or_default();
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    let patience =
        Patience { start: seconds(runner.peers_start_s), silence: seconds(runner.peers_silence_s) };
    let group = match peers::meet(&launch.meeting, patience) {
        Ok(group) => group,
        Err(e) => {
            errln!("error: {e}");
            return e.exit_code();
        }
    };
    if group.rank() > 0 {
        return peers::follow(options, &group);
    }
    let code = work();
    peers::part();
    code
}

/// Starts so many processes on this machine, see [`together`].
pub(super) fn forked(options: &Options, size: u32, work: impl FnOnce() -> i32) -> i32 {
    match peers::fork(size as usize) {
        Ok(launch) => together(options, &launch, work),
        Err(e) => {
            errln!("error: {size} processes cannot be started: {e}");
            FAILED
        }
    }
}

/// `--resume auto`; whether nothing is left to do.
fn find_run(options: &mut Options) -> Result<bool, RunError> {
    if options.init_from.is_some() {
        let why = "--resume auto goes on with a run's own weights: --init-from does not go with it";
        return Err(RunError::Usage(why.into()));
    }
    let path = options.config.as_deref().ok_or_else(|| {
        let why = "--resume auto goes on with the newest unfinished run of a configuration, and none \
                   is given: ostler train CONFIG --resume auto";
        RunError::Usage(why.into())
    })?;
    let (next, why) = newest_unfinished(path, &options.overrides, options.out.as_deref())?;
    if !options.quiet {
        errln!("{why}");
    }
    (options.resume, options.again) = match next {
        Next::GoOn(run) => (Some(run), None),
        Next::Anew(folder) => (None, Some(folder)),
        Next::Begin => (None, None),
        Next::Finished => return Ok(true),
    };
    if options.resume.is_some() || options.again.is_some() {
        options.out = None;
    }
    Ok(false)
}

/// `env.num_envs = "auto"`: by measurement, before there is anything to be measured.
fn measure_num_envs(options: &mut Options) -> Result<(), RunError> {
    let Some(path) = options.config.as_deref() else {
        return Ok(());
    };
    // What is wrong with it is said where it is used.
    let loaded = match load(path, &options.overrides) {
        Ok(loaded) if loaded.auto_envs => loaded,
        _ => return Ok(()),
    };
    // A GPU is asked by the process that computes on it: this one will fork.
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    match Device::parse(&loaded.config.device) {
        Ok(Device::Cuda(_)) => return Ok(()),
        Ok(Device::Auto) if !gpu_names(visible.as_deref()).is_empty() => return Ok(()),
        _ => {}
    }
    if !options.quiet {
        errln!("env.num_envs \"auto\": two small trainings measure what it takes");
    }
    let fit = ostler_run::forecast::fit::measured(path, &options.overrides)?;
    if !options.quiet {
        errln!("{fit}");
    }
    let number = Override::flag("env.num_envs = auto", "env.num_envs", fit.num_envs);
    options.overrides.push(number);
    Ok(())
}

/// The configuration's part about supervision. One that cannot be read is complained
/// about where it is used.
fn wish(options: &Options, nproc: Option<u32>) -> Option<Wish> {
    let config = config_of(options)?;
    config.runner.supervise.then_some(Wish {
        max_restarts: config.runner.max_restarts,
        back_off: config.back_off,
        warn: config.memory.warn,
        format: config.log.format,
        nproc: nproc.unwrap_or(1),
    })
}

/// The configuration, where it can be read.
fn config_of(options: &Options) -> Option<Config> {
    let own = |run: &PathBuf| Some(find_run_of(run).ok()?.0.join(CONFIG));
    let path = match (&options.config, &options.resume) {
        (Some(path), _) => path.clone(),
        (None, run) => own(run.as_ref()?)?,
    };
    Some(load(&path, &options.overrides).ok()?.config)
}

/// The options of a start after a death: the same run goes on in its folder.
fn of_attempt(options: &Options, attempt: &Attempt) -> Options {
    let mut options = options.clone();
    options.reporter = attempt.reporter.clone();
    options.max_envs = attempt.max_envs;
    options.max_time = options.max_time.map(|t| t.saturating_sub(attempt.spent));
    options.restarted |= attempt.folder.is_some();
    if let Some(folder) = &attempt.folder {
        if attempt.resumable {
            // Its own configuration, in which every override is.
            options.config = None;
            options.overrides.clear();
            options.resume = Some(folder.clone());
            options.out = None;
            options.init_from = None;
        } else {
            options.again = Some(folder.clone());
        }
    }
    options
}

/// Trains in this process; returns the exit code, errors said.
fn train(options: &Options) -> i32 {
    let mut run = match Run::start(options) {
        Ok(run) => run,
        Err(e) => {
            errln!("error: {e}");
            return e.exit_code();
        }
    };
    if !options.quiet {
        errln!("run {}", run.dir().path().display());
    }
    match run.learn() {
        Ok(ended) => finished(&run, ended, options.quiet),
        Err(e) => failed(&mut run, &e, options.reporter.supervised()),
    }
}

/// Says where everything is; returns the exit code.
fn finished(run: &Run, ended: Ended, quiet: bool) -> i32 {
    if !quiet {
        summary(run, ended);
    }
    if let Ended::DiskFull(disk) = ended {
        let dir = run.dir().path();
        errln!(
            "the run saved and ended: {disk}, less than memory.disk_act_mib = {} MiB; free some space where {} is, then go on: ostler train --resume {}{}",
            run.config().memory.disk_act_mib,
            dir.display(),
            word(dir),
            as_before()
        );
    }
    ended.exit_code()
}

/// Says why it failed and where the report is; returns the exit code.
fn failed(run: &mut Run, e: &RunError, supervised: bool) -> i32 {
    // What is gone says why itself, and the run goes on.
    if e.process_is_lost() {
        tracing::warn!("{e}");
        errln!("error: {e}");
        return LOST;
    }
    // Not even why is written into another one's folder.
    if let RunError::Taken(_) = e {
        errln!("error: {e}");
        return e.exit_code();
    }
    run.report_error(e);
    // Whoever supervises says the rest.
    if let RunError::Crowded { .. } = e {
        tracing::warn!("{e}");
        return e.exit_code();
    }
    tracing::info!("failed: {e}");
    errln!("error: {e}");
    let log = run.dir().path().join(ostler_run::log::trace::LOG);
    match run.newest_report() {
        Some(report) => errln!("the report is {}, the log {}", report.display(), log.display()),
        None => errln!("the log is {}", log.display()),
    }
    match run.disk_full() {
        _ if e.gpu_is_lost() && supervised => POISONED,
        Some(_) => DISK_FULL,
        None => FAILED,
    }
}

fn summary(run: &Run, ended: Ended) {
    let why = match ended {
        Ended::Finished => "all iterations done".to_string(),
        Ended::Reached(r) => format!("the mean return reached {r:.2}"),
        Ended::TimeUp => "the time is over".to_string(),
        Ended::Interrupted => "interrupted, saved".to_string(),
        Ended::DiskFull(_) => "the disk is nearly full, saved".to_string(),
    };
    let dir = run.dir().path().display();
    outln!(
        "{why}: iteration {}, {} environment steps, {}",
        run.iteration(),
        thousands(run.env_steps() as f64),
        duration(run.wall_s())
    );
    let evaluated = run.evaluated();
    if let (Some(last), Some(best)) = (evaluated.last, evaluated.best) {
        let since = if evaluated.moved { " since the curriculum moved last" } else { "" };
        let best = match best.mean > last.mean {
            false => format!("the best{}", if evaluated.moved { since } else { " so far" }),
            true => format!("best{since} {:.2} at iteration {}", best.mean, best.iteration),
        };
        let (all, evaluating) = run.evaluation_time();
        outln!(
            "evaluated   mean return {:.2} at iteration {}, {best} (mean actions; evaluations took {evaluating:.1} of {all:.1} s)",
            last.mean,
            last.iteration,
        );
    }
    let (mean_return, mean_length) = run.means();
    if mean_return.is_finite() {
        outln!(
            "in training mean return {mean_return:.2}, mean length {mean_length:.0} (last 100 episodes, with exploration)"
        );
    }
    let troubles = run.troubles();
    if !troubles.is_empty() {
        outln!("survived    {}", troubles.join(", "));
    }
    outln!("run         {dir}");
    outln!("checkpoint  {}", run.checkpoint_file().display());
    if let Some(curve) = run.curve_file() {
        outln!("curve       {}", curve.display());
    }
    outln!("metrics     {dir}/metrics.jsonl");
    if run.lost_records() > 0 {
        outln!("{} log records could not be written", run.lost_records());
    }
    if let Some(report) = run.newest_report() {
        outln!("report      {}", report.display());
    }
    // Python of others needs leave each time.
    let config = run.config();
    let wandb = config.log.wandb.as_ref();
    let leave = match config.gymnasium.is_some() || wandb.is_some_and(|w| w.names_python()) {
        true => format!(" {ALLOW_NATIVE}"),
        false => String::new(),
    };
    let dir = word(run.dir().path());
    match run.config().has_robot() {
        true => outln!("watch it    ostler play {dir}"),
        false => outln!("judge it    ostler eval {dir}{leave}"),
    }
    if matches!(ended, Ended::Interrupted | Ended::TimeUp | Ended::DiskFull(_)) {
        outln!("go on       ostler train --resume {dir}{leave}{}", as_before());
    }
}

/// How the run that ended here goes on in as many processes.
fn as_before() -> String {
    let size = Group::current().size();
    match peers::of_environment(&|name| std::env::var(name).ok()) {
        Ok(Some(_)) => format!(" (in {size} processes, as it was)"),
        _ => in_as_many(size),
    }
}
