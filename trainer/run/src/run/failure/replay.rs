//! A failure once more: the same environments, the same actions.

use super::{Broken, REPORT, Report, Start};
use crate::run::engine::{build_env, explained, kernel};
use crate::run::error::RunError;
use crate::run::evaluate::Rows;
use crate::run::load::robot;
use crate::run::store::dir::{CONFIG, FAILURES};
use ostler_learn::config::curriculum::with_values;
use ostler_learn::config::{Config, Loaded, load};
use ostler_sim::{BatchEnv, EpisodeStats, Model, files};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// A report longer than this is not one of ours (bytes).
const MOST: u64 = 16 << 20;

/// An environment that broke in a replay.
pub type Seen = Broken;

/// A report that is being replayed.
pub struct Replay {
    report: Report,
    loaded: Loaded,
    model: Arc<Model>,
    env: BatchEnv,
    start: Start,
    done: usize,
    rows: Rows,
    stats: EpisodeStats,
}

/// Why a folder cannot be replayed, with those that can.
fn not_a_report(folder: &Path) -> String {
    let shown = folder.display();
    let mut reports: Vec<String> = std::fs::read_dir(folder.join(FAILURES))
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().display().to_string())
        .collect();
    reports.sort();
    match (folder.join(CONFIG).is_file(), reports.as_slice()) {
        (_, [_, ..]) => {
            format!("{shown} is a run; the reports of its failures are\n  {}", reports.join("\n  "))
        }
        (true, []) => format!("{shown} is a run without a failure: there is nothing to replay"),
        (false, []) => format!(
            "{shown} is not the report of a failure: it has no {REPORT}; reports are in RUN/failure/"
        ),
    }
}

impl Replay {
    /// Reads a report and puts its environments where they were.
    ///
    /// # Errors
    /// It is no report, or one whose start was not kept; or this program cannot step
    /// what it holds.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let usage = |m: String| RunError::Usage(m);
        let path = folder.join(REPORT);
        let text = files::read_text(&path, MOST).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => usage(not_a_report(folder)),
            _ => RunError::file("read", &path)(e),
        })?;
        let report: Report = serde_json::from_str(&text)
            .map_err(|e| usage(format!("{} is damaged: {e}", path.display())))?;
        if report.breaks.is_empty() {
            return Err(usage(format!(
                "in {} no environment broke, so there is nothing to replay: {}",
                folder.display(),
                report.what
            )));
        }
        let start = Start::read(folder).map_err(|e| {
            let why = report.start.clone().unwrap_or_default();
            usage(format!("the iteration's start is not there ({why}): {e}"))
        })?;
        let mut loaded = load(&folder.join(CONFIG), &[])?;
        let model = robot(&loaded)?;
        kernel::settle(&mut loaded, &model, true, None).map_err(kernel::without_its_own)?;
        let config = &loaded.config;
        let [_, rows, width] = start.shape;
        let agents = config.agents();
        if !rows.is_multiple_of(agents) {
            return Err(usage(format!(
                "{} is of another task: {rows} actions a step, of {agents} agents",
                folder.display()
            )));
        }
        // A run never has more than it was made for.
        let (here, most) = (rows / agents, config.most_envs());
        if here > most {
            return Err(usage(format!(
                "{} is damaged: it is of {here} environments, its run had {most} at the most",
                folder.display()
            )));
        }
        let mut env = build_env(&loaded, config, &model, here, config.seed)?;
        if env.spec().action.width() != width {
            return Err(usage(format!(
                "{} is of another task: {width} actions, here {}",
                folder.display(),
                env.spec().action.width()
            )));
        }
        let unfit = |e: ostler_sim::physics::SnapshotError| {
            usage(format!("{} cannot be replayed: {e}", folder.display()))
        };
        env.restore(&start.environments).map_err(unfit)?;
        if !report.schedules.is_empty() {
            let values = report.schedules.iter().map(|(k, v)| (k.as_str(), *v));
            env.set_task(&with_values(&config.task, values)).map_err(|e| explained(&loaded, e))?;
        }
        let drills = config.fault.drills().unwrap_or_default();
        let faults = drills.into_iter().filter_map(|d| match d {
            ostler_learn::drill::Drill::Env(fault) => Some(fault),
            _ => None,
        });
        env.inject(faults.collect()).map_err(|e| explained(&loaded, e))?;
        env.begin_rollout();
        let rows = Rows::new(env.spec()).map_err(ostler_collector::CollectError::from)?;
        Ok(Self {
            report,
            loaded,
            model,
            env,
            start,
            done: 0,
            rows,
            stats: EpisodeStats::default(),
        })
    }

    /// The report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The robot.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The configuration in force then.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Control steps in all.
    pub fn steps(&self) -> usize {
        self.start.shape[0]
    }

    /// Control steps done.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Positions and velocities of one environment.
    pub fn state(&self, env: usize) -> (Vec<f32>, Vec<f32>) {
        let state = self.env.physics().state();
        let column = |b: &[f32]| b.iter().skip(env).step_by(state.num_envs).copied().collect();
        (column(&state.qpos), column(&state.qvel))
    }

    /// One control step; the environments that broke in it, or nothing at the end.
    ///
    /// # Errors
    /// Environments that are not in this process cannot go on.
    pub fn step(&mut self) -> Result<Option<Vec<Seen>>, RunError> {
        let [steps, rows, width] = self.start.shape;
        if self.done == steps {
            return Ok(None);
        }
        let all = rows * width;
        let actions = &self.start.actions[self.done * all..(self.done + 1) * all];
        self.rows.step(&mut self.env, actions)?;
        self.done += 1;
        self.env.take_stats(&mut self.stats);
        let names = &self.env.spec().cause_names;
        Ok(Some(Broken::all(&self.stats, names)))
    }
}
