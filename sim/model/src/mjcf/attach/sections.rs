//! The sections of a model whose elements refer to its tree.

use super::super::element::{At, Element, Note, Read};
use super::limits::{Limits, Size, size};
use super::names::{Names, Naming};
use super::refs::{self, Copied};

/// Lists of elements, in the order in which MuJoCo copies them.
const LISTS: [&str; 6] = ["pair", "exclude", "tendon", "equality", "actuator", "sensor"];

#[derive(Default)]
pub(super) struct Sections {
    lists: [Vec<Element>; LISTS.len()],
}

/// The section that holds a list.
fn section(list: &str) -> &str {
    match list {
        "pair" | "exclude" => "contact",
        other => other,
    }
}

/// Kind of the names a list gives.
fn kind(list: &str) -> Option<&'static str> {
    match list {
        "tendon" => Some("tendon"),
        "actuator" => Some("actuator"),
        _ => None,
    }
}

impl Sections {
    /// Takes the sections out of `root`.
    pub(crate) fn take(root: &mut Element, names: &mut Names) -> Self {
        let mut lists: [Vec<Element>; LISTS.len()] = Default::default();
        for (name, list) in LISTS.iter().zip(&mut lists) {
            for whole in root.children.iter_mut().filter(|c| c.name == section(name)) {
                let all = std::mem::take(&mut whole.children);
                let mine = |e: &Element| section(name) != "contact" || e.name == *name;
                let (mine, others) = all.into_iter().partition(mine);
                whole.children = others;
                list.extend(mine);
            }
            if let Some(kind) = kind(name) {
                list.iter().for_each(|e| names.add(kind, e.text("name")));
            }
        }
        root.children
            .retain(|c| !LISTS.iter().any(|l| section(l) == c.name) || !c.children.is_empty());
        Self { lists }
    }

    /// Puts the sections into `root`.
    pub(crate) fn put(self, root: &mut Element) {
        for (name, list) in LISTS.iter().zip(self.lists) {
            if let Some(first) = list.first() {
                let mut whole = Element::made(section(name), first.at);
                whole.children = list;
                root.children.push(whole);
            }
        }
    }

    /// Adds elements that refer to a copy: of `other`'s elements, or of its own.
    pub(crate) fn copy(
        &mut self,
        mut other: Option<&mut Self>,
        naming: &Naming,
        names: &mut Names,
        limits: &mut Limits,
        notes: &mut Vec<Note>,
        at: At,
    ) -> Read<()> {
        for (k, list) in LISTS.into_iter().enumerate() {
            let from = match &mut other {
                Some(other) => &mut other.lists[k],
                None => &mut self.lists[k],
            };
            // Each is copied before it is known whether it refers to the copy.
            let all: Size = from.iter().map(size).sum();
            limits.look(all.bytes / size_of::<Element>(), at)?;
            let mut copies = Vec::new();
            for e in from.iter_mut() {
                match refs::copied(list, e, naming, names) {
                    Copied::Yes(copy) => {
                        // A keyframe knows the first copy.
                        e.slot = None;
                        copies.push(copy);
                    }
                    Copied::Partly => notes.push(Note {
                        at: e.at,
                        what: format!("<{}> in <{}>", e.name, section(list)),
                        why: "a copy has not all that it refers to, and goes without it, as in \
                              MuJoCo",
                    }),
                    Copied::No => {}
                }
            }
            limits.take(copies.iter().map(size).sum(), at)?;
            if let Some(kind) = kind(list) {
                copies.iter().for_each(|e| names.add(kind, e.text("name")));
            }
            self.lists[k].extend(copies);
        }
        Ok(())
    }

    /// Elements in all lists.
    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Removes elements that refer to something that was there `before` and is no more.
    pub(crate) fn forget(&mut self, before: &Names, names: &mut Names) {
        for (list, elements) in LISTS.into_iter().zip(&mut self.lists) {
            elements.retain(|e| {
                let stays = refs::resolved(list, e, names) || !refs::resolved(list, e, before);
                if let Some(kind) = kind(list).filter(|_| !stays) {
                    names.remove(kind, e.text("name"));
                }
                stays
            });
        }
    }
}
