//! Random numbers that expressions of an episode's start draw.

use crate::draw::Draw;
use std::cell::RefCell;

/// Most random numbers that the expressions of a task draw for a start.
pub(super) const MOST: usize = 4096;

/// The moment of expressions that are evaluated where an episode begins.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Random numbers of the task's expressions.
    pub draws: &'a Draws,
    /// Whose text it is: draws of different texts differ.
    pub of: &'a str,
    /// Whether worlds are not yet where their episodes begin: an expression then reads what is
    /// drawn so far, and nothing that a step leaves.
    pub drawing: bool,
}

/// Random numbers that the expressions of a task draw where an episode begins. A draw is known
/// by where it is written: the same one is the same number, however often it is compiled.
#[derive(Debug, Clone, Default)]
pub struct Draws(RefCell<Vec<(String, Draw)>>);

impl Draws {
    /// How each is drawn.
    pub fn finish(self) -> Vec<Draw> {
        let all = self.0.into_inner();
        all.into_iter().map(|(_, draw)| draw).collect()
    }

    /// The numbers in the middle.
    pub fn middles(&self) -> Vec<f32> {
        self.0.borrow().iter().map(|(_, draw)| draw.middle()).collect()
    }

    /// The row of the draw that is known by `site`; none where there are too many.
    pub(super) fn row(&self, site: String, draw: Draw) -> Option<usize> {
        let mut all = self.0.borrow_mut();
        if let Some(row) = all.iter().position(|(known, _)| *known == site) {
            return Some(row);
        }
        if all.len() >= MOST {
            return None;
        }
        all.push((site, draw));
        Some(all.len() - 1)
    }
}
