//! What the simulation has to say, kept for Python's `logging`.
//!
//! Worker threads speak, too: they only append to a list here, which the thread that calls from
//! Python takes away.

use pyo3::prelude::*;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// More than this between two looks are left out.
const MOST: usize = 1000;

static KEPT: Mutex<Vec<(u8, String)>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether there are messages.
pub fn any() -> bool {
    ANY.load(Relaxed)
}

/// Takes the messages away: pairs of a level of Python's `logging` and a text.
#[pyfunction]
pub fn messages() -> Vec<(u8, String)> {
    ANY.store(false, Relaxed);
    std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Begins to keep them, unless somebody else in this process listens.
pub fn collect() {
    let _ = tracing::subscriber::set_global_default(Keeper);
}

struct Keeper;

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        let mut text = Text::default();
        event.record(&mut text);
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            kept.push((level, text.0));
        }
        ANY.store(true, Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let blank = if self.0.is_empty() { "" } else { " " };
        // Writing into a text cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{blank}{value:?}"),
            name => write!(self.0, "{blank}{name}={value:?}"),
        };
    }
}
