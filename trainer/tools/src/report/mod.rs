//! One page about one or several runs: `ostler report`.
//!
//! [`history`] reads what a run logged, [`configs`] says in what their configurations differ; the
//! page draws it (`report/page`) and, as those of [`crate::view`], asks for nothing.

pub mod configs;
pub mod history;
mod warnings;

use crate::view::page::{self, escaped, filled};
use data_encoding::BASE64;
use history::History;
use ostler_draw::{BESIDE, DrawError, room_for};
use ostler_run::log::curve::CurveError;
use ostler_run::log::curves::{Band, bands};
use ostler_sim::files;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("page/report.html");
const STYLE: &str = include_str!("page/report.css");
const SCRIPT: &str = include_str!("page/report.js");
/// Tags that are drawn as one curve a label, with a band over its seeds.
const BANDS: [&str; 5] = [
    "Eval/mean_reward",
    "Train/mean_reward",
    "Train/mean_episode_length",
    "Metrics/success",
    "Eval/Metrics/success",
];

/// What a run's history and its `meta.json` take, at the most, as numbers and as text (bytes).
const PIECES_OF_RUN: usize = 16 << 20;

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// What a run logged cannot be read, or holds nothing.
    #[error(transparent)]
    Metrics(#[from] CurveError),
    /// The page cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The animation cannot be drawn.
    #[error(transparent)]
    Draw(#[from] DrawError),
}

/// A run of a report.
#[derive(Debug, Clone)]
pub struct Run {
    /// Runs of one label are seeds of one thing.
    pub label: String,
    /// Its folder.
    pub folder: PathBuf,
}

/// A run as the page reads it.
#[derive(Debug, Serialize)]
struct RunData {
    label: String,
    folder: String,
    #[serde(flatten)]
    history: History,
    /// Its `meta.json`.
    meta: Value,
}

/// A curve over the seeds of a label.
#[derive(Debug, Serialize)]
struct BandData {
    tag: &'static str,
    /// Over `steps` or over `time`.
    over: &'static str,
    label: String,
    runs: usize,
    x: Vec<f64>,
    mean: Vec<f64>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct Data {
    title: String,
    made_by: String,
    runs: Vec<RunData>,
    bands: Vec<BandData>,
    configs: configs::Table,
    /// Animations, as data.
    pictures: Vec<(String, String)>,
    notes: Vec<String>,
}

/// Writes the report of `runs` into `file`. `pictures`: names and GIFs that it shows. Returns its
/// size in bytes.
///
/// # Errors
/// A run has no metrics, or the file cannot be written.
pub fn write(
    file: &Path,
    title: &str,
    runs: &[Run],
    pictures: &[(String, Vec<u8>)],
    mut notes: Vec<String>,
) -> Result<usize, ReportError> {
    // As text, in the page and on its way there.
    let pieces = runs.len().saturating_mul(PIECES_OF_RUN);
    let shown: usize = pictures.iter().map(|(_, gif)| gif.len()).sum();
    room_for(shown.saturating_mul(6).saturating_add(pieces + BESIDE))?;
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        let (history, more) = History::read(&run.folder)?;
        notes.extend(more);
        let said = warnings::read(&run.folder).into_iter();
        notes.extend(said.map(|said| format!("{} warned: {said}", run.folder.display())));
        all.push(RunData {
            label: run.label.clone(),
            folder: run.folder.display().to_string(),
            meta: meta(&run.folder),
            history,
        });
    }
    let folders: Vec<&Path> = runs.iter().map(|r| r.folder.as_path()).collect();
    let data = Data {
        title: title.into(),
        made_by: format!("Ostler {}", env!("CARGO_PKG_VERSION")),
        bands: curves(&all),
        configs: configs::Table::of(&folders),
        pictures: pictures.iter().map(|(n, gif)| (n.clone(), BASE64.encode(gif))).collect(),
        runs: all,
        notes,
    };
    let failed = |reason: String| ReportError::Write { path: file.to_path_buf(), reason };
    let json = serde_json::to_string(&data).map_err(|e| failed(e.to_string()))?;
    let text = filled(
        PAGE,
        &[
            ("@POLICY@", &page::policy(None)),
            ("@STYLE@", &format!("{}\n{STYLE}", page::style())),
            (
                "@DATA@",
                &format!(
                    "<script type=\"application/json\" id=\"data\">{}</script>\n{}",
                    escaped(&json),
                    page::licences()
                ),
            ),
            ("@VENDOR@", page::VENDOR),
            ("@SCRIPT@", SCRIPT),
        ],
    );
    files::output(file, text.as_bytes()).map_err(|e| failed(e.to_string()))?;
    Ok(text.len())
}

/// What a run says about itself; nothing where it cannot be read.
fn meta(folder: &Path) -> Value {
    let bytes = files::read(&folder.join("meta.json"), history::META);
    let read = bytes.ok().and_then(|b| serde_json::from_slice(&b).ok());
    read.unwrap_or(Value::Null)
}

/// Curves over the seeds of each label, as far as all of them have come.
fn curves(runs: &[RunData]) -> Vec<BandData> {
    let mut labels: Vec<&str> = Vec::new();
    for run in runs {
        if !labels.contains(&run.label.as_str()) {
            labels.push(&run.label);
        }
    }
    let mut all = Vec::new();
    for tag in BANDS {
        for over in ["steps", "time"] {
            for label in &labels {
                let own = runs.iter().filter(|r| r.label == *label);
                let series: Vec<_> = own.filter_map(|r| r.history.series(tag, over)).collect();
                let band: Vec<Band> = bands(&series);
                if band.is_empty() {
                    continue;
                }
                all.push(BandData {
                    tag,
                    over,
                    label: (*label).to_string(),
                    runs: series.len(),
                    x: band.iter().map(|p| p.x).collect(),
                    mean: band.iter().map(|p| p.ret.mean).collect(),
                    low: band.iter().map(|p| p.ret.low).collect(),
                    high: band.iter().map(|p| p.ret.high).collect(),
                });
            }
        }
    }
    all
}
