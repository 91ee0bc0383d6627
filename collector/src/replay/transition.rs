//! Transitions: their fields, and which of them there are.
//!
//! A transition is a record of 32-bit words, as a [`Layout`] says. Transitions are numbered as
//! they come, for ever (`u64`). The buffer has `physical` places; number `r` lies in place
//! `r % physical`. The [`Window`] `begin..end`, of at most `capacity` numbers, can be drawn;
//! `physical - capacity` places more keep the transitions that fell out of the window last, so
//! that the buffer can go [back](Window::rewind).

use crate::error::ReplayError;
use ostler_sim::env::EnvSpec;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;
use tch::Kind;

/// Type of a field's numbers, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Float32.
    F32,
    /// Signed integer, 32 bits.
    I32,
}

impl FieldKind {
    /// libtorch's name of it in a batch.
    pub fn torch(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::I32 => Kind::Int,
        }
    }
}

/// One named part of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Unique in its layout.
    pub name: String,
    /// Type of its numbers.
    pub kind: FieldKind,
    /// So many of them, 1 or more. Those of width 1 are `[B]` in a batch, others
    /// `[B,width]`.
    pub width: usize,
}

impl Field {
    /// A field of floats.
    pub fn float(name: &str, width: usize) -> Self {
        Self { name: name.into(), kind: FieldKind::F32, width }
    }

    /// A single integer.
    pub fn integer(name: &str) -> Self {
        Self { name: name.into(), kind: FieldKind::I32, width: 1 }
    }
}

/// The fields of a transition, in the order in which they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    fields: Vec<Field>,
}

/// 32-bit words that a transition has more in a file: the segment, the number of
/// environments, and a checksum.
pub(crate) const TRAILER: usize = 3;

/// Transitions, and all other counts of a buffer, are fewer than this in any run: larger numbers
/// in a file are damage.
pub(crate) const MOST: u64 = 1 << 62;

/// Names of the fields of [`Layout::of`], and of the fields that a batch adds.
pub mod names {
    /// Observation of the policy `[O]`.
    pub const OBS: &str = "obs";
    /// Observation of the critic, where it has its own.
    pub const CRITIC_OBS: &str = "critic_obs";
    /// Action `[A]`.
    pub const ACTION: &str = "action";
    /// Reward; in a batch, the discounted sum of `n_step` of them.
    pub const REWARD: &str = "reward";
    /// 1 where the task ended.
    pub const TERMINATED: &str = "terminated";
    /// 1 where time ran out.
    pub const TRUNCATED: &str = "truncated";
    /// 0 where the environment broke: a learner gives such a transition no weight.
    pub const VALID: &str = "valid";
    /// Version of the policy that acted; int32.
    pub const VERSION: &str = "version";
    /// Observation after the step, before any reset.
    pub const NEXT_OBS: &str = "next_obs";
    /// The same of the critic.
    pub const NEXT_CRITIC_OBS: &str = "next_critic_obs";
    /// gamma^m, where m rewards were summed. The value of
    /// `next_obs` counts by this unless `terminated`.
    pub const DISCOUNT: &str = "discount";
    /// Importance weights `[B]`; ones unless draws are prioritised.
    pub const WEIGHTS: &str = "weights";
}

impl Layout {
    /// A layout of one's own.
    ///
    /// # Errors
    /// No fields, none with any numbers, or a name twice.
    pub fn new(fields: Vec<Field>) -> Result<Self, ReplayError> {
        let twice = |i: usize| fields[..i].iter().any(|f| f.name == fields[i].name);
        let wrong = (0..fields.len()).find(|&i| fields[i].width == 0 || twice(i));
        let why = match wrong {
            Some(i) => format!("{:?}, which is empty or there already", fields[i].name),
            None if fields.is_empty() => "none".into(),
            None => return Ok(Self { fields }),
        };
        Err(ReplayError::shape(
            "fields of a transition",
            "distinct names and widths of 1 or more",
            why,
        ))
    }

    /// That of the transitions of these environments.
    pub fn of(spec: &EnvSpec) -> Self {
        let float = Field::float;
        let critic = spec.critic;
        let mut fields = vec![float(names::OBS, spec.obs.policy)];
        fields.extend(critic.map(|o| float(names::CRITIC_OBS, o)));
        fields.push(float(names::ACTION, spec.action.width()));
        for name in [names::REWARD, names::TERMINATED, names::TRUNCATED, names::VALID] {
            fields.push(float(name, 1));
        }
        fields.push(Field::integer(names::VERSION));
        fields.push(float(names::NEXT_OBS, spec.obs.policy));
        fields.extend(critic.map(|o| float(names::NEXT_CRITIC_OBS, o)));
        // A task may observe nothing at all.
        fields.retain(|f| f.width > 0);
        Self { fields }
    }

    /// The fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// 32-bit words of a transition.
    pub fn words(&self) -> usize {
        self.fields.iter().map(|f| f.width).sum()
    }

    /// Bytes of a transition in memory; in a file there are 12 more.
    pub fn bytes_per_transition(&self) -> usize {
        4 * self.words()
    }

    /// Each field and its first word.
    pub fn places(&self) -> impl Iterator<Item = (&Field, usize)> {
        self.fields.iter().scan(0, |next, field| {
            let start = *next;
            *next += field.width;
            Some((field, start))
        })
    }

    /// A field and its first word.
    pub(super) fn find(&self, name: &str) -> Option<(&Field, usize)> {
        self.places().find(|(field, _)| field.name == name)
    }
}

/// Places that can be read: place `p` holds words `p * stride..` of which the first `words`
/// are the transition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring<'a> {
    places: &'a [u32],
    stride: usize,
    words: usize,
    physical: u64,
}

impl<'a> Ring<'a> {
    /// Over memory of `physical` places.
    pub(crate) fn new(places: &'a [u32], stride: usize, words: usize, physical: u64) -> Self {
        debug_assert!(places.len() >= physical as usize * stride && words <= stride);
        Self { places, stride, words, physical }
    }

    /// The transition in the place of this number.
    #[inline]
    pub(crate) fn row(&self, row: u64) -> &'a [u32] {
        let start = (row % self.physical) as usize * self.stride;
        &self.places[start..start + self.words]
    }
}

/// Transitions in up to two pieces of host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Those from number `at` on, where there are two.
    new: Option<(u64, Ring<'a>)>,
    /// All others.
    old: Ring<'a>,
}

impl<'a> Rows<'a> {
    /// In one piece.
    pub(crate) fn one(ring: Ring<'a>) -> Self {
        Self { new: None, old: ring }
    }

    /// In two: numbers from `at` on lie in `new`.
    pub(crate) fn two(old: Ring<'a>, at: u64, new: Ring<'a>) -> Self {
        Self { new: Some((at, new)), old }
    }

    /// The transition with this number, which must be in the window.
    #[inline]
    pub(crate) fn row(&self, row: u64) -> &'a [u32] {
        match &self.new {
            Some((at, new)) if row >= *at => new.row(row),
            _ => self.old.row(row),
        }
    }
}

/// Transitions that came step by step from the same `stride` environments: `r + stride`
/// follows `r` in time, as long as both are in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its first transition.
    pub start: u64,
    /// Environments.
    pub stride: u32,
    /// Counted since the buffer began.
    pub id: u32,
}

/// The transitions that can be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// Oldest transition that can be drawn.
    pub begin: u64,
    /// One behind the newest.
    pub end: u64,
    pub(super) cut: bool,
    pub(super) next_id: u32,
}

impl Window {
    /// An empty one. `physical` is at least `capacity`, which is at least 1.
    pub(crate) fn new(capacity: u64, physical: u64) -> Self {
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
    pub(crate) fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// The most that can.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Places.
    pub(crate) fn physical(&self) -> u64 {
        self.physical
    }

    /// Oldest that can be drawn.
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// One behind the newest.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// All that can be drawn.
    pub(crate) fn range(&self) -> Range<u64> {
        self.begin..self.end
    }

    /// Whether a number is in the window.
    pub(crate) fn contains(&self, row: u64) -> bool {
        (self.begin..self.end).contains(&row)
    }

    /// The transitions that come next do not go on from those before.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// The segment of the next transitions, from `stride` environments.
    pub(crate) fn segment_for(&self, stride: u32) -> Segment {
        match self.segments.back() {
            Some(&last) if !self.cut && last.stride == stride => last,
            _ => Segment { start: self.end, stride, id: self.next_id },
        }
    }

    /// Takes `count` transitions, already in their places, into the window.
    pub(crate) fn push(&mut self, count: u64, stride: u32) {
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
    pub(crate) fn overwritten(&mut self, head: u64) {
        self.head = self.head.max(head);
        let oldest = head.saturating_sub(self.physical);
        self.begin = self.begin.max(oldest).min(self.end);
    }

    /// Where it stands, to go back to.
    pub(crate) fn place(&self) -> Position {
        Position { begin: self.begin, end: self.end, cut: self.cut, next_id: self.next_id }
    }

    /// Forgets everything that came since then. Transitions that fell out of the window since
    /// then are in it again, unless its place was overwritten: returns how many transitions were
    /// lost so. `None`, and nothing has changed, where that place is not in the past.
    pub(crate) fn rewind(&mut self, to: &Position) -> Option<u64> {
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
    pub(crate) fn run_from(&self, row: u64, most: u64) -> (u64, u64) {
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
    pub(crate) fn segment_at(&self, row: u64) -> Option<Segment> {
        let behind = self.segments.partition_point(|s| s.start <= row);
        behind.checked_sub(1).and_then(|i| self.segments.get(i).copied())
    }

    /// Nothing before this is there.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// One behind the newest that was ever written.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// From now on there are no more than this many places.
    pub(crate) fn shrink(&mut self, places: u64) {
        self.physical = self.physical.min(places);
        self.capacity = self.capacity.min(places);
        self.begin = self.begin.max(self.end.saturating_sub(self.capacity));
    }

    /// A window over transitions that were found in their places `there`, each with (number,
    /// segment, stride): those from `begin` on can be drawn, earlier ones are there to go back
    /// to. Places up to that of `head` were overwritten.
    pub(crate) fn refill(
        &mut self,
        rows: impl Iterator<Item = (u64, u32, u32)>,
        there: Range<u64>,
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
#[path = "tests/window.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/layout.rs"]
mod layout_tests;
