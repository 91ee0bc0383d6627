//! All logs of a run behind one call. A log that cannot be written is reported once
//! and counted; it does not stop the run.

use super::metrics::{MetricsWriter, Record};
use super::tensorboard::{self, EventWriter};
use ostler_sim::files::named;
use std::path::Path;

/// The files that take one record per iteration.
#[derive(Debug)]
pub struct Sinks {
    metrics: MetricsWriter,
    events: Option<EventWriter>,
    /// Event files take nothing for the time being.
    paused: bool,
    /// Records that a file did not take.
    pub lost: u64,
}

impl Sinks {
    /// Opens the files in `dir`, dropping records after `iteration`.
    ///
    /// # Errors
    /// A sentence naming the file.
    pub fn open(dir: &Path, iteration: u64, tensorboard: bool) -> Result<Self, std::io::Error> {
        let path = dir.join(crate::run::METRICS);
        let metrics = MetricsWriter::open(&path, iteration).map_err(named(&path))?;
        let events = if tensorboard {
            let step = i64::try_from(iteration).unwrap_or(i64::MAX);
            let events = match iteration {
                0 => EventWriter::create(dir),
                _ => EventWriter::resume(dir, step),
            };
            Some(events.map_err(std::io::Error::other)?)
        } else {
            None
        };
        Ok(Self {
            metrics,
            events,
            paused: false,
            lost: 0,
        })
    }

    /// Whether event files, which take the most space, are left as they are.
    pub fn pause_events(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Writes one record everywhere.
    pub fn write(&mut self, record: &Record) {
        if let Err(e) = self.metrics.write(record) {
            self.failed(&format!("cannot write metrics: {e}"));
        }
        let step = i64::try_from(record.iteration).unwrap_or(i64::MAX);
        let scalars = record
            .scalars()
            .filter(|(_, v)| v.is_finite())
            .map(|(tag, v)| (tag, v as f32));
        if let Some(events) = self.events.as_mut().filter(|_| !self.paused)
            && let Err(e) = events.scalars(step, tensorboard::now(), scalars)
        {
            self.failed(&format!("cannot write TensorBoard events: {e}"));
        }
    }

    fn failed(&mut self, why: &str) {
        self.lost += 1;
        if self.lost == 1 {
            tracing::warn!(
                "{why}; the training goes on, further losses are counted and not reported"
            );
        }
    }
}
