//! Names of elements: unique per kind, and found by attributes.

use super::element::{Attr, Element, Fault, Read};
use ostler_base::names::nearest;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Names that are taken, per kind: MJCF wants them unique.
pub(super) struct Names {
    pub body: Taken,
    pub joint: Taken,
    pub geom: Taken,
    pub site: Taken,
    pub tendon: Taken,
    pub equality: Taken,
    pub actuator: Taken,
    pub key: Taken,
}

impl Names {
    pub(crate) fn new(root: &Element) -> Self {
        let mut given = BTreeSet::new();
        collect_names(root, &mut given);
        let given = Rc::new(given);
        let taken = || Taken { used: BTreeSet::new(), given: Rc::clone(&given) };
        let mut body = taken();
        body.used.insert("world".to_string());
        Self {
            body,
            joint: taken(),
            geom: taken(),
            site: taken(),
            tendon: taken(),
            equality: taken(),
            actuator: taken(),
            key: taken(),
        }
    }
}

fn collect_names(e: &Element, names: &mut BTreeSet<String>) {
    names.extend(e.text("name").map(str::to_string));
    e.children.iter().for_each(|c| collect_names(c, names));
}

pub(super) struct Taken {
    used: BTreeSet<String>,
    /// All names in the file: a made-up one must not be one of them.
    given: Rc<BTreeSet<String>>,
}

impl Taken {
    /// The element's name, or `<kind><number>`.
    pub(crate) fn take(&mut self, e: &Element, kind: &str, number: usize) -> Read<String> {
        let name = match e.text("name") {
            Some(name) => name.to_string(),
            None => {
                let mut made = format!("{kind}{number}");
                while self.given.contains(&made) {
                    made.push('_');
                }
                made
            }
        };
        if !self.used.insert(name.clone()) {
            let at = e.attr("name").map_or(e.at, |a| a.value_at(0));
            let why = format!("there are two <{}> called \"{name}\"", e.name);
            return Err(Fault::new(at, why));
        }
        Ok(name)
    }
}

/// Index of the name an attribute refers to.
pub(super) fn find<'a>(
    attr: &Attr,
    kind: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Read<usize> {
    names.clone().position(|n| n == attr.value).ok_or_else(|| {
        let guess = nearest(&attr.value, names);
        let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
        Fault::new(attr.value_at(0), format!("no {kind} called \"{}\"{guess}", attr.value))
    })
}
