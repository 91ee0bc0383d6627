//! Rows of some episodes.

use super::ViewError;
use super::feed::Feed;
use ostler_run::run::stage::Stage;
use serde::Serialize;

/// Numbers of a recording at most, as bytes: what a browser can be asked to hold.
const MOST: usize = 256 << 20;

/// An episode of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Episode {
    /// Its first row.
    pub first: usize,
    /// Its rows.
    pub rows: usize,
    /// Its return and control steps, once it has ended.
    pub end: Option<(f32, u32)>,
    /// Why it ended: a cause of the task, or `broken`.
    pub cause: Option<String>,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Rows, side by side.
    pub rows: Vec<f32>,
    /// Numbers of a row.
    pub width: usize,
    /// Time between rows of an episode (s).
    pub dt: f64,
    /// Episodes, in order.
    pub episodes: Vec<Episode>,
}

/// Records one environment.
#[derive(Debug)]
pub struct Recorder {
    /// Makes the rows.
    pub feed: Feed,
    env: usize,
    stride: u32,
    most: usize,
    recording: Recording,
}

impl Recorder {
    /// Records environment `env` of `stage` with about `fps` rows a second, at most `seconds` of
    /// simulated time.
    pub fn new(stage: &Stage, mut feed: Feed, env: usize, fps: f64, seconds: f64) -> Self {
        let step_dt = stage.env().spec().step_dt;
        let stride = (1.0 / (fps * step_dt)).round().max(1.0);
        let most = (seconds / (stride * step_dt)).ceil() + 1.0;
        let width = feed.layout().width;
        let mut recording = Recording {
            width,
            dt: stride * step_dt,
            episodes: vec![Episode::default()],
            ..Recording::default()
        };
        feed.row(stage, &mut recording.rows);
        recording.episodes[0].rows = 1;
        Self { feed, env, stride: stride as u32, most: most.min(1e9) as usize, recording }
    }

    /// Whether there is room for more.
    fn full(&self) -> bool {
        self.recording.rows.len() / self.recording.width.max(1) >= self.most
    }

    /// Call before a step.
    pub fn before(&mut self, stage: &Stage) {
        if !self.full() {
            self.feed.before(stage);
        }
    }

    /// Call after a step. `more`: a next episode is wanted.
    ///
    /// # Errors
    /// It is more than a page holds.
    pub fn after(&mut self, stage: &Stage, more: bool) -> Result<(), ViewError> {
        let stats = stage.stats();
        let finished = stats.finished.iter().find(|f| f.env as usize == self.env);
        let broke = stage.broke(self.env);
        if self.full() {
            return Ok(());
        }
        let ended = finished.is_some() || broke;
        self.feed.after(stage, ended);
        let cause = || match broke {
            true => Some("broken".to_string()),
            false => {
                let by = stage.env().ended_by(self.env)?;
                stage.env().spec().termination_names.get(by).cloned()
            }
        };
        if ended {
            if let Some(episode) = self.recording.episodes.last_mut() {
                episode.end = finished.map(|f| (f.ret, f.length));
                episode.cause = cause();
            }
            if !more {
                self.most = 0;
                return Ok(());
            }
            self.recording.episodes.push(Episode {
                first: self.recording.rows.len() / self.recording.width.max(1),
                ..Episode::default()
            });
        }
        if self.feed.steps.is_multiple_of(self.stride) {
            let next = 4 * (self.recording.rows.len() + self.recording.width);
            if next > MOST {
                return Err(ViewError::Large { bytes: next, most: MOST });
            }
            self.feed.row(stage, &mut self.recording.rows);
            if let Some(episode) = self.recording.episodes.last_mut() {
                episode.rows += 1;
            }
        }
        Ok(())
    }

    /// What was recorded.
    pub fn finish(mut self) -> (Feed, Recording) {
        self.recording.episodes.retain(|e| e.rows > 0);
        (self.feed, self.recording)
    }
}
