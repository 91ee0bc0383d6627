//! Transitions in host memory, to read.

/// Places that can be read: place `p` holds words `p * stride..` of which the first `words`
/// are the transition.
#[derive(Debug, Clone, Copy)]
pub struct Ring<'a> {
    places: &'a [u32],
    stride: usize,
    words: usize,
    physical: u64,
}

impl<'a> Ring<'a> {
    /// Over memory of `physical` places.
    pub fn new(places: &'a [u32], stride: usize, words: usize, physical: u64) -> Self {
        debug_assert!(places.len() >= physical as usize * stride && words <= stride);
        Self { places, stride, words, physical }
    }

    /// The transition in the place of this number.
    #[inline]
    pub fn row(&self, row: u64) -> &'a [u32] {
        let start = (row % self.physical) as usize * self.stride;
        &self.places[start..start + self.words]
    }
}

/// Transitions in up to two pieces of host memory.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Those from number `at` on, where there are two.
    new: Option<(u64, Ring<'a>)>,
    /// All others.
    old: Ring<'a>,
}

impl<'a> Rows<'a> {
    /// In one piece.
    pub fn one(ring: Ring<'a>) -> Self {
        Self { new: None, old: ring }
    }

    /// In two: numbers from `at` on lie in `new`.
    pub fn two(old: Ring<'a>, at: u64, new: Ring<'a>) -> Self {
        Self { new: Some((at, new)), old }
    }

    /// The transition with this number, which must be in the window.
    #[inline]
    pub fn row(&self, row: u64) -> &'a [u32] {
        match &self.new {
            Some((at, new)) if row >= *at => new.row(row),
            _ => self.old.row(row),
        }
    }
}
