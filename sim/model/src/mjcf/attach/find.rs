//! The element that an `<attach>` asks for, found in a tree.

use super::super::source::{At, Attr, Element, Fault, Read};
use super::keys;

/// The body or frame an `<attach>` names; `None`: all of a model.
pub(super) fn target(e: &Element) -> Read<Option<(&'static str, String)>> {
    match (e.text("body"), e.text("frame")) {
        (Some(_), Some(_)) => {
            let why = "body and frame are both given; keep one";
            Err(Fault::new(e.at, why))
        }
        (Some(body), None) => Ok(Some(("body", body.to_string()))),
        (None, Some(frame)) => Ok(Some(("frame", frame.to_string()))),
        (None, None) => Ok(None),
    }
}

/// Where it names that.
pub(super) fn at_target(e: &Element) -> At {
    let attr = e.attr("body").or(e.attr("frame"));
    attr.map_or(e.at, |a| a.value_at(0))
}

/// The content of the world; keyframes know the copy.
pub(super) fn everything(root: &mut Element) -> Vec<Element> {
    let mut all = Vec::new();
    for section in root.children.iter_mut().filter(|c| c.name == "worldbody") {
        all.extend(section.children.iter().cloned());
        keys::forget(section);
    }
    all
}

/// The body or frame `name` in `e`, and the class around it.
pub(super) fn find<'e>(
    e: &'e mut Element,
    kind: &str,
    name: &str,
    class: &str,
) -> Option<(&'e mut Element, String)> {
    for child in &mut e.children {
        if child.name == kind && child.text("name") == Some(name) {
            return Some((child, class.to_string()));
        }
        let inner = child.text("childclass").unwrap_or(class).to_string();
        if let Some(found) = find(child, kind, name, &inner) {
            return Some(found);
        }
    }
    None
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

/// How deep elements are nested in `e`, itself included.
pub(super) fn height(e: &Element) -> usize {
    1 + e.children.iter().map(height).max().unwrap_or(0)
}

/// Numbers as an attribute, with all digits.
pub(super) fn words(values: &[f64]) -> String {
    let words: Vec<_> = values.iter().map(|x| format!("{x:e}")).collect();
    words.join(" ")
}
