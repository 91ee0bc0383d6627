//! References of elements of the sections, and the same in copies.

use super::super::element::Element;
use super::names::{Names, Naming};

/// References that a copy has to find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// All that is referred to has to be in the copy.
    All,
    /// One thing has to be in the copy; the others may be outside.
    Any,
}

/// Result of copying an element.
pub(super) enum Copied {
    /// It goes with the copy.
    Yes(Element),
    /// It does not refer to the copied part.
    No,
    /// It refers to the copied part and to others, and MuJoCo leaves it out.
    Partly,
}

/// Attributes of one element, or of one point on a tendon's path, that belong together.
type Group = Vec<(&'static str, &'static str)>;

fn given(e: &Element, table: &[(&'static str, &'static str)]) -> Group {
    let is_given = |(_, attr): &&(&str, &str)| e.text(attr).is_some();
    table.iter().filter(is_given).copied().collect()
}

const PAIR: &[(&str, &str)] = &[("geom", "geom1"), ("geom", "geom2")];
const EXCLUDE: &[(&str, &str)] = &[("body", "body1"), ("body", "body2")];
const EQUALITY: &[(&str, &str)] = &[
    ("body", "body1"),
    ("body", "body2"),
    ("site", "site1"),
    ("site", "site2"),
    ("joint", "joint1"),
    ("joint", "joint2"),
    ("tendon", "tendon1"),
    ("tendon", "tendon2"),
];
const ACTUATOR: &[(&str, &str)] = &[
    ("joint", "joint"),
    ("joint", "jointinparent"),
    ("tendon", "tendon"),
    ("site", "site"),
    ("site", "refsite"),
    ("site", "cranksite"),
    ("site", "slidersite"),
    ("body", "body"),
];
const SENSOR: &[(&str, &str)] = &[
    ("joint", "joint"),
    ("tendon", "tendon"),
    ("actuator", "actuator"),
    ("site", "site"),
    ("camera", "camera"),
    ("body", "body"),
    ("body", "body1"),
    ("body", "body2"),
    ("body", "subtree1"),
    ("body", "subtree2"),
    ("geom", "geom"),
    ("geom", "geom1"),
    ("geom", "geom2"),
];
const PATH: &[(&str, &str)] =
    &[("joint", "joint"), ("site", "site"), ("geom", "geom"), ("site", "sidesite")];

/// Target of a sensor's `objname` or `refname`.
fn frame(e: &Element, kind: &str) -> &'static str {
    match e.text(kind) {
        Some("body" | "xbody") => "body",
        Some("geom") => "geom",
        Some("site") => "site",
        Some("camera") => "camera",
        _ => "unknown",
    }
}

/// References of an element of `list`: with the rule, one group or, for tendons, the
/// elements of the path.
fn groups(list: &str, e: &Element) -> (Rule, Vec<Group>) {
    let singles = |group: Group| group.into_iter().map(|r| vec![r]).collect();
    match list {
        "pair" => (Rule::Any, singles(given(e, PAIR))),
        "exclude" => (Rule::Any, singles(given(e, EXCLUDE))),
        "equality" => (Rule::All, singles(given(e, EQUALITY))),
        "actuator" => (Rule::All, singles(given(e, ACTUATOR))),
        _ => {
            let mut group = given(e, SENSOR);
            for (kind, name) in [("objtype", "objname"), ("reftype", "refname")] {
                if e.text(name).is_some() {
                    group.push((frame(e, kind), name));
                }
            }
            (Rule::Any, singles(group))
        }
    }
}

/// Renames a group's references in `e` if the copy has them all.
fn renamed(e: &mut Element, group: &Group, naming: &Naming, names: &Names) -> bool {
    let new: Option<Vec<String>> = group
        .iter()
        .map(|(kind, attr)| {
            let name = naming.name(e.text(attr)?);
            names.has(kind, &name).then_some(name)
        })
        .collect();
    let Some(new) = new else { return false };
    for ((_, attr), name) in group.iter().zip(&new) {
        e.set(attr, name);
    }
    true
}

fn resolves(e: &Element, group: &Group, names: &Names) -> bool {
    group.iter().all(|(kind, attr)| e.text(attr).is_some_and(|n| names.has(kind, n)))
}

/// True if all that an element of `list` refers to is there.
pub(super) fn resolved(list: &str, e: &Element, names: &Names) -> bool {
    if list == "tendon" {
        return e.children.iter().all(|point| resolves(point, &given(point, PATH), names));
    }
    groups(list, e).1.iter().all(|g| resolves(e, g, names))
}

/// The copy of an element of `list` for what was copied with `naming`, whose names are
/// in `names` already.
pub(super) fn copied(list: &str, e: &Element, naming: &Naming, names: &Names) -> Copied {
    let mut copy = e.clone();
    let (mut inside, mut outside, mut unknown) = (0, 0, 0);
    let mut count = |found: bool, known: bool| match (found, known) {
        (true, _) => inside += 1,
        (false, true) => outside += 1,
        (false, false) => unknown += 1,
    };
    let rule = if list == "tendon" {
        for point in &mut copy.children {
            let group = given(point, PATH);
            if !group.is_empty() {
                let found = renamed(point, &group, naming, names);
                count(found, resolves(point, &group, names));
            }
        }
        Rule::Any
    } else {
        let (rule, groups) = groups(list, e);
        for group in groups {
            // Constraints hold on to the world itself, whatever is called so in the copy.
            let world =
                |(kind, attr): &(&str, &str)| *kind == "body" && e.text(attr) == Some("world");
            let stays = rule == Rule::All && group.iter().any(world);
            let found = !stays && renamed(&mut copy, &group, naming, names);
            if !stays {
                count(found, resolves(&copy, &group, names));
            }
        }
        rule
    };
    let nothing = inside + outside + unknown == 0;
    let whole = unknown == 0 && (rule == Rule::Any || outside == 0);
    if nothing || inside > 0 && whole {
        naming.listed(&mut copy);
        Copied::Yes(copy)
    } else if inside > 0 {
        Copied::Partly
    } else {
        Copied::No
    }
}
