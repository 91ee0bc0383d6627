//! Pages of `ostler play`: a recording in a file, or what happens now.

use super::target::Target;
use crate::view::page::{self, PageData};
use crate::view::scene::{Blob, SceneData};
use crate::view::{Feed, Recorder, ViewError};
use ostler_draw::{Geoms, Scene};
use ostler_run::log::errln;
use ostler_run::run::RunError;
use ostler_run::run::stage::Stage;
use ostler_sim::config::SimConfig;
use ostler_sim::model::looks::Looks;
use std::path::Path;

/// Appearance of the robot; read for pictures alone.
pub(crate) fn looks(target: &Target) -> Result<Looks, RunError> {
    target.robot("a picture")?;
    let (model, looks) = target.loaded.looks()?;
    if model.bodies == target.model.bodies {
        return Ok(looks);
    }
    errln!(
        "{} changed since it was read: only what collides is drawn",
        target.loaded.robot().display()
    );
    Ok(Looks::default())
}

/// A page in the making.
#[derive(Debug)]
pub(crate) struct Shot {
    title: String,
    about: Vec<(String, String)>,
    sim: SimConfig,
    scene: SceneData,
    blob: Blob,
    recorder: Option<Recorder>,
}

impl Shot {
    /// Of the robot of `target`.
    pub(crate) fn new(target: &Target, looks: &Looks, geoms: Geoms) -> Self {
        let mut blob = Blob::default();
        let mut scene = Scene::new(&target.model, looks, geoms);
        if !target.loaded.config.task.reference.is_empty() {
            scene = scene.with_ghost(target.model.bodies.len());
        }
        let scene = SceneData::new(&target.model, &scene, &mut blob);
        let mut about = vec![
            ("robot".to_string(), target.model.name.clone()),
            ("configuration".to_string(), target.name.clone()),
            ("engine".to_string(), target.backend.to_string()),
            ("seed".to_string(), target.seed.to_string()),
        ];
        if let Some(file) = &target.checkpoint {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            about.push(("checkpoint".into(), name.into_owned()));
        }
        about.push(("Ostler".into(), env!("CARGO_PKG_VERSION").into()));
        Self {
            title: target.name.clone(),
            about,
            sim: target.loaded.config.sim.clone(),
            scene,
            blob,
            recorder: None,
        }
    }

    /// Records environment `env`, up to `seconds` of simulated time.
    pub(crate) fn begin(&mut self, stage: &Stage, env: usize, fps: f64, seconds: f64) {
        let feed = self.feed(stage, env);
        self.recorder = Some(Recorder::new(stage, feed, env, fps, seconds));
    }

    /// The parts of a page whose rows come later, and who makes them.
    pub(crate) fn live(mut self, stage: &Stage, env: usize) -> (PageData, Blob, Feed) {
        let feed = self.feed(stage, env);
        let subtitle = format!("control step {} s", stage.env().spec().step_dt);
        let (data, blob) = self.data(&feed, subtitle, true);
        (data, blob, feed)
    }

    fn data(self, feed: &Feed, subtitle: String, live: bool) -> (PageData, Blob) {
        let data = PageData {
            title: self.title,
            subtitle,
            about: self.about,
            live,
            scene: self.scene,
            layout: feed.layout().clone(),
            episodes: Vec::new(),
            dt: 0.0,
            rows_at: 0,
            row_count: 0,
        };
        (data, self.blob)
    }

    fn feed(&mut self, stage: &Stage, env: usize) -> Feed {
        let feed = Feed::new(stage, &self.sim, env);
        if let Some(note) = &feed.note {
            errln!("{note}");
            self.scene.notes.push(note.clone());
        }
        feed
    }

    /// Before a step.
    pub(crate) fn before(&mut self, stage: &Stage) {
        if let Some(recorder) = &mut self.recorder {
            recorder.before(stage);
        }
    }

    /// After it; `more`: a next episode is wanted.
    pub(crate) fn after(&mut self, stage: &Stage, more: bool) -> Result<(), RunError> {
        match &mut self.recorder {
            Some(recorder) => recorder.after(stage, more).map_err(unwritten),
            None => Ok(()),
        }
    }

    /// Writes the page of what was recorded; returns a line about it.
    pub(crate) fn write(mut self, path: &Path) -> Result<String, RunError> {
        let Some(recorder) = self.recorder.take() else {
            return Err(unwritten(ViewError::Empty(path.to_path_buf())));
        };
        let (feed, recording) = recorder.finish();
        let episodes = match recording.episodes.len() {
            1 => "1 episode".to_string(),
            n => format!("{n} episodes"),
        };
        let (mut data, mut blob) = self.data(&feed, episodes.clone(), false);
        data.add(&recording, &mut blob);
        let bytes = page::write(path, &data, &blob).map_err(unwritten)?;
        Ok(format!(
            "{:11} {}   {:.1} MB: {} moments of {episodes}",
            "page",
            path.display(),
            bytes as f64 * 1e-6,
            data.row_count
        ))
    }
}

fn unwritten(e: ViewError) -> RunError {
    RunError::Usage(e.to_string())
}
