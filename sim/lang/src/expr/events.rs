//! Numbers of events that expressions read, found while these are compiled.

use super::unit::Unit;
use std::cell::RefCell;

/// The numbers that an event draws for an environment.
#[derive(Debug, Clone)]
pub struct EventValue {
    pub(super) name: String,
    pub(super) units: Vec<Unit>,
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
    pub(super) events: Vec<EventValue>,
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
    pub(super) fn row(&self, event: usize) -> usize {
        let mut read = self.read.borrow_mut();
        if !read.contains(&event) {
            read.push(event);
        }
        let before = read.iter().take_while(|e| **e != event);
        before.map(|e| self.events[*e].units.len()).sum()
    }
}
