//! `ostler plot`: learning curves of several runs in one picture.

use clap::Args;
use ostler_run::log::curve::short;
use ostler_run::log::curves::{Curve, Outcome, ReturnOf, draw};
use ostler_run::log::outln;
use ostler_run::run::{METRICS, RunError};
use std::path::{Path, PathBuf};

/// Flags of `ostler plot`.
#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// Folders of runs (or runs/NAME: its newest), each as LABEL=RUN or RUN; runs of one
    /// label are seeds of one thing and drawn as their interquartile mean with its 95 %
    /// bootstrap interval. Without a label the run's name is taken
    #[arg(required = true, value_name = "[LABEL=]RUN")]
    runs: Vec<String>,
    /// The picture
    #[arg(long, value_name = "FILE.png", default_value = "curves.png")]
    png: PathBuf,
    /// Title above it
    #[arg(long, default_value = "")]
    title: String,
    /// Which returns are drawn [default: evaluation, where every run has some]
    #[arg(long, value_enum, value_name = "WHICH")]
    return_of: Option<ReturnOf>,
}

/// Draws and says where.
pub(crate) fn run(args: &PlotArgs) -> Result<i32, RunError> {
    let curves = args.runs.iter().map(|run| curve_of(run));
    let curves = curves.collect::<Result<Vec<_>, _>>()?;
    let drawn = draw(&curves, args.return_of, &args.png, &args.title)
        .map_err(|e| RunError::Usage(e.to_string()))?;
    let how = match drawn.of {
        ReturnOf::Evaluation => "evaluated",
        ReturnOf::Training => "in training",
    };
    for outcome in &drawn.outcomes {
        outln!("{}", line(outcome, how));
    }
    outln!("{}", args.png.display());
    Ok(0)
}

/// Result of the runs of a label, in a line.
fn line(outcome: &Outcome, how: &str) -> String {
    let Outcome { label, steps, ret } = outcome;
    let steps = short(*steps);
    match (ret.low, ret.high) {
        (Some(low), Some(high)) => format!(
            "{label}: {} runs, {how} at {steps} steps: interquartile mean of the returns {:.2}, 95 % bootstrap interval {low:.2} to {high:.2}{}",
            ret.n,
            ret.mean,
            match ret.n {
                ..10 => " (too narrow with so few runs)",
                _ => "",
            }
        ),
        _ => format!(
            "{label}: 1 run, {how} at {steps} steps: return {:.2}; runs with other seeds say how much that is chance",
            ret.mean
        ),
    }
}

/// The run that `[LABEL=]RUN` names.
///
/// # Errors
/// There is no run.
pub(super) fn curve_of(text: &str) -> Result<Curve, RunError> {
    let (label, path) = match text.split_once('=') {
        // A folder may have that sign in its name.
        Some((label, path)) if !Path::new(text).exists() => (Some(label), Path::new(path)),
        _ => (None, Path::new(text)),
    };
    let folders = [path.to_path_buf(), path.join("latest")];
    let Some(folder) = folders.iter().find(|d| d.join(METRICS).is_file()) else {
        let why = match path.exists() {
            true => format!("it has no {METRICS}"),
            false => "there is no such folder".into(),
        };
        let path = path.display();
        return Err(RunError::Usage(format!(
            "{path} is not a run: {why}; give a folder such as runs/NAME/latest"
        )));
    };
    let label = match label {
        Some(label) => label.to_string(),
        None => name_of(folder),
    };
    Ok(Curve { label, metrics: folder.join(METRICS) })
}

/// The run's name, or that of its folder where it has no readable configuration.
fn name_of(folder: &Path) -> String {
    let config = ostler_learn::config::load(&folder.join("config.toml"), &[]);
    config.map_or_else(|_| folder.display().to_string(), |loaded| loaded.config.name)
}
