//! All logs of a run behind one call. A log that cannot be written is reported once
//! and counted; it does not stop the run.

use super::metrics::{MetricsWriter, Record};
use super::tensorboard::{self, EventWriter};
use super::trace;
use super::wandb::Wandb;
use ostler_sim::files::named;
use std::path::Path;

/// The files that take one record per iteration.
#[derive(Debug)]
pub struct Sinks {
    metrics: MetricsWriter,
    events: Option<EventWriter>,
    wandb: Option<Wandb>,
    /// Event files and Weights & Biases take nothing for the time being.
    paused: bool,
    /// Records that event files did not take.
    lost: u64,
    /// It was said that a file takes none.
    said: bool,
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
        Ok(Self { metrics, events, wandb: None, paused: false, lost: 0, said: false })
    }

    /// Records go to Weights & Biases from now on, too.
    pub fn attach(&mut self, wandb: Wandb) {
        self.wandb = Some(wandb);
    }

    /// The run has ended well: writes lines that still wait, if there is space by now, and waits
    /// for Weights & Biases, for as long as that may take.
    pub fn finish(&mut self) {
        // What is still not written is counted (`lost`).
        let _ = self.metrics.write_waiting();
        if let Some(mut wandb) = self.wandb.take() {
            wandb.finish(0);
        }
    }

    /// Whether event files, which take the most space, are left as they are, and those of
    /// Weights & Biases.
    pub fn pause_events(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Files that were deleted while the run goes on are made again.
    pub fn restore(&mut self) {
        let metrics = Some(self.metrics.restore());
        let events = self.events.as_mut().map(EventWriter::restore);
        let log = Some(trace::restore());
        let all =
            [("metrics.jsonl", metrics), ("the TensorBoard events", events), ("log.txt", log)];
        for (name, restored) in all {
            match restored {
                Some(Ok(true)) => {
                    tracing::warn!("{name} vanished from the run's folder: made again")
                }
                Some(Err(e)) => {
                    self.failed(&format!("{name} vanished and cannot be made again: {e}"))
                }
                _ => {}
            }
        }
    }

    /// Writes one record everywhere.
    pub fn write(&mut self, record: &Record) {
        if let Err(e) = self.metrics.write(record) {
            self.failed(&format!("cannot write metrics: {e}"));
        }
        self.show(record);
    }

    /// Adds numbers to the last record.
    pub fn amend(&mut self, record: &Record) {
        if let Err(e) = self.metrics.amend(record) {
            self.failed(&format!("cannot write metrics: {e}"));
        }
        self.show(record);
    }

    /// Writes the line of the metrics that was written last elsewhere, too.
    fn show(&mut self, record: &Record) {
        if let Some(wandb) = self.wandb.as_mut().filter(|_| !self.paused) {
            wandb.write(self.metrics.line());
        }
        let step = i64::try_from(record.iteration).unwrap_or(i64::MAX);
        let scalars =
            record.scalars().filter(|(_, v)| v.is_finite()).map(|(tag, v)| (tag, v as f32));
        if let Some(events) = self.events.as_mut().filter(|_| !self.paused)
            && let Err(e) = events.scalars(step, tensorboard::now(), scalars)
        {
            self.lost += 1;
            self.failed(&format!("cannot write TensorBoard events: {e}"));
        }
    }

    /// Records that a file does not have: those of the metrics may come later.
    pub fn lost(&self) -> u64 {
        self.lost + self.metrics.missing()
    }

    fn failed(&mut self, why: &str) {
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!(
                "{why}; the training goes on, metrics wait in memory for space (1 MiB of them), \
                 and what is not written is counted (Guard/lost_log_records)"
            );
        }
    }
}
