//! Draws in proportion to priorities.
//! Source: Schaul et al., "Prioritized experience replay", ICLR 2016.

use super::ReplayError;
use super::sum_tree::SumTree;
use super::window::Window;
use ostler_sim::memory::MemoryError;
use ostler_sim::rng::{Purpose, philox};

/// Added to priorities, so that none is never drawn.
const LEAST: f64 = 1e-6;

/// Priorities of the transitions in their places.
#[derive(Debug)]
pub struct Priorities {
    /// priority^alpha.
    tree: SumTree,
    alpha: f64,
    /// From the start of the run to its end.
    beta: (f64, f64),
    /// How far the run is, 0..1.
    progress: f64,
    /// The largest priority so far: that of new transitions.
    largest: f64,
    /// Values of leaves before they were set, since the last mark, and how many were set
    /// before that; `None` before the first mark.
    journal: Option<(u64, Vec<(u32, f64)>)>,
}

/// State to go back to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorityMark {
    at: u64,
    largest: f64,
    progress: f64,
}

impl Priorities {
    /// For so many places.
    ///
    /// # Errors
    /// No room.
    pub fn new(places: usize, alpha: f64, beta: f64, beta_end: f64) -> Result<Self, MemoryError> {
        Ok(Self {
            tree: SumTree::new(places)?,
            alpha,
            beta: (beta, beta_end),
            progress: 0.0,
            largest: 1.0,
            journal: None,
        })
    }

    /// How far the run is, 0..1.
    pub fn set_progress(&mut self, progress: f64) {
        self.progress = progress.clamp(0.0, 1.0);
    }

    /// Exponent of the importance weights now.
    pub fn beta(&self) -> f64 {
        self.beta.0 + (self.beta.1 - self.beta.0) * self.progress
    }

    /// The largest priority so far.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// priority^alpha by place.
    pub fn leaves(&self) -> &[f64] {
        self.tree.leaves()
    }

    fn set(&mut self, values: impl Iterator<Item = (usize, f64)>) {
        let journal = &mut self.journal;
        self.tree.set(values, |leaf, old| {
            if let Some((_, journal)) = journal {
                journal.push((leaf as u32, old));
            }
        });
    }

    /// The window moved from `old` to `new`: new transitions have the largest priority so
    /// far, those that fell out have none.
    pub fn moved(&mut self, old: std::ops::Range<u64>, new: std::ops::Range<u64>, places: u64) {
        let gone = old.start..new.start.min(old.end);
        let came = old.end.max(new.start)..new.end;
        let fresh = (self.largest + LEAST).powf(self.alpha);
        let place = |row: u64| (row % places) as usize;
        let values = gone.map(|row| (place(row), 0.0));
        // A new transition may lie where an older one fell out: the new one is written later,
        // and counts.
        self.set(values.chain(came.map(|row| (place(row), fresh))));
    }

    /// Forgets all priorities: those of a window are as new.
    pub fn start_anew(&mut self, window: std::ops::Range<u64>, places: u64) {
        self.largest = 1.0;
        self.set((0..places as usize).map(|place| (place, 0.0)));
        self.moved(window.start..window.start, window, places);
        self.journal = None;
    }

    /// Sets all priorities of a window, given as priority^alpha in its order.
    pub fn fill(&mut self, window: &Window, values: impl Iterator<Item = f64>, largest: f64) {
        let places = window.physical();
        self.set((0..places as usize).map(|place| (place, 0.0)));
        let values = window.range().zip(values);
        self.set(values.map(|(row, value)| ((row % places) as usize, value)));
        self.largest = largest;
        self.journal = None;
    }

    /// Draws: each of B equal shares of the whole gives one. Fills in the numbers, and the
    /// importance weights relative to the largest that there can be.
    ///
    /// # Errors
    /// Nothing is there.
    pub fn draw(
        &self,
        seed: u64,
        draw: u64,
        window: &Window,
        rows: &mut [u64],
        weights: &mut [f32],
    ) -> Result<(), ReplayError> {
        let (total, least, beta) = (self.tree.total(), self.tree.least(), self.beta());
        if window.len() == 0 || total <= 0.0 {
            return Err(ReplayError::Empty);
        }
        let share = total / rows.len() as f64;
        let (begin, places) = (window.begin(), window.physical());
        for (i, (row, weight)) in rows.iter_mut().zip(weights).enumerate() {
            let [a, b, ..] = philox(seed, 1, Purpose::ReplayDraw, draw, i as u32);
            // 53 bits in [0, 1).
            let unit = (u64::from(a) << 32 | u64::from(b)) >> 11;
            let unit = unit as f64 / (1_u64 << 53) as f64;
            let place = self.tree.find((i as f64 + unit) * share) as u64;
            let value = self.tree.get(place as usize);
            *row = begin + (place + places - begin % places) % places;
            // (N P(i))^-beta / max_j (N P(j))^-beta.
            *weight = (least / value).powf(beta) as f32;
        }
        Ok(())
    }

    /// Sets priorities of transitions; those that are gone, and values that are not finite,
    /// are left out. Returns how many were not finite.
    pub fn update(&mut self, window: &Window, rows: &[u64], priorities: &[f32]) -> usize {
        let places = window.physical();
        let usable = |p: &f32| p.is_finite() && *p >= 0.0;
        let alpha = self.alpha;
        let largest = priorities.iter().filter(|p| usable(p));
        let largest = largest.fold(self.largest, |m, &p| m.max(f64::from(p)));
        let values = rows.iter().zip(priorities);
        let values = values.filter(|(row, p)| window.contains(**row) && usable(p));
        let value = |p: f32| (f64::from(p) + LEAST).powf(alpha);
        let values: Vec<_> = values.map(|(r, &p)| ((r % places) as usize, value(p))).collect();
        self.set(values.into_iter());
        self.largest = largest;
        priorities.iter().filter(|p| !usable(p)).count()
    }

    /// From now on changes are recorded, so that they can be taken back.
    pub fn mark(&mut self) -> PriorityMark {
        let (before, journal) = self.journal.get_or_insert_default();
        *before += journal.len() as u64;
        journal.clear();
        PriorityMark { at: *before, largest: self.largest, progress: self.progress }
    }

    /// Whether it can go back to a mark: it is the last one, or one that was gone back to.
    pub fn knows(&self, mark: &PriorityMark) -> bool {
        self.journal.as_ref().is_some_and(|(at, _)| *at == mark.at)
    }

    /// Goes back to the last mark.
    pub fn rewind(&mut self, mark: &PriorityMark) {
        if let Some((_, journal)) = &mut self.journal {
            let undo = journal.drain(..).rev();
            self.tree.set(undo.map(|(leaf, v)| (leaf as usize, v)), |_, _| ());
        }
        (self.largest, self.progress) = (mark.largest, mark.progress);
    }
}

#[cfg(test)]
#[path = "priority_tests.rs"]
mod tests;
