//! Compares the tree with the schema: unknown names, refused features, ignored features.

use super::element::{Attr, Element, Fault, Note, Read};
use super::schema::{Node, Role};
use ostler_base::names::nearest;

/// Checks `e` and everything in it; ignored features are added to `notes`.
pub(super) fn check(e: &Element, node: &'static Node, notes: &mut Vec<Note>) -> Read<()> {
    match node.role {
        Role::Refused(why) => {
            return Err(Fault::new(e.at, format!("<{}> is not supported: {why}", e.name)));
        }
        Role::Ignored(why) => {
            let what = match e.text("name").or(e.text("file")) {
                Some(name) => format!("<{}> \"{name}\"", e.name),
                None => format!("<{}>", e.name),
            };
            notes.push(Note { at: e.at, what, why });
            return Ok(());
        }
        Role::Apart => return Ok(()),
        Role::Read => {}
    }
    if let Some(at) = e.stray {
        notes.push(Note {
            at,
            what: format!("text inside <{}>", e.name),
            why: "MJCF has attributes only",
        });
    }
    for attr in &e.attrs {
        attribute(e, attr, node, notes)?;
    }
    for child in &e.children {
        let Some(known) = node.children.iter().find(|n| n.name == child.name) else {
            return Err(unknown_element(child, node));
        };
        check(child, known, notes)?;
    }
    Ok(())
}

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|n| n == name)
}

fn attribute(e: &Element, attr: &Attr, node: &Node, notes: &mut Vec<Note>) -> Read<()> {
    if node.reads.iter().any(|list| listed(list, &attr.name)) {
        return Ok(());
    }
    if let Some((_, why)) = node.ignores.iter().find(|(list, _)| listed(list, &attr.name)) {
        notes.push(Note {
            at: attr.at,
            what: format!("{}/{}=\"{}\"", e.name, attr.name, short(&attr.value)),
            why,
        });
        return Ok(());
    }
    if let Some((_, why)) = node.refuses.iter().find(|(list, _)| listed(list, &attr.name)) {
        if is_off(&attr.value) {
            return Ok(());
        }
        return Err(Fault::new(
            attr.at,
            format!("{} of <{}> is not supported: {why}", attr.name, e.name),
        ));
    }
    let names = node
        .reads
        .iter()
        .copied()
        .chain(node.ignores.iter().chain(node.refuses).map(|(list, _)| *list))
        .flat_map(str::split_ascii_whitespace);
    let guess = nearest(&attr.name, names);
    let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
    Err(Fault::new(attr.at, format!("unknown attribute \"{}\" of <{}>{guess}", attr.name, e.name)))
}

/// True if the value says "not used", so that nothing is lost.
fn is_off(value: &str) -> bool {
    value
        .split_ascii_whitespace()
        .all(|t| matches!(t, "false" | "none" | "auto") || t.parse() == Ok(0.0))
}

fn unknown_element(child: &Element, node: &Node) -> Fault {
    let name = &child.name;
    let names = node.children.iter().map(|n| n.name);
    let guess = nearest(name, names).map_or(String::new(), |g| format!("; did you mean <{g}>?"));
    Fault::new(child.at, format!("unknown element <{name}> in <{}>{guess}", node.name))
}

fn short(value: &str) -> String {
    let mut chars = value.chars();
    let head: String = chars.by_ref().take(30).collect();
    if chars.next().is_some() { format!("{head}...") } else { head }
}
