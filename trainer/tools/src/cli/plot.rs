//! `ostler plot`: learning curves of several runs in one picture.

use clap::Args;
use ostler_run::log::curve::short;
use ostler_run::log::curves::{Curve, Outcome, ReturnOf, draw};
use ostler_run::log::{errln, outln};
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
    if args.png.extension().is_none_or(|e| !e.eq_ignore_ascii_case("png")) {
        let png = args.png.display();
        let why = format!("--png {png}: the picture is a PNG, so its name ends with .png");
        return Err(RunError::Usage(why));
    }
    let curves = args.runs.iter().map(|run| curve_of(run));
    let curves = curves.collect::<Result<Vec<_>, _>>()?;
    once_each(&curves)?;
    one_task_each(&curves);
    let drawn = draw(&curves, args.return_of, &args.png, &args.title)
        .map_err(|e| RunError::Usage(e.to_string()))?;
    let how = match drawn.of {
        ReturnOf::Evaluation => "evaluated",
        ReturnOf::Training => "in training",
    };
    for outcome in &drawn.outcomes {
        outln!("{}", line(outcome, how));
    }
    for (metrics, line) in &drawn.torn {
        errln!("warning: {}: line {line} cannot be read and is left out", metrics.display());
    }
    outln!("{}", args.png.display());
    Ok(0)
}

/// Refuses a run that is given twice, which would count as two seeds.
fn once_each(curves: &[Curve]) -> Result<(), RunError> {
    let mut seen: Vec<(PathBuf, &Curve)> = Vec::new();
    for curve in curves {
        let place = curve.metrics.canonicalize().unwrap_or_else(|_| curve.metrics.clone());
        let label = &curve.label;
        if seen.iter().any(|(own, before)| *own == place && before.label == *label) {
            let run = curve.metrics.parent().unwrap_or(&curve.metrics).display();
            return Err(RunError::Usage(format!(
                "{run} is given twice as {label}: runs of one label are different seeds"
            )));
        }
        seen.push((place, curve));
    }
    Ok(())
}

/// Says where the runs of a label were trained on different tasks.
fn one_task_each(curves: &[Curve]) {
    let task = |curve: &Curve| {
        let config = curve.metrics.with_file_name("config.toml");
        let loaded = ostler_learn::config::load(&config, &[]).ok()?;
        toml::to_string(&loaded.config.task).ok()
    };
    let mut first: Vec<(&str, Option<String>, bool)> = Vec::new();
    for curve in curves {
        let own = task(curve);
        match first.iter_mut().find(|(label, ..)| *label == curve.label) {
            None => first.push((&curve.label, own, false)),
            Some((_, before, said)) => {
                let differ = before.is_some() && own.is_some() && *before != own;
                if differ && !*said {
                    errln!(
                        "warning: the runs of {} have different tasks, so their mean says little",
                        curve.label
                    );
                    *said = true;
                }
            }
        }
    }
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
    if path.as_os_str().is_empty() {
        return Err(RunError::Usage(format!("\"{text}\" names no run: [LABEL=]runs/NAME/latest")));
    }
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
