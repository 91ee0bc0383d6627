//! URDF: a `<robot>` is rewritten as the MJCF that means the same to MuJoCo, place by
//! place, and read as that.
//!
//! Source of the meaning: MuJoCo, Modeling, "URDF extensions", and its loader: bodies
//! without joints are fused, visual shapes are left out, angles are radians,
//! `<mujoco>` may hold `<compiler>`, `<option>` and `<size>`.

mod link;
mod plain;

use super::Note;
use super::reach::Reach;
use super::source::{At, Attr, Element, Fault, Read};
use crate::model::rotation::{Pose, matrix, normalized, z_to};
use crate::names::nearest;
use link::{Links, MeshFiles};
pub use plain::{PlainUrdf, plain};
use std::collections::BTreeMap;

/// Links nested deeper than this are refused (the reader recurses).
const MAX_DEPTH: usize = 190;

/// A link's place in the tree.
struct LinkPlace<'a> {
    parent: usize,
    joint: &'a Element,
}

/// Said of a file for xacro, which writes URDF.
const XACRO: &str = "this is a file for xacro, which makes a URDF of it: xacro FILE > robot.urdf";

/// Whether it has an element that only xacro knows.
fn is_xacro(root: &Element) -> bool {
    let known = [
        "property",
        "macro",
        "arg",
        "include",
        "if",
        "unless",
        "insert_block",
    ];
    root.children
        .iter()
        .any(|e| known.contains(&e.name.as_str()))
}

/// The `<mujoco>` element with the meaning of the `<robot>`, whose files lie in `reach`.
pub(super) fn translate(root: &Element, reach: &Reach, notes: &mut Vec<Note>) -> Read<Element> {
    let mut out = made("mujoco", root.at);
    if let Some(name) = root.attr("name") {
        out.attrs.push(renamed(name, "model"));
    }
    let mut compiler = made("compiler", root.at);
    compiler.attrs.push(attr("fusestatic", "true", root.at));
    out.children.push(compiler);
    let mut discard = true;
    for section in root.children_named("mujoco").flat_map(|m| &m.children) {
        match section.name.as_str() {
            "compiler" => {
                if let Some(text) = section.text("discardvisual") {
                    discard = text == "true";
                }
            }
            "option" | "size" => {}
            other => {
                let why = format!("<{other}> in a URDF's <mujoco>; it has compiler, option, size");
                return Err(Fault::new(section.at, why));
            }
        }
        out.children.push(section.clone());
    }
    let mut compiler = made("compiler", root.at);
    compiler.attrs.push(attr("angle", "radian", root.at));
    out.children.push(compiler);

    let mut links = Links::new(root, discard, MeshFiles::new(&out, reach))?;
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut elements = Vec::new();
    for e in &root.children {
        match e.name.as_str() {
            "link" => {
                if names.insert(e.required("name")?, elements.len()).is_some() {
                    let why = format!("there are two links called \"{}\"", e.required("name")?);
                    return Err(Fault::new(e.at, why));
                }
                elements.push(e);
            }
            "joint" | "mujoco" | "material" => {}
            "transmission" | "gazebo" | "sensor" => notes.push(Note {
                at: e.at,
                what: format!("<{}>", e.name),
                why: "for other programs: MuJoCo does not read it",
            }),
            _ if is_xacro(root) => return Err(Fault::new(e.at, XACRO)),
            _ => return Err(Fault::new(e.at, format!("unknown element <{}>", e.name))),
        }
    }
    let mut places: Vec<Option<LinkPlace>> = elements.iter().map(|_| None).collect();
    for joint in root.children_named("joint") {
        let end = |which: &str| -> Read<usize> {
            let e = only(joint, which)?
                .ok_or_else(|| Fault::new(joint.at, format!("a joint needs <{which} link=...>")))?;
            let name = e.required("link")?;
            names.get(name).copied().ok_or_else(|| {
                let guess = nearest(name, names.keys().copied());
                let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
                Fault::new(e.at, format!("no link called \"{name}\"{guess}"))
            })
        };
        let (parent, child) = (end("parent")?, end("child")?);
        if places[child].replace(LinkPlace { parent, joint }).is_some() {
            let why = format!(
                "link \"{}\" has two parents",
                elements[child].required("name")?
            );
            return Err(Fault::new(joint.at, why));
        }
    }

    let mut children: Vec<Vec<usize>> = elements.iter().map(|_| Vec::new()).collect();
    for (child, place) in places.iter().enumerate() {
        if let Some(place) = place {
            children[place.parent].push(child);
        }
    }
    let mut world = made("worldbody", root.at);
    let mut placed = 0;
    let roots = || {
        elements
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.is_none())
    };
    let several = roots()
        .filter(|(e, _)| e.text("name") != Some("world"))
        .count()
        > 1;
    for (i, e) in elements.iter().enumerate() {
        if places[i].is_none() {
            // The one with children is the robot.
            if several && children[i].is_empty() {
                notes.push(Note {
                    at: e.at,
                    what: format!("<link name=\"{}\">", e.required("name")?),
                    why: "no joint connects it: it stands still in the world, with its shapes alone",
                });
            }
            let tree = Tree {
                elements: &elements,
                places: &places,
                children: &children,
            };
            let content = tree.link(i, &mut links, notes, 0, &mut placed)?;
            if e.text("name") == Some("world") {
                // The mass of the world has no meaning.
                let children = content.children.into_iter();
                world
                    .children
                    .extend(children.filter(|c| c.name != "inertial"));
            } else {
                world.children.push(content);
            }
        }
    }
    if placed < elements.len() {
        let why = "some links are each other's parents: there is no root among them";
        return Err(Fault::new(root.at, why));
    }
    out.children.push(links.assets(root.at));
    out.children.push(world);
    out.children.extend(mimics(root)?);
    Ok(out)
}

/// `<equality>` with the joints that follow others: position = multiplier * other + offset.
fn mimics(root: &Element) -> Read<Option<Element>> {
    let mut all = made("equality", root.at);
    for joint in root.children_named("joint") {
        let Some(mimic) = only(joint, "mimic")? else {
            continue;
        };
        let (mut multiplier, mut offset) = (1.0, 0.0);
        mimic.scalar("multiplier", &mut multiplier)?;
        mimic.scalar("offset", &mut offset)?;
        let other = mimic.required("joint")?;
        let kind = |name: &str| {
            let named = |j: &&Element| j.text("name") == Some(name);
            root.children_named("joint")
                .find(named)
                .and_then(|j| j.text("type"))
        };
        let scalar = ["revolute", "continuous", "prismatic"];
        let turns = |kind: Option<&str>| kind.is_some_and(|k| scalar.contains(&k));
        if kind(other).is_none() {
            let names = root.children_named("joint").filter_map(|j| j.text("name"));
            let guess = nearest(other, names);
            let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
            let why = format!("no joint called \"{other}\"{guess}");
            return Err(Fault::new(mimic.at, why));
        }
        if !turns(joint.text("type")) {
            // What cannot move follows nothing.
            continue;
        }
        if !turns(kind(other)) {
            let why = format!("joint \"{other}\" is not revolute, continuous or prismatic");
            return Err(Fault::new(mimic.at, why));
        }
        let mut equality = made("joint", mimic.at);
        let follower = joint.required("name")?;
        equality.attrs.push(attr("joint1", follower, mimic.at));
        equality.attrs.push(attr("joint2", other, mimic.at));
        let coefficients = numbers(&[offset, multiplier, 0.0, 0.0, 0.0]);
        equality
            .attrs
            .push(attr("polycoef", &coefficients, mimic.at));
        all.children.push(equality);
    }
    Ok((!all.children.is_empty()).then_some(all))
}

struct Tree<'a> {
    elements: &'a [&'a Element],
    places: &'a [Option<LinkPlace<'a>>],
    /// Links on each link, in their order.
    children: &'a [Vec<usize>],
}

impl Tree<'_> {
    /// The body of a link with everything that hangs on it.
    fn link(
        &self,
        i: usize,
        links: &mut Links,
        notes: &mut Vec<Note>,
        depth: usize,
        placed: &mut usize,
    ) -> Read<Element> {
        let e = self.elements[i];
        if depth > MAX_DEPTH {
            let why = format!("links are nested more than {MAX_DEPTH} deep");
            return Err(Fault::new(e.at, why));
        }
        *placed += 1;
        let mut body = made("body", e.at);
        body.attrs
            .extend(e.attr("name").map(|a| renamed(a, "name")));
        if let Some(place) = &self.places[i] {
            place_attrs(place.joint, &mut body)?;
            joints(place.joint, &mut body, notes)?;
        }
        links.content(e, &mut body, notes)?;
        for &child in &self.children[i] {
            let child = self.link(child, links, notes, depth + 1, placed)?;
            body.children.push(child);
        }
        Ok(body)
    }
}

/// The MJCF joints of a URDF joint.
fn joints(e: &Element, body: &mut Element, notes: &mut Vec<Note>) -> Read<()> {
    let name = e.required("name")?;
    let kind = e.required("type")?;
    let mut axis = [1.0, 0.0, 0.0];
    let mut limit = None;
    let mut dynamics = None;
    for part in &e.children {
        match part.name.as_str() {
            "axis" => {
                part.required("xyz")?;
                part.array("xyz", &mut axis)?;
            }
            "limit" => limit = Some(part),
            "dynamics" => dynamics = Some(part),
            "origin" | "parent" | "child" => {}
            "safety_controller" | "calibration" | "joint_properties" => notes.push(Note {
                at: part.at,
                what: format!("<{}>", part.name),
                why: "MuJoCo does not read it",
            }),
            "mimic" => notes.push(Note {
                at: part.at,
                what: "<mimic>".into(),
                why: "read as an equality of joints, which MuJoCo's reader leaves out",
            }),
            other => {
                let why = format!("unknown element <{other}> in a joint");
                return Err(Fault::new(part.at, why));
            }
        }
    }
    let mut made_joints = Vec::new();
    let mut add = |suffix: &str, kind: &str, axis: Option<[f64; 3]>| {
        let mut joint = made("joint", e.at);
        joint
            .attrs
            .push(attr("name", &format!("{name}{suffix}"), e.at));
        joint.attrs.push(attr("type", kind, e.at));
        if let Some(axis) = axis {
            joint.attrs.push(attr("axis", &numbers(&axis), e.at));
        }
        made_joints.push(joint);
    };
    match kind {
        "revolute" | "continuous" => add("", "hinge", Some(axis)),
        "prismatic" => add("", "slide", Some(axis)),
        "fixed" => return Ok(()),
        "floating" => add("", "free", None),
        "spherical" => add("", "ball", None),
        "planar" => {
            let z = normalized(axis)
                .ok_or_else(|| Fault::new(e.at, "the axis has no direction (zero)"))?;
            let rows = matrix(z_to(z));
            add("_TX", "slide", Some([rows[0][0], rows[1][0], rows[2][0]]));
            add("_TY", "slide", Some([rows[0][1], rows[1][1], rows[2][1]]));
            add("_RZ", "hinge", Some(axis));
        }
        _ => {
            let why = format!(
                "joint type \"{kind}\" is not one of revolute, continuous, prismatic, fixed, \
                 floating, planar, spherical"
            );
            return Err(Fault::new(e.at, why));
        }
    }
    if let Some(dynamics) = dynamics {
        for joint in &mut made_joints {
            for (theirs, ours) in [("damping", "damping"), ("friction", "frictionloss")] {
                joint
                    .attrs
                    .extend(dynamics.attr(theirs).map(|a| renamed(a, ours)));
            }
        }
    }
    if limit.is_none() && matches!(kind, "revolute" | "prismatic") {
        notes.push(Note {
            at: e.at,
            what: format!("<joint type=\"{kind}\">"),
            why: "it has no <limit>: the joint has no end, as in MuJoCo",
        });
    }
    if let (Some(limit), Some(first)) = (limit, made_joints.first_mut()) {
        let (mut range, mut effort) = ([0.0; 2], 0.0);
        let lower = limit.scalar("lower", &mut range[0])?;
        let upper = limit.scalar("upper", &mut range[1])?;
        limit.scalar("effort", &mut effort)?;
        first.attrs.push(attr("range", &numbers(&range), limit.at));
        // As MuJoCo: an empty range is no limit.
        if lower != upper || range[0] > range[1] {
            notes.push(Note {
                at: limit.at,
                what: "limit".into(),
                why: "lower is above upper, or one is missing: the joint has no limit, as in MuJoCo",
            });
            first.attrs.push(attr("limited", "false", limit.at));
        }
        if effort != 0.0 && !matches!(kind, "floating" | "spherical") {
            let effort = f64::abs(effort);
            let range = numbers(&[-effort, effort]);
            first.attrs.push(attr("actuatorfrcrange", &range, limit.at));
        }
        if let Some(velocity) = limit.attr("velocity") {
            notes.push(Note {
                at: velocity.at,
                what: "limit/velocity".into(),
                why: "MuJoCo does not limit speeds",
            });
        }
    }
    body.children.extend(made_joints);
    Ok(())
}

/// The pose in `<origin>`: angles are radians about fixed axes.
fn origin(e: &Element) -> Read<Pose> {
    let mut pose = Pose::IDENTITY;
    if let Some(origin) = only(e, "origin")? {
        let mut rpy = [0.0; 3];
        origin.array("xyz", &mut pose.pos)?;
        origin.array("rpy", &mut rpy)?;
        let fixed = super::compiler::Compiler {
            degrees: false,
            eulerseq: *b"XYZ",
            ..Default::default()
        };
        pose.quat = fixed.euler(rpy);
    }
    Ok(pose)
}

/// Writes `<origin>` as `pos` and `quat`.
fn place_attrs(e: &Element, to: &mut Element) -> Read<()> {
    let at = only(e, "origin")?.map_or(e.at, |o| o.at);
    let pose = origin(e)?;
    to.attrs.push(attr("pos", &numbers(&pose.pos), at));
    to.attrs.push(attr("quat", &numbers(&pose.quat), at));
    Ok(())
}

/// The child of that name; there cannot be two.
fn only<'a>(e: &'a Element, name: &'a str) -> Read<Option<&'a Element>> {
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

fn made(name: &str, at: At) -> Element {
    Element::made(name, at)
}

fn attr(name: &str, value: &str, at: At) -> Attr {
    Attr::made(name, value, at)
}

fn renamed(a: &Attr, name: &str) -> Attr {
    let mut renamed = a.clone();
    renamed.name = name.into();
    renamed
}

/// With all digits.
fn numbers(values: &[f64]) -> String {
    let words: Vec<_> = values.iter().map(|x| format!("{x:e}")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests;
