//! Limits of copies, and how much a copy takes.

use super::super::element::{At, Attr, Element, Fault, Read};

/// Elements that are copied for one model, at most. Each takes some 1.5 kB until the model is
/// read, whatever few bytes asked for it.
const MAX_ELEMENTS: usize = 40_000;
/// Memory that they take as a tree, at most (bytes).
const MAX_COPIED: usize = 32 << 20;

/// Limits of copies, for all models of a file together.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Elements that may still be copied.
    elements: usize,
    /// Bytes that they may still take: names and values can be long.
    bytes: usize,
    /// Elements of sections that may still be looked at.
    looks: usize,
    /// The next keyframe slot.
    slot: u32,
}

impl Limits {
    pub(crate) fn new() -> Self {
        Self { elements: MAX_ELEMENTS, bytes: MAX_COPIED, looks: 2_000_000, slot: 0 }
    }

    /// Counts elements that are copied.
    pub(crate) fn take(&mut self, size: Size, at: At) -> Read<()> {
        self.elements = self.elements.checked_sub(size.elements).ok_or_else(|| {
            let why = format!(
                "copies of more than {MAX_ELEMENTS} elements in all; attach or replicate less"
            );
            Fault::new(at, why)
        })?;
        self.bytes = self.bytes.checked_sub(size.bytes).ok_or_else(|| {
            let why = format!(
                "copies of more than {} MiB of elements, names and values in all; attach or \
                 replicate less, or give shorter names",
                MAX_COPIED >> 20
            );
            Fault::new(at, why)
        })?;
        Ok(())
    }

    pub(crate) fn look(&mut self, elements: usize, at: At) -> Read<()> {
        self.looks = self.looks.checked_sub(elements).ok_or_else(|| {
            let why = "too many copies of too many actuators, sensors and the like; attach or \
                       replicate less";
            Fault::new(at, why)
        })?;
        Ok(())
    }

    /// A slot that nothing has.
    pub(crate) fn slot(&mut self) -> u32 {
        self.slot += 1;
        self.slot
    }
}

/// How much a copy takes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub elements: usize,
    /// In memory.
    pub bytes: usize,
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            elements: sum.elements.saturating_add(part.elements),
            bytes: sum.bytes.saturating_add(part.bytes),
        })
    }
}

impl Size {
    /// The same so many times.
    pub(crate) fn times(self, count: usize) -> Self {
        Self {
            elements: self.elements.saturating_mul(count),
            bytes: self.bytes.saturating_mul(count),
        }
    }
}

/// How often a name is kept while a model is read: in the tree, in sets of what is taken and
/// given, in the model.
const NAMED: usize = 6;

/// Cost of `e` with all in it.
pub(super) fn size(e: &Element) -> Size {
    let attrs = e.attrs.iter();
    let attrs = attrs.map(|a| {
        let times = if a.name == "name" { NAMED } else { 1 };
        size_of::<Attr>() + a.name.len() + times * a.value.len()
    });
    let own =
        Size { elements: 1, bytes: size_of::<Element>() + e.name.len() + attrs.sum::<usize>() };
    std::iter::once(own).chain(e.children.iter().map(size)).sum()
}
