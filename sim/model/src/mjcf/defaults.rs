//! `<default>` classes.
//!
//! A class holds one full set of values per kind of element: MJCF's own, overwritten by the
//! classes around it, overwritten by its own. An element starts from a copy of its class and
//! overwrites the values that it sets itself. Actuators keep apart what classes give to each kind
//! of them (`actuator/law.rs`).

use super::actuator::{self, ActuatorSpec};
use super::asset::MeshSpec;
use super::contact::PairSpec;
use super::element::{At, Element, Fault, Read};
use super::equality::EqualitySpec;
use super::geom::GeomSpec;
use super::joint::JointSpec;
use super::material::MaterialSpec;
use super::site::SiteSpec;
use super::tendon::TendonSpec;
use ostler_base::names::nearest;
use std::collections::BTreeMap;

/// Values that elements of one class start from.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    pub joint: JointSpec,
    pub geom: GeomSpec,
    pub mesh: MeshSpec,
    pub material: MaterialSpec,
    /// `<texture>` elements of the class and of those around it, which only pictures read.
    pub texture: Vec<Element>,
    pub site: SiteSpec,
    pub actuator: ActuatorSpec,
    pub pair: PairSpec,
    pub tendon: TendonSpec,
    pub equality: EqualitySpec,
}

/// All classes by name; `main` is there always.
pub(super) struct Classes {
    classes: BTreeMap<String, Class>,
}

/// The class of elements that name none.
pub(super) const MAIN: &str = "main";

impl Classes {
    pub(crate) fn new() -> Self {
        Self { classes: BTreeMap::from([(MAIN.to_string(), Class::default())]) }
    }

    /// Reads one top-level `<default>`.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        if let Some(attr) = e.attr("class").filter(|a| !a.value.is_empty() && a.value != MAIN) {
            return Err(Fault::new(
                attr.value_at(0),
                format!(
                    "the outermost class is called \"{MAIN}\" and cannot be renamed; put a \
                     <default class=\"{}\"> inside it",
                    attr.value
                ),
            ));
        }
        let main = self.classes.remove(MAIN).unwrap_or_default();
        self.read_class(e, MAIN, main)
    }

    fn read_class(&mut self, e: &Element, name: &str, mut class: Class) -> Read<()> {
        for child in &e.children {
            match child.name.as_str() {
                "joint" => class.joint.read(child)?,
                "geom" => class.geom.read(child)?,
                "mesh" => class.mesh.read(child)?,
                "material" => class.material.read(child)?,
                "texture" => class.texture.push(child.clone()),
                "site" => class.site.read(child)?,
                "pair" => class.pair.read(child)?,
                "tendon" => class.tendon.read(child)?,
                "equality" => class.equality.read(child)?,
                n if actuator::ELEMENTS.contains(&n) => class.actuator.read(child)?,
                _ => {}
            }
        }
        self.classes.insert(name.to_string(), class.clone());
        class.actuator.enclose();
        for child in e.children_named("default") {
            let name = child.required("class")?;
            if self.classes.contains_key(name) {
                let at = child.attr("class").map_or(child.at, |a| a.value_at(0));
                return Err(Fault::new(at, format!("there are two classes called \"{name}\"")));
            }
            self.read_class(child, name, class.clone())?;
        }
        Ok(())
    }

    /// Takes in another model's classes: their names and those of its assets get a
    /// prefix. A name that is taken stays what it is.
    pub(crate) fn adopt(&mut self, other: &Self, class_prefix: &str, prefix: &str) {
        for (name, class) in &other.classes {
            let mut class = class.clone();
            class.geom.prefix_assets(prefix);
            class.material.prefix_assets(prefix);
            class.mesh.prefix_assets(prefix);
            let name = format!("{class_prefix}{name}");
            self.classes.entry(name).or_insert(class);
        }
    }

    /// The class `name`, which was asked for at `at`.
    pub(crate) fn get(&self, name: &str, at: At) -> Read<&Class> {
        self.classes.get(name).ok_or_else(|| {
            let guess = nearest(name, self.classes.keys().map(String::as_str));
            let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
            Fault::new(at, format!("no default class called \"{name}\"{guess}"))
        })
    }

    /// The class an element names, else the one around it.
    pub(crate) fn of<'a>(&'a self, e: &'a Element, around: &'a str) -> Read<&'a Class> {
        match e.attr("class").filter(|a| !a.value.is_empty()) {
            Some(attr) => self.get(&attr.value, attr.value_at(0)),
            None => self.get(around, e.at),
        }
    }
}
