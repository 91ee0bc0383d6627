//! `ostler report`: one page about runs.

use super::plot::curve_of;
use super::target::{Wish, open, robot};
use super::watch::looks;
use crate::report::{self, Run};
use clap::Args;
use ostler_draw::{Clip, Geoms, Poses, gif};
use ostler_run::log::{errln, outln};
use ostler_run::run::stage::Stage;
use ostler_run::run::{RunError, error::OK};
use ostler_sim::files;
use std::path::{Path, PathBuf};

/// Seconds, size and frames a second of the animation.
const PLAYED_S: f64 = 6.0;
const SIZE: (usize, usize) = (400, 300);
const FPS: f64 = 20.0;

/// Flags of `ostler report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folders of runs (or runs/NAME: its newest), each as LABEL=RUN or RUN; runs of one label are
    /// seeds of one thing. Without a label the run's name is taken
    #[arg(required = true, value_name = "[LABEL=]RUN")]
    runs: Vec<String>,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
    /// Its title [default: the labels]
    #[arg(long)]
    title: Option<String>,
    /// Without an animation of each label's first run
    #[arg(long)]
    no_animation: bool,
}

/// Writes the page and says where.
pub(crate) fn run(args: &ReportArgs) -> Result<i32, RunError> {
    let mut runs = Vec::new();
    for text in &args.runs {
        let curve = curve_of(text)?;
        let folder = curve.metrics.parent().unwrap_or(Path::new(".")).to_path_buf();
        runs.push(Run { label: curve.label, folder });
    }
    let mut labels: Vec<&str> = Vec::new();
    let (mut pictures, mut notes) = (Vec::new(), Vec::new());
    for run in &runs {
        if labels.contains(&run.label.as_str()) {
            continue;
        }
        labels.push(&run.label);
        if args.no_animation {
            continue;
        }
        match animation(&run.folder) {
            Ok(gif) => pictures.push((run.label.clone(), gif)),
            // What a run logged can be shown all the same.
            Err(e) => {
                let note = format!("no animation of {}: {e}", run.label);
                errln!("{note}");
                notes.push(note);
            }
        }
    }
    let title = args.title.clone().unwrap_or_else(|| labels.join(", "));
    let bytes = report::write(&args.html, &title, &runs, &pictures, notes)
        .map_err(|e| RunError::Usage(e.to_string()))?;
    outln!(
        "{}   {:.1} MB: {}",
        args.html.display(),
        bytes as f64 * 1e-6,
        match runs.len() {
            1 => "1 run".to_string(),
            n => format!("{n} runs"),
        }
    );
    Ok(OK)
}

/// The newest policy of a run, as a GIF.
fn animation(run: &Path) -> Result<Vec<u8>, RunError> {
    let wish = Wish { envs: Some(1), ..Wish::default() };
    let mut target = open(run, &wish)?;
    let looks = looks(&target)?;
    let mut stage = Stage::new(robot(target.env, "report")?)?;
    let step_dt = stage.env().spec().step_dt;
    let mut clip = Clip::of(stage.env(), &looks, Geoms::Auto);
    let (mut first, mut time) = (true, 0.0);
    for _ in 0..(PLAYED_S / step_dt).ceil().max(1.0) as u64 {
        let poses = Poses::of_env(stage.env(), 0);
        clip.push(poses, format!("{} {time:.2} s", target.name), first);
        let stats = stage.step(&mut target.agent)?;
        first = !stats.finished.is_empty() || stage.broke(0);
        time = if first { 0.0 } else { time + step_dt };
    }
    let usage = |e: &dyn std::fmt::Display| RunError::Usage(e.to_string());
    let folder = files::scratch("report").map_err(|e| usage(&e))?;
    let file = folder.path().join("animation.gif");
    gif::write(&clip, &file, SIZE.0, SIZE.1, FPS).map_err(|e| usage(&e))?;
    std::fs::read(&file).map_err(|e| usage(&e))
}
