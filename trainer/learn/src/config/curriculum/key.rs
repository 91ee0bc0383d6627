//! Keys of numbers that follow a schedule: what they lead to in a task.

use ostler_sim::names::nearest;
use toml::Value;

/// `a.b[2].c` in parts.
pub(super) fn parts(key: &str) -> impl Iterator<Item = &str> {
    key.split(['.', '[', ']']).filter(|s| !s.is_empty())
}

pub(super) fn find<'a>(task: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let mut path = parts(key);
    (path.next() == Some("task")).then_some(())?;
    let mut node = task;
    for part in path {
        node = match node {
            Value::Table(t) => t.get_mut(part)?,
            Value::Array(items) => {
                let at = element(items, part)?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    matches!(node, Value::Float(_) | Value::Integer(_)).then_some(node)
}

fn name(v: &Value) -> Option<&str> {
    v.get("name").and_then(Value::as_str)
}

fn element(items: &[Value], part: &str) -> Option<usize> {
    let mut named = items.iter().enumerate().filter(|(_, v)| name(v) == Some(part));
    match (named.next(), named.next()) {
        // Of different agents: a number says which.
        (Some((_, item)), Some(_)) if item.get("agents").is_some() => None,
        (Some((at, _)), _) => Some(at),
        (None, _) => part.parse().ok().filter(|i| *i < items.len()),
    }
}

/// What a part of a key leads to.
fn part_of<'a>(node: &'a Value, part: &str) -> Option<&'a Value> {
    match node {
        Value::Table(t) => t.get(part),
        Value::Array(items) => element(items, part).and_then(|i| items.get(i)),
        _ => None,
    }
}

/// Whether two keys are names of one number.
pub(in crate::config) fn same_number(task: &Value, a: &str, b: &str) -> bool {
    let at = |key: &str| parts(key).skip(1).try_fold(task, part_of);
    at(a).zip(at(b)).is_some_and(|(a, b)| std::ptr::eq(a, b))
}

/// Whether `key` is a number of the task; else the mistake and the right form.
pub(super) fn leads_to_number(task: &Value, key: &str) -> Result<(), (String, Option<String>)> {
    let mut path = parts(key);
    if path.next() != Some("task") {
        let help = "a number of [task] such as task.reward.NAME.weight, or env.num_envs";
        return Err((format!("\"{key}\" cannot follow a schedule"), Some(help.into())));
    }
    let mut node = task;
    for part in path {
        drawn_once(node, key)?;
        node = part_of(node, part).ok_or_else(|| {
            let known: Vec<&str> = match node {
                Value::Table(t) => t.keys().map(String::as_str).collect(),
                Value::Array(items) => items.iter().filter_map(name).collect(),
                _ => Vec::new(),
            };
            let several = (0..known.len()).filter(|i| known[*i] == part);
            let several: Vec<String> = several.map(|i| format!("[{i}]")).collect();
            let help = match nearest(part, known.iter().copied()) {
                _ if several.len() > 1 => {
                    let which = several.join(" or ");
                    let why = format!("{key}: several are called \"{part}\"");
                    return (why, Some(format!("write {which} in place of .{part}")));
                }
                Some(near) => Some(format!("did you mean \"{near}\"?")),
                None if known.is_empty() => None,
                None => Some(format!("there are {}", known.join(", "))),
            };
            (format!("{key}: there is no \"{part}\""), help)
        })?;
    }
    match node {
        Value::Float(_) => Ok(()),
        Value::Integer(_) => Err((format!("{key} is {}", whole(key)), Some(stays(key).into()))),
        _ => Err((format!("{key} is not a number"), None)),
    }
}

/// Refuses numbers of events and biases of startup: environments have drawn theirs before a
/// schedule begins, and only those of evaluations would be drawn from other ranges.
fn drawn_once(node: &Value, key: &str) -> Result<(), (String, Option<String>)> {
    if node.get("when").and_then(Value::as_str) != Some("startup") {
        return Ok(());
    }
    let what = "is drawn once for every environment, at startup, and cannot follow a schedule";
    let help = "when = \"reset\" draws for every episode and follows a schedule";
    Err((format!("{key} {what}"), Some(help.into())))
}

fn is_steps(key: &str) -> bool {
    parts(key).any(|part| ["history", "delay"].contains(&part))
}

fn of_terrain(key: &str) -> bool {
    parts(key).nth(1) == Some("terrain")
}

/// What a whole number of the task is.
fn whole(key: &str) -> &'static str {
    match is_steps(key) {
        true => "a number of control steps and cannot follow a schedule",
        false => "a whole number and cannot follow a schedule",
    }
}

/// Why a whole number stays as it is.
fn stays(key: &str) -> &'static str {
    if is_steps(key) {
        "histories and delays stay as they are while a task is trained"
    } else if of_terrain(key) {
        "the ground is laid out once, with its levels, before a task is trained; up and down of \
         [task.terrain] move environments between levels"
    } else {
        "whole numbers of a task stay as they are while it is trained"
    }
}
