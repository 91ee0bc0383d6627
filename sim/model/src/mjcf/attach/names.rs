//! Names that references can mean, and how copies are named.

use super::super::asset;
use super::super::defaults::MAIN;
use super::super::element::{Element, Read};
use std::collections::HashMap;

/// Kind of an element of the tree for references.
fn kind(e: &Element) -> Option<&'static str> {
    Some(match e.name.as_str() {
        "body" => "body",
        "frame" => "frame",
        "joint" | "freejoint" => "joint",
        "geom" => "geom",
        "site" => "site",
        "camera" => "camera",
        _ => return None,
    })
}

/// How often each name stands, by kind.
#[derive(Clone, Default)]
pub(super) struct Names {
    count: HashMap<(&'static str, String), usize>,
}

impl Names {
    pub(crate) fn has(&self, kind: &'static str, name: &str) -> bool {
        kind == "body" && name == "world" || self.count.contains_key(&(kind, name.to_string()))
    }

    pub(crate) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &str> {
        let all = self.count.keys().filter(move |(k, _)| *k == kind);
        all.map(|(_, name)| name.as_str())
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.count.len()
    }

    /// Adds one name.
    pub(crate) fn add(&mut self, kind: &'static str, name: Option<&str>) {
        if let Some(name) = name {
            *self.count.entry((kind, name.to_string())).or_default() += 1;
        }
    }

    /// Takes one name away.
    pub(crate) fn remove(&mut self, kind: &'static str, name: Option<&str>) {
        let Some(name) = name else { return };
        let key = (kind, name.to_string());
        if let Some(count) = self.count.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.count.remove(&key);
            }
        }
    }

    /// Adds the element of the tree alone.
    pub(crate) fn add_element(&mut self, e: &Element) {
        if let Some(kind) = kind(e) {
            self.add(kind, e.text("name"));
        }
    }

    /// Adds the element and all in it.
    pub(crate) fn add_tree(&mut self, e: &Element) {
        self.add_element(e);
        e.children.iter().for_each(|c| self.add_tree(c));
    }

    /// Takes the element and all in it away.
    pub(crate) fn remove_tree(&mut self, e: &Element) {
        if let Some(kind) = kind(e) {
            self.remove(kind, e.text("name"));
        }
        e.children.iter().for_each(|c| self.remove_tree(c));
    }
}

/// How the names of a copy follow from the originals.
pub(super) struct Naming {
    pub prefix: String,
    pub suffix: String,
    /// Prefix of classes of another model; `None` within one model, where classes and assets
    /// keep their names.
    pub classes: Option<String>,
}

impl Naming {
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}{}", self.prefix, self.suffix)
    }

    fn asset(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The other model's class `name`.
    pub(crate) fn class(&self, name: &str) -> String {
        let prefix = self.classes.as_deref().unwrap_or_default();
        format!("{prefix}{name}")
    }

    fn rename(e: &mut Element, attr: &str, to: impl Fn(&str) -> String) {
        if let Some(attr) = e.attrs.iter_mut().find(|a| a.name == attr)
            && !attr.value.is_empty()
        {
            attr.set(to(&attr.value));
        }
    }

    /// Renames an element of the tree and all in it.
    pub(crate) fn tree(&self, e: &mut Element) {
        Self::rename(e, "name", |n| self.name(n));
        if self.classes.is_some() {
            for attr in ["class", "childclass"] {
                Self::rename(e, attr, |n| self.class(n));
            }
            for attr in ["material", "mesh", "hfield"] {
                Self::rename(e, attr, |n| self.asset(n));
            }
        }
        e.children.iter_mut().for_each(|c| self.tree(c));
    }

    /// Gives an element outside the tree its name and, from another model, its class.
    pub(crate) fn listed(&self, e: &mut Element) {
        Self::rename(e, "name", |n| self.name(n));
        if self.classes.is_some() && !matches!(e.name.as_str(), "exclude") {
            self.own_class(e);
        }
    }

    fn own_class(&self, e: &mut Element) {
        let class = self.class(e.text("class").unwrap_or(MAIN));
        e.set("class", &class);
    }

    /// Renames the meshes, height fields, materials and textures of `<asset>`, and what these
    /// refer to.
    pub(crate) fn assets(&self, e: &mut Element) -> Read<()> {
        match (e.name.as_str(), asset::name_of(e)) {
            // A sky needs no name.
            ("material", _) | ("texture", Err(_)) => Self::rename(e, "name", |n| self.asset(n)),
            (_, name) => e.set("name", &self.asset(&name?)),
        }
        let layers = e.children.iter_mut().filter(|c| c.name == "layer");
        layers.for_each(|l| Self::rename(l, "texture", |n| self.asset(n)));
        Self::rename(e, "texture", |n| self.asset(n));
        Self::rename(e, "material", |n| self.asset(n));
        if e.name != "hfield" {
            self.own_class(e);
        }
        Ok(())
    }
}
