//! What events do and cost, in words: for `ostler check`.

use super::{Drawn, Event, Events, Form};
use crate::config::{EventTime, Operation};
use ostler_model::{Field, Model, Varied};
use std::collections::BTreeSet;

/// Bytes of a number that every environment has.
const BYTES: usize = size_of::<f32>();

/// Name and meaning of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCost {
    /// What is drawn, and what becomes of it.
    pub draws: String,
    /// What an environment keeps for it, and what is worked out again.
    pub keeps: String,
}

impl Events {
    /// Of every event, in their order. `model` is that of `robot`.
    pub fn costs(&self, model: &Model) -> Vec<EventCost> {
        let cost = |e: &Event| EventCost { draws: draws(e), keeps: keeps(e, model) };
        self.events.iter().map(cost).collect()
    }

    /// What all of them cost together; none where nothing of the robot varies.
    pub fn total(&self, model: &Model) -> Option<String> {
        let (own, follow) = (model.nvaried(), model.nderived);
        if own == 0 {
            return None;
        }
        let bytes = BYTES * (own + follow);
        let behind = match follow {
            0 => String::new(),
            n => format!(" and {n} that follow from them"),
        };
        Some(format!(
            "together: {own} numbers of the robot{behind} for every environment, {bytes} bytes; all \
             others stay compiled into the kernel"
        ))
    }
}

/// The distribution, and the operation.
fn draws(e: &Event) -> String {
    let Some(first) = e.drawn.first() else {
        return "nothing".into();
    };
    let words: BTreeSet<u32> = e.drawn.iter().map(|d| d.word).collect();
    let how_many = match (words.len(), e.drawn.len()) {
        (1, 1) => String::new(),
        (1, _) => ", one draw for all".into(),
        (n, _) => format!(", {n} draws"),
    };
    let what = match e.form {
        Form::Pseudo => "a body that is stretched, sheared and moved".into(),
        _ if e.drawn.iter().all(|d| d.draw == first.draw) => first.draw.text(),
        _ => format!("{} and others for the other components", first.draw.text()),
    };
    let becomes = match (e.form, first.operation) {
        (Form::Pseudo, _) => "",
        (Form::Push, Operation::Add) => ", added to the velocity",
        (Form::Push, Operation::Scale) => " times the velocity",
        (_, Operation::Add) => ", added to the robot's own",
        (_, Operation::Scale) => " times the robot's own",
        (_, Operation::Abs) => "",
    };
    let acts = match e.hold {
        [0.0, _] => String::new(),
        [a, b] if a == b => format!("; acts for {a} control steps"),
        [a, b] => format!("; acts for {a} to {b} control steps"),
    };
    format!("{what}{becomes}{how_many}{acts}")
}

/// What is kept of the robot's numbers that an event draws.
fn touched(e: &Event, model: &Model) -> Vec<Varied> {
    let mut row = 0;
    let mut found = Vec::new();
    for varied in &model.varied {
        let rows = row..row + varied.field.width();
        row = rows.end;
        if e.drawn.iter().any(|d: &Drawn| rows.contains(&d.row)) {
            found.push(*varied);
        }
    }
    found
}

fn keeps(e: &Event, model: &Model) -> String {
    if e.form == Form::Push {
        return "keeps nothing: it changes velocities in the step in which it happens".into();
    }
    let touched = touched(e, model);
    let numbers: usize = touched.iter().map(|v| v.field.width()).sum();
    let any = |test: fn(Field) -> bool| touched.iter().any(|v| test(v.field));
    let follows = match (any(Field::is_inertia), any(Field::weighs)) {
        (true, _) => "inertias and the inverse weights of contacts, limits and friction follow",
        (_, true) => "the inverse weights of contacts, limits and friction follow",
        _ if any(|f| f == Field::Friction) && model.geoms.iter().any(|g| g.priority != 0) => {
            "each contact takes that of the geom of higher priority, else the larger one"
        }
        _ if any(|f| f == Field::Friction) => "each contact takes the larger of its two geoms'",
        _ => "nothing else follows from them",
    };
    let when = match (any(Field::weighs), e.when) {
        (false, _) => "",
        (_, EventTime::Startup) => ", worked out once",
        (_, EventTime::Reset) => ", worked out again in the first step of an episode",
        (_, EventTime::Interval) => ", worked out again after each draw",
    };
    let plural = if numbers == 1 { "number" } else { "numbers" };
    format!(
        "keeps {numbers} {plural}, {} bytes for each environment; {follows}{when}",
        BYTES * numbers
    )
}
