//! The element that an `<attach>` asks for, found in a tree.

use super::super::element::{At, Element, Fault, Read};
use super::keys;
use ostler_base::names::nearest;

/// The body or frame an `<attach>` names; `None`: all of a model.
pub(super) fn target(e: &Element) -> Read<Option<(&'static str, String)>> {
    // MuJoCo attaches its first body without a name.
    if let Some(attr) = e.attr("body").filter(|attr| attr.value.is_empty()) {
        let why = "body=\"\" names no body; give the body a name, or leave body out to attach all";
        return Err(Fault::new(attr.at, why));
    }
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

/// How deep elements are nested in `e`, itself included.
pub(super) fn height(e: &Element) -> usize {
    1 + e.children.iter().map(height).max().unwrap_or(0)
}

/// Numbers as an attribute, with all digits.
pub(super) fn words(values: &[f64]) -> String {
    let words: Vec<_> = values.iter().map(|x| format!("{x:e}")).collect();
    words.join(" ")
}

/// All elements `name` in `e`, in their order.
pub(super) fn find_all<'e>(e: &'e Element, name: &str, found: &mut Vec<&'e Element>) {
    for child in &e.children {
        if child.name == name {
            found.push(child);
        }
        find_all(child, name, found);
    }
}

/// `no <kind> called "name" ...; did you mean ...?`
pub(super) fn missing<'n>(kind: &str, name: &str, names: impl Iterator<Item = &'n str>) -> String {
    let guess = nearest(name, names);
    let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
    format!("no {kind} called \"{name}\"{guess}")
}
