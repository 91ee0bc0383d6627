//! `ostler regress`.

use crate::regress::child::Stop;
use crate::regress::{Options, find, report, run as run_suite};
use clap::{Args, ValueEnum};
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use ostler_run::run::error::{FAILED, INTERRUPTED, OK};
use std::path::{Path, PathBuf};

/// Flags of `ostler regress`.
#[derive(Debug, Args)]
pub(crate) struct RegressArgs {
    /// A folder of regression files (docs/regress.md)
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Folder for the results and all runs; new or empty [default:
    /// runs/regress/DATE_TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only cases with such a name; * stands for anything
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// The cases' short forms
    #[arg(long)]
    short: bool,
    /// List the cases and what they expect, run nothing
    #[arg(long)]
    list: bool,
    /// File of baselines [default: DIR/baselines.json]
    #[arg(long, value_name = "FILE")]
    baselines: Option<PathBuf>,
    /// Write the throughput of cases that pass into the file of baselines
    #[arg(long, conflicts_with = "require_baseline")]
    update_baselines: bool,
    /// Another ostler that trains at each run's side and whose speed is the baseline
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["update_baselines", "require_baseline", "baselines"])]
    against: Option<PathBuf>,
    /// Fail where there is no baseline for this class of machine
    #[arg(long)]
    require_baseline: bool,
    /// Skip cases that require what this machine lacks, instead of failing
    #[arg(long, value_enum, value_name = "WHAT")]
    allow_missing: Vec<MayMiss>,
    /// Runs at the same time; baselines are kept apart by it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
}

/// Requirements that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MayMiss {
    /// An NVIDIA GPU.
    Gpu,
}

/// Runs the cases; exit code 1 where one fails.
pub(crate) fn run(args: &RegressArgs) -> Result<i32, RunError> {
    let found = find(&args.dir, &args.only, args.short)?;
    if !found.without_short.is_empty() {
        errln!("without a [short] part, not run: {}", found.without_short.join(", "));
    }
    if args.list {
        for chosen in &found.chosen {
            let (case, plan) = (&chosen.case, &chosen.plan);
            let seeds = plan.seeds.len();
            let requires = match case.requires {
                Some(_) => ", requires a GPU",
                None => "",
            };
            outln!("{}  {}: {seeds} x {}{requires}", case.name, case.description, plan.amount);
        }
        return Ok(OK);
    }
    let out = match &args.out {
        Some(out) => out.clone(),
        None => {
            let now = jiff::Zoned::now().strftime("%Y-%m-%d_%H-%M-%S");
            PathBuf::from(format!("runs/regress/{now}"))
        }
    };
    prepare(&out)?;
    let baselines = args.baselines.clone();
    let options = Options {
        dir: args.dir.clone(),
        short: args.short,
        baselines: baselines.unwrap_or_else(|| args.dir.join("baselines.json")),
        update_baselines: args.update_baselines,
        against: args.against.clone(),
        require_baseline: args.require_baseline,
        allow_missing_gpu: args.allow_missing.contains(&MayMiss::Gpu),
        jobs: usize::from(args.jobs),
        out,
    };
    let stop = Stop::install().map_err(|e| RunError::Usage(format!("no signal handlers: {e}")))?;
    let suite = run_suite(&options, &found.chosen, &stop)?;
    let n = &suite.counts;
    let mut parts = vec![format!("{} passed", n.passed), format!("{} failed", n.failed)];
    for (number, what) in [(n.skipped, "SKIPPED"), (n.not_run, "NOT RUN")] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    outln!("{} of {} cases", parts.join(", "), n.cases);
    outln!("results     {}", options.out.join(report::SUMMARY).display());
    Ok(match (suite.interrupted, suite.passed()) {
        (true, _) => INTERRUPTED,
        (false, true) => OK,
        (false, false) => FAILED,
    })
}

/// A folder of its own: what an earlier start left could be taken for a result.
fn prepare(out: &Path) -> Result<(), RunError> {
    let file = |source| RunError::File {
        action: "make the folder",
        path: out.to_path_buf(),
        source,
        hint: "; --out names another one",
    };
    std::fs::create_dir_all(out).map_err(file)?;
    let mut entries = std::fs::read_dir(out).map_err(file)?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(RunError::Usage(format!(
            "{} is not empty: old results could be taken for new ones; remove it or name another folder with --out",
            out.display()
        ))),
    }
}
