//! `[profile.NAME]`: values that replace the file's own where `--profile NAME` asks for
//! them, so that one task file serves several learners or machines.

use super::error::Diagnostic;
use super::include::{drop_disabled, merge};
use super::overrides::Override;
use super::source::{Entry, Node, Origin, Sources, Value};
use super::walk::Rules;
use ostler_base::names::nearest;

/// The table of profiles, and the key that chooses one: `profile=NAME`.
pub(crate) const KEY: &str = "profile";

/// Takes the profiles out of the tree and merges the one that is asked for into it.
/// Returns the overrides that are left. Mistakes in the profiles that are not asked for
/// are found too.
pub(crate) fn apply(
    root: &mut Node,
    sources: &mut Sources,
    overrides: &[Override],
    rules: &Rules,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<Override> {
    let profiles = take(root);
    let mut rest = Vec::new();
    let mut chosen: Option<(usize, &str)> = None;
    for o in overrides {
        match o.text.split_once('=').filter(|(key, _)| key.trim() == KEY) {
            // The last one counts, as with all overrides.
            Some((_, name)) => {
                let source = sources.add(&o.flag, &o.text, true);
                chosen = Some((source, name.trim().trim_matches('"')));
            }
            None => rest.push(o.clone()),
        }
    }
    for p in &profiles {
        if chosen.is_none_or(|(_, name)| name != p.key) {
            let mut own = p.node.clone();
            drop_disabled(&mut own);
            wrong.extend(rules.check(&own, sources));
        }
    }
    let Some((source, name)) = chosen else {
        return rest;
    };
    match profiles.iter().find(|p| p.key == name) {
        Some(profile) => {
            // The file's place is the whole's.
            let origin = root.origin.clone();
            merge(root, profile.node.clone());
            root.origin = origin;
        }
        None => {
            let text = sources.0.get(source).map_or(0, |s| s.text.len());
            let origin = Origin { source, span: 0..text };
            let names: Vec<&str> = profiles.iter().map(|p| p.key.as_str()).collect();
            let help = match (nearest(name, names.iter().copied()), names.is_empty()) {
                (_, true) => "the file has no table [profile.NAME]".to_string(),
                (Some(near), _) => {
                    format!("did you mean \"{near}\"? there are {}", names.join(", "))
                }
                (None, _) => format!("there are {}", names.join(", ")),
            };
            let message = format!("there is no profile \"{name}\"");
            wrong.push(Diagnostic::at(sources, &origin, message).help(help));
        }
    }
    rest
}

/// Takes `[profile]` out; anything but a table of tables stays, for the schema to refuse.
fn take(root: &mut Node) -> Vec<Entry> {
    let Value::Table(entries) = &mut root.value else {
        return Vec::new();
    };
    let table = |n: &Node| matches!(n.value, Value::Table(_));
    let at = entries.iter().position(|e| {
        e.key == KEY && matches!(&e.node.value, Value::Table(p) if p.iter().all(|p| table(&p.node)))
    });
    match at.map(|i| entries.remove(i).node.value) {
        Some(Value::Table(profiles)) => profiles,
        _ => Vec::new(),
    }
}
