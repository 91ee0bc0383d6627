//! A task's additions to a robot's file: elements beside its own.

use super::element::{At, Attr, Element, Fault, Read};
use crate::edit::{Base, Edits, Floor, Height};

/// Names of what is added, unless they are taken.
const FLOOR: &str = "floor";
const ROOT: &str = "root";

/// What was added.
#[derive(Default)]
pub(super) struct Added {
    /// In words.
    pub said: Vec<String>,
    /// What was not needed: the key, and why.
    pub needless: Vec<(&'static str, String)>,
    /// Name of the floor's geom.
    pub floor: Option<String>,
    /// Name of the robot's root, where its height is asked for.
    pub root: Option<Option<String>>,
}

/// Adds to the tree of a file what `edits` asks for.
pub(super) fn apply(edits: &Edits, root: &mut Element) -> Read<Added> {
    let mut added = Added::default();
    if edits.balance {
        added.said.push("moments of inertia that no body can have: their mean".into());
    }
    match edits.base {
        Some(Base::Free) => free(root, &mut added)?,
        Some(Base::Fixed) => fixed(root, &mut added)?,
        None => {}
    }
    match edits.height {
        Some(Height::At(height)) => raise(root, height, &mut added)?,
        Some(Height::OnFloor) => {
            let body = robot(root, "task.start_height = \"auto\"")?;
            added.root = Some(body.text("name").map(str::to_string));
        }
        None => {}
    }
    if let Some(floor) = &edits.floor {
        add_floor(root, floor, &mut added);
    }
    Ok(added)
}

fn is_free(joint: &Element) -> bool {
    joint.name == "freejoint" || joint.name == "joint" && joint.text("type") == Some("free")
}

fn has_joints(body: &Element) -> bool {
    let joint = |e: &Element| e.name == "joint" || e.name == "freejoint";
    let inside = |e: &Element| (e.name == "body" || e.name == "frame") && has_joints(e);
    body.children.iter().any(|e| joint(e) || inside(e))
}

/// Where the bodies on the world stand that move, or all of them where none does: indices on
/// the way to each, through sections and frames.
fn roots(root: &Element) -> Vec<Vec<usize>> {
    fn bodies(e: &Element, way: &mut Vec<usize>, found: &mut Vec<(Vec<usize>, bool)>) {
        for (i, child) in e.children.iter().enumerate() {
            way.push(i);
            match child.name.as_str() {
                "body" => found.push((way.clone(), has_joints(child))),
                "frame" => bodies(child, way, found),
                _ => {}
            }
            way.pop();
        }
    }
    let mut found = Vec::new();
    for (i, section) in root.children.iter().enumerate() {
        if section.name == "worldbody" {
            bodies(section, &mut vec![i], &mut found);
        }
    }
    let moving = found.iter().any(|(_, moves)| *moves);
    let wanted = found.into_iter().filter(|(_, moves)| *moves || !moving);
    wanted.map(|(way, _)| way).collect()
}

fn at<'e>(root: &'e Element, way: &[usize]) -> &'e Element {
    way.iter().fold(root, |e, i| &e.children[*i])
}

/// The way to the one body that is the robot.
fn way(root: &Element, key: &str) -> Read<Vec<usize>> {
    let mut roots = roots(root);
    let names: Vec<String> = roots
        .iter()
        .map(|way| format!("\"{}\"", at(root, way).text("name").unwrap_or("(no name)")))
        .collect();
    match (roots.pop(), names.len()) {
        (Some(way), 1) => Ok(way),
        (None, _) => Err(Fault::new(root.at, format!("{key}: the file has no body on the world"))),
        (Some(_), _) => Err(Fault::new(
            root.at,
            format!(
                "{key}: {} bodies on the world move, {}: it is not known which is meant; write \
                 <freejoint/> and pos into the file",
                names.len(),
                names.join(", ")
            ),
        )),
    }
}

fn robot<'e>(root: &'e Element, key: &str) -> Read<&'e Element> {
    Ok(at(root, &way(root, key)?))
}

fn robot_mut<'e>(root: &'e mut Element, key: &str) -> Read<&'e mut Element> {
    let way = way(root, key)?;
    Ok(way.into_iter().fold(root, |e, i| &mut e.children[i]))
}

fn named(body: &Element) -> String {
    body.text("name").map_or("of the robot".into(), |name| format!("\"{name}\""))
}

/// Whether an element anywhere has this name.
fn taken(e: &Element, kinds: &[&str], name: &str) -> bool {
    let here = kinds.contains(&e.name.as_str()) && e.text("name") == Some(name);
    here || e.children.iter().any(|c| taken(c, kinds, name))
}

fn new_name(root: &Element, kinds: &[&str], name: &str) -> String {
    let numbered = (1..).map(|i| format!("{name}_{i}"));
    let mut names = std::iter::once(name.to_string()).chain(numbered);
    let fits = |candidate: &String| !taken(root, kinds, candidate);
    names.find(fits).unwrap_or_default()
}

fn made(name: &str, at: At, attrs: &[(&str, &str)]) -> Element {
    let mut e = Element::made(name, at);
    let attrs = attrs.iter().map(|(name, value)| Attr::made(name, value, at));
    e.attrs.extend(attrs);
    e
}

/// Keyframes' numbers for the joints.
fn keys(root: &mut Element) -> impl Iterator<Item = &mut Element> {
    let sections = root.children.iter_mut().filter(|e| e.name == "keyframe");
    sections.flat_map(|s| s.children.iter_mut())
}

fn free(root: &mut Element, added: &mut Added) -> Read<()> {
    const KEY: &str = "task.base = \"free\"";
    let body = robot(root, KEY)?;
    let name = named(body);
    if body.children.iter().any(is_free) {
        added.needless.push((KEY, format!("body {name} has a free joint of its own")));
        return Ok(());
    }
    let own = |e: &&Element| e.name == "joint";
    if let Some(joint) = body.children.iter().find(own) {
        let why = format!(
            "{KEY}: body {name} has a joint of its own, beside which there can be no free one"
        );
        return Err(Fault::new(joint.at, why));
    }
    let place = body.at;
    let kinds = ["joint", "freejoint"];
    let joint = new_name(root, &kinds, ROOT);
    for key in keys(root) {
        if key.attr("qpos").or(key.attr("qvel")).is_some() {
            let why = format!(
                "{KEY}: this keyframe was written without the free joint: write 7 numbers (x y z, \
                 quaternion) more into its qpos and the joint into the file"
            );
            return Err(Fault::new(key.at, why));
        }
    }
    let joint_element = made("freejoint", place, &[("name", &joint)]);
    robot_mut(root, KEY)?.children.insert(0, joint_element);
    added.said.push(format!("free joint \"{joint}\" of body {name} ({KEY})"));
    Ok(())
}

fn fixed(root: &mut Element, added: &mut Added) -> Read<()> {
    const KEY: &str = "task.base = \"fixed\"";
    let body = robot_mut(root, KEY)?;
    let name = named(body);
    let before = body.children.len();
    body.children.retain(|e| !is_free(e));
    if body.children.len() == before {
        added.needless.push((KEY, format!("body {name} has no free joint")));
        return Ok(());
    }
    // The robot is the one that moves: its free joint has the first numbers.
    for key in keys(root) {
        for (attr, count) in [("qpos", 7), ("qvel", 6)] {
            if let Some(attr) = key.attrs.iter_mut().find(|a| a.name == attr) {
                let words = attr.value.split_whitespace().skip(count);
                let rest = words.collect::<Vec<_>>().join(" ");
                attr.set(rest);
            }
        }
    }
    added.said.push(format!("body {name} without its free joint ({KEY})"));
    Ok(())
}

fn raise(root: &mut Element, height: f64, added: &mut Added) -> Read<()> {
    const KEY: &str = "task.start_height";
    let way = way(root, KEY)?;
    if way.len() > 2 {
        let why = format!("{KEY}: the robot stands in a <frame>; write the height into the file");
        return Err(Fault::new(at(root, &way).at, why));
    }
    let body = robot_mut(root, KEY)?;
    let mut pos = [0.0; 3];
    body.array("pos", &mut pos)?;
    pos[2] = height;
    body.set("pos", &pos.map(|x| format!("{x:e}")).join(" "));
    let height = (height * 1e6).round() / 1e6;
    added.said.push(format!("body {} starts at z = {height} m ({KEY})", named(body)));
    Ok(())
}

/// All attributes are said: the file's default class would say them otherwise.
fn add_floor(root: &mut Element, floor: &Floor, added: &mut Added) {
    // Bits of all geoms, whichever the file gives them.
    const ALL: &str = "2147483647";
    let name = new_name(root, &["geom"], FLOOR);
    let numbers = |values: &[f64]| {
        let words: Vec<_> = values.iter().map(|x| format!("{x:e}")).collect();
        words.join(" ")
    };
    let (pos, friction) = (numbers(&[0.0, 0.0, floor.height]), numbers(&floor.friction));
    let geom = made(
        "geom",
        root.at,
        &[
            ("name", name.as_str()),
            ("type", "plane"),
            ("size", "0 0 1"),
            ("pos", &pos),
            ("quat", "1 0 0 0"),
            ("contype", ALL),
            ("conaffinity", ALL),
            ("condim", "3"),
            ("friction", &friction),
            ("priority", "0"),
            ("solmix", "1"),
            ("solref", "0.02 1"),
            ("solimp", "0.9 0.95 0.001 0.5 2"),
            ("margin", "0"),
            ("gap", "0"),
            ("group", "0"),
            ("rgba", "0.85 0.87 0.88 1"),
        ],
    );
    let at = root.at;
    match root.children.iter_mut().find(|e| e.name == "worldbody") {
        Some(world) => world.children.push(geom),
        None => {
            let mut world = made("worldbody", at, &[]);
            world.children.push(geom);
            root.children.push(world);
        }
    }
    let [slide, spin, roll] = floor.friction;
    added.said.push(format!(
        "geom \"{name}\": an infinite plane at z = {} m, friction {slide} {spin} {roll} (task.floor)",
        floor.height
    ));
    added.floor = Some(name);
}
