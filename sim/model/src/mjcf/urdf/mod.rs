//! URDF: a `<robot>` is rewritten as the MJCF that means the same to MuJoCo, place by
//! place, and read as that.
//!
//! Source of the meaning: MuJoCo, Modeling, "URDF extensions", and its loader: bodies
//! without joints are fused, visual shapes are left out, angles are radians,
//! `<mujoco>` may hold `<compiler>`, `<option>` and `<size>`.

mod joint;
mod link;
mod part;
mod plain;

use super::element::{At, Element, Fault, Note, Read};
use super::reach::Reach;
use crate::rotation::Pose;
use joint::{joints, mimics};
use link::{Links, MeshFiles};
use ostler_base::names::nearest;
use part::{attr, list_others, made, only, origin, place, place_attrs, renamed};
pub use plain::{PlainUrdf, attached, plain};
use std::collections::BTreeMap;

/// Links nested deeper than this are refused (the reader recurses).
const MAX_DEPTH: usize = 190;

/// Said of a file for xacro, which writes URDF.
const XACRO: &str = "this is a file for xacro, which makes a URDF of it: xacro FILE > robot.urdf";

/// The first element that only xacro knows.
fn xacro(root: &Element) -> Option<&Element> {
    fn prefixed(e: &Element) -> Option<&Element> {
        let here = e.name.starts_with("xacro:").then_some(e);
        here.or_else(|| e.children.iter().find_map(prefixed))
    }
    // Old files have no prefix.
    let known = ["property", "macro", "arg", "include", "if", "unless", "insert_block"];
    let plain = |e: &&Element| known.contains(&e.name.as_str());
    prefixed(root).or_else(|| root.children.iter().find(plain))
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
    let (mut discard, mut fuses) = (true, true);
    const SECTIONS: [&str; 3] = ["compiler", "option", "size"];
    if let Some(mujoco) = only(root, "mujoco")? {
        list_others(mujoco, &SECTIONS, notes);
        for name in SECTIONS {
            let Some(section) = only(mujoco, name)? else {
                continue;
            };
            discard = section.text("discardvisual").map_or(discard, |t| t == "true");
            fuses = section.text("fusestatic").map_or(fuses, |t| t == "true");
            out.children.push(section.clone());
        }
    }
    let mut compiler = made("compiler", root.at);
    compiler.attrs.push(attr("angle", "radian", root.at));
    out.children.push(compiler);

    if let Some(e) = xacro(root) {
        return Err(Fault::new(e.at, XACRO));
    }
    list_others(root, &["link", "joint", "mujoco", "material"], notes);
    let mut links = Links::new(root, discard, MeshFiles::new(&out, reach))?;
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let elements: Vec<_> = root.children_named("link").collect();
    for (i, e) in elements.iter().enumerate() {
        if names.insert(e.required("name")?, i).is_some() {
            let why = format!("there are two links called \"{}\"", e.required("name")?);
            return Err(Fault::new(e.at, why));
        }
    }
    // The joint that places each link.
    let mut places: Vec<Option<&Element>> = vec![None; elements.len()];
    // As MuJoCo: in the order of the joints.
    let mut children: Vec<Vec<usize>> = elements.iter().map(|_| Vec::new()).collect();
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
        if places[child].replace(joint).is_some() {
            let why = format!("link \"{}\" has two parents", elements[child].required("name")?);
            return Err(Fault::new(joint.at, why));
        }
        children[parent].push(child);
    }

    // As MuJoCo: names and meshes go to links in their own order.
    let mut bodies = Vec::with_capacity(elements.len());
    for e in &elements {
        let mut body = made("body", e.at);
        body.attrs.extend(e.attr("name").map(|a| renamed(a, "name")));
        links.content(e, &mut body, notes)?;
        bodies.push(Some(body));
    }
    let mut world = made("worldbody", root.at);
    let mut tree = Tree { places: &places, children: &children, bodies };
    let roots = || elements.iter().zip(&places).filter(|(_, place)| place.is_none());
    let several = roots().filter(|(e, _)| e.text("name") != Some("world")).count() > 1;
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
            let mut whole = Vec::new();
            if fuses && tree.floats(i, 0) {
                tree.apart(i, Pose::IDENTITY, 0, &mut whole, notes)?;
            } else {
                whole.push(tree.link(i, notes, 0)?);
            }
            for body in whole {
                if body.text("name") == Some("world") {
                    // The mass of the world has no meaning.
                    let children = body.children.into_iter();
                    world.children.extend(children.filter(|c| c.name != "inertial"));
                } else {
                    world.children.push(body);
                }
            }
        }
    }
    if tree.bodies.iter().any(Option::is_some) {
        let why = "some links are each other's parents: there is no root among them";
        return Err(Fault::new(root.at, why));
    }
    out.children.push(links.assets(root.at));
    out.children.push(world);
    out.children.extend(mimics(root, notes)?);
    Ok(out)
}

struct Tree<'a> {
    places: &'a [Option<&'a Element>],
    /// Links on each link, in the order of their joints.
    children: &'a [Vec<usize>],
    /// What is in each link, until it is placed.
    bodies: Vec<Option<Element>>,
}

impl Tree<'_> {
    /// The link alone: with the joint that moves it, without those that hang on it.
    fn alone(&mut self, i: usize, notes: &mut Vec<Note>, depth: usize) -> Read<Element> {
        let mut body = self.bodies[i].take().unwrap_or(made("body", At::START));
        if depth > MAX_DEPTH {
            let why = format!("links are nested more than {MAX_DEPTH} deep");
            return Err(Fault::new(body.at, why));
        }
        if let Some(joint) = self.places[i] {
            let content = std::mem::take(&mut body.children);
            place_attrs(joint, &mut body)?;
            joints(joint, &mut body, notes)?;
            body.children.extend(content);
        }
        Ok(body)
    }

    /// The body of a link with everything that hangs on it.
    fn link(&mut self, i: usize, notes: &mut Vec<Note>, depth: usize) -> Read<Element> {
        let mut body = self.alone(i, notes, depth)?;
        for &child in &self.children[i] {
            let child = self.link(child, notes, depth + 1)?;
            body.children.push(child);
        }
        Ok(body)
    }

    fn kind(&self, i: usize) -> Option<&str> {
        self.places[i].and_then(|joint| joint.text("type"))
    }

    /// Whether a link that does not move bears one that floats.
    fn floats(&self, i: usize, depth: usize) -> bool {
        let below = |c: &usize| match self.kind(*c) {
            Some("floating") => true,
            Some("fixed") => self.floats(*c, depth + 1),
            _ => false,
        };
        depth <= MAX_DEPTH && self.children[i].iter().any(below)
    }

    /// A link that does not move, at `pose`, and those that hang on it, each directly in the
    /// world, which it becomes a part of: what floats has to stand there.
    fn apart(
        &mut self,
        i: usize,
        pose: Pose,
        depth: usize,
        whole: &mut Vec<Element>,
        notes: &mut Vec<Note>,
    ) -> Read<()> {
        let mut body = self.alone(i, notes, depth)?;
        place(pose, body.at, &mut body);
        whole.push(body);
        for &child in &self.children[i] {
            let Some(joint) = self.places[child] else {
                continue;
            };
            let pose = pose.then(origin(joint)?);
            if self.kind(child) == Some("fixed") {
                self.apart(child, pose, depth + 1, whole, notes)?;
            } else {
                let mut body = self.link(child, notes, depth + 1)?;
                place(pose, joint.at, &mut body);
                whole.push(body);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
