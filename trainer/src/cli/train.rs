//! `ostler train`.

use super::{ConfigArgs, time};
use crate::log::progress::{duration, thousands};
use crate::log::{errln, outln};
use crate::run::error::{FAILED, INTERRUPTED, OK};
use crate::run::{Ended, Options, Run, RunError};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `ostler train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The run's folder [default: runs/NAME/DATE_TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run from its newest checkpoint; CONFIG may be left out
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    /// Start from the weights and normalisers of a run
    #[arg(long, value_name = "RUN")]
    init_from: Option<PathBuf>,
    /// Save and stop after this time: 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    max_time: Option<Duration>,
    /// No progress, no summary
    #[arg(long, short)]
    quiet: bool,
}

/// Trains and says where everything is.
pub fn run(args: &TrainArgs) -> Result<i32, RunError> {
    let (config, overrides) = args.config.split()?;
    let mut run = Run::start(&Options {
        config,
        overrides,
        out: args.out.clone(),
        resume: args.resume.clone(),
        init_from: args.init_from.clone(),
        max_time: args.max_time,
        quiet: args.quiet,
    })?;
    if !args.quiet {
        errln!("run {}", run.dir().path().display());
    }
    let ended = match run.learn() {
        Ok(ended) => ended,
        Err(e) => {
            tracing::info!("failed: {e}");
            errln!("error: {e}");
            let log = run.dir().path().join(crate::log::trace::LOG);
            errln!("the report is {}", log.display());
            return Ok(FAILED);
        }
    };
    if !args.quiet {
        summary(&run, ended);
    }
    Ok(if ended == Ended::Interrupted {
        INTERRUPTED
    } else {
        OK
    })
}

fn summary(run: &Run, ended: Ended) {
    let why = match ended {
        Ended::Finished => "all iterations done".to_string(),
        Ended::Reached(r) => format!("the mean return reached {r:.2}"),
        Ended::TimeUp => "the time is over".to_string(),
        Ended::Interrupted => "interrupted, saved".to_string(),
    };
    let dir = run.dir().path().display();
    outln!(
        "{why}: iteration {}, {} environment steps, {}",
        run.iteration(),
        thousands(run.env_steps() as f64),
        duration(run.wall_s())
    );
    let (mean_return, mean_length) = run.means();
    if mean_return.is_finite() {
        outln!("mean return {mean_return:.2}, mean length {mean_length:.0} (last 100 episodes)");
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
    outln!("watch it    ostler play {dir}");
    if matches!(ended, Ended::Interrupted | Ended::TimeUp) {
        outln!("go on       ostler train --resume {dir}");
    }
}
