//! Numbers of events that expressions read, found while these are compiled.

use super::check::{Checker, Comp, Value};
use super::dag::Source;
use super::{ExprError, Unit};
use ostler_base::names::nearest;
use std::cell::RefCell;
use std::ops::Range;

/// The numbers that an event draws for an environment.
#[derive(Debug, Clone)]
pub struct EventValue {
    name: String,
    units: Vec<Unit>,
}

impl EventValue {
    /// Of an event of this name, with the unit of each number.
    pub fn new(name: &str, units: Vec<Unit>) -> Self {
        Self { name: name.into(), units }
    }
}

/// Events of a task, and which of them expressions read, in the order in which they first do.
#[derive(Debug, Clone, Default)]
pub struct EventNumbers {
    events: Vec<EventValue>,
    read: RefCell<Vec<usize>>,
}

impl EventNumbers {
    /// Of these events; none is read yet.
    pub fn new(events: Vec<EventValue>) -> Self {
        Self { events, read: RefCell::default() }
    }

    /// For every event the row of its first number, if it is read.
    pub fn places(&self) -> Vec<Option<usize>> {
        let mut places = vec![None; self.events.len()];
        let mut next = 0;
        for &event in self.read.borrow().iter() {
            places[event] = Some(next);
            next += self.events[event].units.len();
        }
        places
    }

    /// The first row of an event, which is read from now on.
    fn row(&self, event: usize) -> usize {
        let mut read = self.read.borrow_mut();
        if !read.contains(&event) {
            read.push(event);
        }
        let before = read.iter().take_while(|e| **e != event);
        before.map(|e| self.events[*e].units.len()).sum()
    }
}

impl Checker<'_> {
    /// For messages.
    pub(super) fn events_help(&self) -> String {
        match &self.scope.events.events[..] {
            [] => "this task has no [[task.event]]".into(),
            all => {
                let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
                format!("write event.NAME; there are: {}", names.join(", "))
            }
        }
    }

    /// `event.name`: what the event drew.
    pub(super) fn event(&mut self, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
        let events = self.scope.events;
        let Some(index) = events.events.iter().position(|e| e.name == name) else {
            let error = ExprError::new(span.clone(), format!("no event called \"{name}\""));
            let near = nearest(name, events.events.iter().map(|e| e.name.as_str()));
            return Err(error.help(match near {
                Some(near) => format!("did you mean event.{near}?"),
                None => self.events_help(),
            }));
        };
        let units = &events.events[index].units;
        if units.is_empty() {
            let why = format!("the event \"{name}\" draws no numbers");
            return Err(ExprError::new(span.clone(), why).help("give it a range"));
        }
        let first = events.row(index);
        let each = units.iter().enumerate();
        let comps =
            each.map(|(i, &unit)| Comp { node: self.dag.load(Source::Shown, first + i), unit });
        Ok(Value::new(comps.collect()))
    }
}
