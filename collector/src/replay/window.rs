//! The present transitions, and their order in time.
//!
//! Transitions are numbered as they come, for ever (`u64`). The buffer has `physical` places;
//! number `r` lies in place `r % physical`. The window `begin..end`, of at most `capacity`
//! numbers, can be drawn; `physical - capacity` places more keep the transitions that fell out
//! of the window last, so that the buffer can go [back](Window::rewind).

use std::collections::VecDeque;

/// Transitions that came step by step from the same `stride` environments: `r + stride`
/// follows `r` in time, as long as both are in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its first transition.
    pub start: u64,
    /// Environments.
    pub stride: u32,
    /// Counted since the buffer began.
    pub id: u32,
}

/// The transitions that can be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    capacity: u64,
    physical: u64,
    begin: u64,
    end: u64,
    /// One behind the newest that was ever written: places up to here are overwritten.
    head: u64,
    /// Transitions before this are damaged, or were never there.
    floor: u64,
    /// In order; the first may begin before the window.
    segments: VecDeque<Segment>,
    /// The next transitions begin a new segment.
    cut: bool,
    next_id: u32,
}

/// Where a window stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Oldest transition that can be drawn.
    pub begin: u64,
    /// One behind the newest.
    pub end: u64,
    pub(super) cut: bool,
    pub(super) next_id: u32,
}

impl Window {
    /// An empty one. `physical` is at least `capacity`, which is at least 1.
    pub fn new(capacity: u64, physical: u64) -> Self {
        Self {
            capacity,
            physical: physical.max(capacity),
            begin: 0,
            end: 0,
            head: 0,
            floor: 0,
            segments: VecDeque::new(),
            cut: true,
            next_id: 0,
        }
    }

    /// Transitions that can be drawn.
    pub fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// The most that can.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Places.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Oldest that can be drawn.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// One behind the newest.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// All that can be drawn.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.begin..self.end
    }

    /// Whether a number is in the window.
    pub fn contains(&self, row: u64) -> bool {
        (self.begin..self.end).contains(&row)
    }

    /// The transitions that come next do not go on from those before.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// The segment of the next transitions, from `stride` environments.
    pub fn segment_for(&self, stride: u32) -> Segment {
        match self.segments.back() {
            Some(&last) if !self.cut && last.stride == stride => last,
            _ => Segment { start: self.end, stride, id: self.next_id },
        }
    }

    /// Takes `count` transitions, already in their places, into the window.
    pub fn push(&mut self, count: u64, stride: u32) {
        if count == 0 {
            return;
        }
        let segment = self.segment_for(stride);
        if self.segments.back() != Some(&segment) {
            self.segments.push_back(segment);
            self.next_id = segment.id.wrapping_add(1);
        }
        self.cut = false;
        self.end += count;
        self.head = self.head.max(self.end);
        self.begin = self.begin.max(self.end.saturating_sub(self.capacity));
        // Segments are kept as long as the window may go back to them.
        let oldest = self.head.saturating_sub(self.physical).min(self.begin);
        while self.segments.get(1).is_some_and(|s| s.start <= oldest) {
            self.segments.pop_front();
        }
    }

    /// Notes that places up to that of transition `head - 1` were overwritten, without the
    /// transitions being there: their old content is lost.
    pub fn overwritten(&mut self, head: u64) {
        self.head = self.head.max(head);
        let oldest = head.saturating_sub(self.physical);
        self.begin = self.begin.max(oldest).min(self.end);
    }

    /// Where it stands, to go back to.
    pub fn place(&self) -> Position {
        Position { begin: self.begin, end: self.end, cut: self.cut, next_id: self.next_id }
    }

    /// Forgets everything that came since then. Transitions that fell out of the window since
    /// then are in it again, unless its place was overwritten: returns how many transitions were
    /// lost so. `None`, and nothing has changed, where that place is not in the past.
    pub fn rewind(&mut self, to: &Position) -> Option<u64> {
        if to.end > self.end || to.begin > to.end {
            return None;
        }
        let oldest = self.head.saturating_sub(self.physical).max(self.floor);
        self.begin = to.begin.max(oldest.min(to.end));
        self.end = to.end;
        self.cut = to.cut;
        self.next_id = to.next_id;
        while self.segments.back().is_some_and(|s| s.start >= self.end) {
            self.segments.pop_back();
        }
        Some(self.begin - to.begin)
    }

    /// How many environments there were at transition `row`, and how many transitions
    /// follow each other from there (`row` itself included), at most `most`.
    pub fn run_from(&self, row: u64, most: u64) -> (u64, u64) {
        let behind = self.segments.partition_point(|s| s.start <= row);
        let Some(segment) = self.segment_at(row) else {
            return (1, 1);
        };
        let end = self.segments.get(behind).map_or(self.end, |s| s.start);
        let stride = u64::from(segment.stride).max(1);
        let steps = (end.min(self.end).saturating_sub(row + 1)) / stride + 1;
        (stride, steps.min(most).max(1))
    }

    /// The segment that a transition is in.
    pub fn segment_at(&self, row: u64) -> Option<Segment> {
        let behind = self.segments.partition_point(|s| s.start <= row);
        behind.checked_sub(1).and_then(|i| self.segments.get(i).copied())
    }

    /// Nothing before this is there.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// One behind the newest that was ever written.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// From now on there are no more than this many places.
    pub fn shrink(&mut self, places: u64) {
        self.physical = self.physical.min(places);
        self.capacity = self.capacity.min(places);
        self.begin = self.begin.max(self.end.saturating_sub(self.capacity));
    }

    /// A window over transitions that were found in their places `there`, each with (number,
    /// segment, stride): those from `begin` on can be drawn, earlier ones are there to go back
    /// to. Places up to that of `head` were overwritten.
    pub fn refill(
        &mut self,
        rows: impl Iterator<Item = (u64, u32, u32)>,
        there: std::ops::Range<u64>,
        begin: u64,
        head: u64,
    ) {
        self.segments.clear();
        for (start, id, stride) in rows {
            if self.segments.back().is_none_or(|s| s.id != id) {
                self.segments.push_back(Segment { start, stride, id });
                self.next_id = id.wrapping_add(1);
            }
        }
        self.end = there.end;
        self.floor = there.start;
        self.begin =
            begin.clamp(there.start, there.end).max(there.end.saturating_sub(self.capacity));
        self.head = head.max(there.end);
        self.cut = true;
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
