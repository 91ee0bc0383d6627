//! The command line: one module a command.
//!
//! The flags are here; the commands' modules have their meaning. Every
//! error is printed in one place, [`run`].

mod bench;
mod bench_device;
mod bench_physics;
mod bench_threads;
mod check;
mod compare;
mod config;
mod contest;
mod doctor;
mod engine;
mod envs;
mod eval;
mod eval_clips;
mod export;
mod instead;
mod motion;
mod natives;
mod play;
mod plot;
mod regress;
mod replay;
mod report;
mod serve;
mod shell;
mod shipped;
mod target;
pub mod time;
mod train;
mod watch;

pub use config::ConfigArgs;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use ostler_learn::config::filter;
use ostler_learn::config::set_leave;
use ostler_machine::memory::lacks_stack;
use ostler_run::log::{all_written, errln, trace};
use ostler_run::run::RunError;
use ostler_run::run::error::{FAILED, OK, USAGE};
use ostler_sim::config::Leave;
use ostler_sim::physics::PhysicsError;
use ostler_sim::physics::native::InstructionSet;
use ostler_sim::text;
use std::ffi::OsString;

/// Help for `--log-level`.
const LOG_LEVEL: &str = "What is logged: off, error, warn, info, debug, trace; by module: \
                         info,ostler_trainer::memory=debug (log.level; OSTLER_LOG)";

/// Help for `--allow-native`.
const ALLOW: &str = "Run code that the configuration names, with all your rights: C++ headers \
                     ([[task.native]]), Python ([gymnasium]) (docs/security.md)";

/// Trains robot policies by reinforcement learning on batches of simulated robots.
#[derive(Debug, Parser)]
#[command(name = "ostler", version, propagate_version = true)]
struct Cli {
    #[arg(long, global = true, value_name = "FILTER", help = LOG_LEVEL, value_parser = filter::checked)]
    log_level: Option<String>,
    #[arg(long, global = true, help = ALLOW)]
    allow_native: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a policy
    Train(train::TrainArgs),
    /// Validate a configuration; print it resolved, with its sizes and tables
    Check(check::CheckArgs),
    /// Run a policy, print its returns, draw it: --html out.html --png sheet.png --gif out.gif
    Play(play::PlayArgs),
    /// Draw the learning curves of several runs: runs/a runs/b --png curves.png
    Plot(plot::PlotArgs),
    /// Write one page about runs: curves, events, configurations, versions, an animation
    Report(report::ReportArgs),
    /// Measure a policy over many episodes: --episodes 1000 --json
    Eval(eval::EvalArgs),
    /// Write a policy for a robot's own program: --format onnx,torchscript,c
    Export(export::ExportArgs),
    /// List the configurations at hand
    Envs(envs::EnvsArgs),
    /// Measure steps per second of simulation, collection, learning and the whole
    Bench(bench::BenchArgs),
    /// Show a failure again: the report's folder below RUN/failure
    Replay(replay::ReplayArgs),
    /// Look at what this machine has for trainings, and what it lacks
    Doctor(doctor::DoctorArgs),
    /// Train and judge a folder of regression files: results as JUnit XML, JSON, Markdown
    Regress(regress::RegressArgs),
    /// Removed: refused with what replaces it
    #[command(hide = true)]
    Physics(GoneArgs),
    /// Compare the dynamics of any MJCF file with MuJoCo's
    Compare(compare::CompareArgs),
    /// Look at a motion to imitate, with its robot; write a repaired copy: --out fixed.npz
    Motion(motion::MotionArgs),
    /// Print completions for a shell: bash, elvish, fish, powershell or zsh
    Completions(shell::CompletionsArgs),
    /// Write manual pages into a folder: ostler man ~/.local/share/man/man1
    Man(shell::ManArgs),
    /// Print JSON Schema of a configuration, for editors: ostler schema > ostler.schema.json
    Schema,
}

/// Whatever a command that was removed is given.
#[derive(Debug, Args)]
struct GoneArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _given: Vec<std::ffi::OsString>,
}

/// The filter of logs. A training has a log of its own, `regress` starts trainings that
/// see the environment; of other commands events go to standard error, if that is wanted.
fn wanted(flag: Option<String>, command: &Command) -> Result<Option<String>, RunError> {
    let level = filter::wanted(flag).map_err(RunError::Usage)?;
    if let (Some(level), false) = (&level, matches!(command, Command::Train(_))) {
        trace::to_stderr(level).map_err(|e| RunError::Usage(e.to_string()))?;
    }
    Ok(level)
}

/// What may be done with the headers of tasks.
fn leave(cli: &Cli) -> Leave {
    match (cli.allow_native, &cli.command) {
        (true, _) => Leave::Run,
        // They describe tasks, and step none.
        (false, Command::Check(_) | Command::Doctor(_)) => Leave::Describe,
        (false, _) => Leave::Refused,
    }
}

/// A mistake in the arguments as it is shown: line ends and the like escaped, for a name that a
/// script passes on forges no line of a log; and with what `--resume` takes, where that is missing.
fn as_shown(mistake: clap::Error, args: &[OsString]) -> clap::Error {
    let args: Vec<String> =
        args.iter().map(|arg| text::line(&arg.to_string_lossy()).into_owned()).collect();
    let mut mistake = Cli::try_parse_from(args).err().unwrap_or(mistake);
    let of = match mistake.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        _ => String::new(),
    };
    if mistake.kind() == ErrorKind::InvalidValue && of.starts_with("--resume ") {
        let tip = "--resume runs/NAME goes on with that run, --resume auto with the newest of the configuration";
        mistake.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    mistake
}

/// A message with the arguments in it as [`as_shown`] has them.
fn on_one_line(message: String, args: &[OsString]) -> String {
    args.iter().fold(message, |message, arg| {
        let arg = arg.to_string_lossy();
        match text::line(&arg) {
            shown if shown != arg => message.replace(&*arg, &shown),
            _ => message,
        }
    })
}

/// Reads the command line, does what it says, and returns the exit code.
pub fn run() -> i32 {
    run_with(&std::env::args_os().collect::<Vec<_>>())
}

/// As [`run`], with these words in place of the process's: the program's name and its arguments
/// (a run's `meta.json` has the process's own).
pub fn run_with(args: &[OsString]) -> i32 {
    if let Some(why) = lacks_stack() {
        errln!("error: {why}");
        return FAILED;
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version go to standard output with code 0, mistakes to standard
            // error with code 2.
            let mistake = e.use_stderr();
            let _ = if mistake { as_shown(e, args) } else { e }.print();
            return if mistake { USAGE } else { 0 };
        }
    };
    set_leave(leave(&cli));
    let runs = InstructionSet::widest().map_err(PhysicsError::from);
    let level = match runs {
        Ok(_) => wanted(cli.log_level, &cli.command),
        // Before the first call of code for a wider processor.
        Err(e) => Err(e.into()),
    };
    let training = matches!(cli.command, Command::Train(_));
    let result = level.and_then(|log_level| match cli.command {
        Command::Train(args) => train::run(&args, log_level),
        Command::Check(args) => check::run(&args),
        Command::Play(args) => play::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Envs(args) => envs::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Regress(args) => regress::run(&args),
        Command::Physics(GoneArgs { .. }) => Err(RunError::Usage(
            "`ostler physics` is gone: `ostler compare MODEL.xml` holds the dynamics against MuJoCo's, and --keep OUT.npz keeps the states and its answers".into(),
        )),
        Command::Compare(args) => compare::run(&args),
        Command::Motion(args) => motion::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
        Command::Schema => shell::schema(),
    });
    match result {
        // A training is more than what it prints.
        Ok(OK) if !training && !all_written() => FAILED,
        Ok(code) => code,
        Err(e) => {
            errln!("error: {}", on_one_line(e.to_string(), args));
            e.exit_code()
        }
    }
}
