//! Parts of a URDF, and of the MJCF that they become.

use super::super::compiler::Compiler;
use super::super::element::{At, Attr, Element, Fault, Note, Read};
use crate::rotation::Pose;
use ostler_base::names::nearest;

/// Whether URDF has such an element somewhere: it is no misspelt one.
fn ours(name: &str) -> bool {
    let words = "link joint material inertial visual collision origin mass inertia geometry limit \
                 axis mimic dynamics parent child color texture";
    words.split_ascii_whitespace().any(|word| word == name)
}

/// Lists what in `e` is none of `known`, which is for other programs.
pub(super) fn list_others(e: &Element, known: &[&str], notes: &mut Vec<Note>) {
    if let Some(at) = e.stray {
        notes.push(Note {
            at,
            what: format!("text inside <{}>", e.name),
            why: "URDF has attributes only",
        });
    }
    let others = e.children.iter();
    for part in others.filter(|part| !known.contains(&part.name.as_str())) {
        let guess = nearest(&part.name, known.iter().copied()).filter(|_| !ours(&part.name));
        let guess = guess.map_or(String::new(), |g| format!(" (did you mean <{g}>?)"));
        notes.push(Note {
            at: part.at,
            what: format!("<{}> in <{}>{guess}", part.name, e.name),
            why: "for other programs: MuJoCo does not read it",
        });
    }
}

/// The pose in `<origin>`: angles are radians about fixed axes.
pub(super) fn origin(e: &Element) -> Read<Pose> {
    let mut pose = Pose::IDENTITY;
    if let Some(origin) = only(e, "origin")? {
        let mut rpy = [0.0; 3];
        origin.array("xyz", &mut pose.pos)?;
        origin.array("rpy", &mut rpy)?;
        let fixed = Compiler { degrees: false, eulerseq: *b"XYZ", ..Default::default() };
        pose.quat = fixed.euler(rpy);
    }
    Ok(pose)
}

/// Writes `<origin>` as `pos` and `quat`.
pub(super) fn place_attrs(e: &Element, to: &mut Element) -> Read<()> {
    let at = only(e, "origin")?.map_or(e.at, |o| o.at);
    place(origin(e)?, at, to);
    Ok(())
}

/// Writes a pose that the file gives at `at`.
pub(super) fn place(pose: Pose, at: At, to: &mut Element) {
    to.attrs.retain(|a| a.name != "pos" && a.name != "quat");
    to.attrs.push(attr("pos", &numbers(&pose.pos), at));
    to.attrs.push(attr("quat", &numbers(&pose.quat), at));
}

/// The child of that name; there cannot be two.
pub(super) fn only<'a>(e: &'a Element, name: &'a str) -> Read<Option<&'a Element>> {
    let mut found = e.children_named(name);
    let first = found.next();
    match found.next() {
        Some(second) => {
            let why = format!("a second <{name}> in <{}>", e.name);
            Err(Fault::new(second.at, why))
        }
        None => Ok(first),
    }
}

pub(super) fn made(name: &str, at: At) -> Element {
    Element::made(name, at)
}

pub(super) fn attr(name: &str, value: &str, at: At) -> Attr {
    Attr::made(name, value, at)
}

pub(super) fn renamed(a: &Attr, name: &str) -> Attr {
    let mut renamed = a.clone();
    renamed.name = name.into();
    renamed
}

/// With all digits.
pub(super) fn numbers(values: &[f64]) -> String {
    let words: Vec<_> = values.iter().map(|x| format!("{x:e}")).collect();
    words.join(" ")
}
