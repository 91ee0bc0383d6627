//! `--set a.b=c`: one value of the configuration, from the command line.

use super::error::Diagnostic;
use super::source::{Entry, MAX_DEPTH, Node, Origin, Sources, Value};
use ostler_base::names::nearest;
use std::ops::Range;

/// One override as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The flag it came from, for messages: `--set`, `--seed`.
    pub flag: String,
    /// `path=value`.
    pub text: String,
}

impl Override {
    /// From `--set` or a bare `path=value`.
    pub fn set(text: impl Into<String>) -> Self {
        Self { flag: "--set".into(), text: text.into() }
    }

    /// From a flag of its own, such as `--seed 3`.
    pub fn flag(flag: &str, key: &str, value: impl std::fmt::Display) -> Self {
        Self { flag: flag.into(), text: format!("{key}={value}") }
    }
}

/// Writes one override into the tree.
///
/// A segment of the path is a key; in a list of tables it is an index or the
/// `name` of an element: `task.reward.forward.weight=2`. A value that is not TOML
/// is taken as text, so that quotes need not survive the shell.
pub(crate) fn apply(
    root: &mut Node,
    sources: &mut Sources,
    given: &Override,
) -> Result<(), Diagnostic> {
    let source = sources.add(&given.flag, &given.text, true);
    let text = given.text.as_str();
    let Some(equals) = text.find('=') else {
        let all = Origin { source, span: 0..text.len() };
        return Err(Diagnostic::at(sources, &all, "not of the form section.key=value")
            .help("for example env.num_envs=512"));
    };
    let path = segments(&text[..equals]);
    let key = Origin { source, span: 0..equals };
    if path.iter().any(|s| s.is_empty()) {
        let why = "the key before = has an empty part";
        return Err(Diagnostic::at(sources, &key, why));
    }
    if path.len() > MAX_DEPTH {
        let why = format!("the key before = has more than {MAX_DEPTH} parts");
        return Err(Diagnostic::at(sources, &key, why));
    }
    let value = value(sources, source, equals + 1);
    let mut node = root;
    let mut walked = String::new();
    for (i, range) in path.iter().enumerate() {
        let segment = &text[range.clone()];
        let here = Origin { source, span: range.clone() };
        let slot = step(node, segment, &here).map_err(|e| {
            let what = if walked.is_empty() { "the file" } else { &walked };
            let message = match &e {
                NoStep::Leaf(kind) => format!("{what} is {kind}, it has no \"{segment}\""),
                NoStep::Element(_) => format!("{what} has no element \"{segment}\""),
                NoStep::Several(_) => format!("{what} has several elements \"{segment}\""),
            };
            let d = Diagnostic::at(sources, &here, message);
            match e {
                NoStep::Element(names) if !names.is_empty() => {
                    let near = nearest(segment, names.iter().map(String::as_str))
                        .map(|n| format!("did you mean \"{n}\"? "))
                        .unwrap_or_default();
                    d.help(format!(
                        "{near}elements are named {} or numbered from 0",
                        names.join(", ")
                    ))
                }
                NoStep::Several(at) => {
                    let at = at.iter().map(|i| format!("{what}[{i}]"));
                    d.help(format!("write {}", at.collect::<Vec<_>>().join(" or ")))
                }
                _ => d,
            }
        })?;
        if i + 1 == path.len() {
            *slot = value;
            return Ok(());
        }
        node = slot;
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(segment);
    }
    Ok(())
}

/// Splits `a.b[2].c` at points and brackets.
fn segments(key: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let trim = |r: Range<usize>| {
        let s = &key[r.clone()];
        let lead = s.len() - s.trim_start().len();
        r.start + lead..r.start + lead + s.trim().len()
    };
    for (i, c) in key.char_indices() {
        match c {
            '.' | '[' => {
                // `a[1].b`: nothing lies between the bracket and the point.
                if !(c == '.' && i > 0 && key.as_bytes()[i - 1] == b']') {
                    out.push(trim(start..i));
                }
                start = i + 1;
            }
            ']' => {
                out.push(trim(start..i));
                start = i + 1;
            }
            _ => {}
        }
    }
    if !(start == key.len() && key.ends_with(']')) {
        out.push(trim(start..key.len()));
    }
    out
}

fn value(sources: &Sources, source: usize, offset: usize) -> Node {
    sources.parse_value(source, offset).unwrap_or_else(|_| {
        let text = sources.0.get(source).map_or("", |s| &s.text[offset..]);
        Node {
            origin: Origin { source, span: offset..offset + text.len() },
            value: Value::Str(text.trim().to_string()),
        }
    })
}

enum NoStep {
    Leaf(String),
    Element(Vec<String>),
    /// Their places.
    Several(Vec<usize>),
}

fn step<'a>(node: &'a mut Node, segment: &str, here: &Origin) -> Result<&'a mut Node, NoStep> {
    let kind = node.value.kind();
    match &mut node.value {
        Value::Table(entries) => {
            let at = match entries.iter().position(|e| e.key == segment) {
                Some(at) => at,
                None => {
                    entries.push(Entry {
                        key: segment.to_string(),
                        key_origin: here.clone(),
                        node: Node { origin: here.clone(), value: Value::Table(Vec::new()) },
                    });
                    entries.len() - 1
                }
            };
            let entry = &mut entries[at];
            // A wrong value from here is this argument's mistake, not the file's.
            entry.key_origin = here.clone();
            Ok(&mut entry.node)
        }
        Value::Array(items) => {
            let name = |n: &Node| match n.get("name").map(|e| &e.node.value) {
                Some(Value::Str(s)) => Some(s.clone()),
                _ => None,
            };
            let names: Vec<String> = items.iter().filter_map(name).collect();
            let called = |n: &Node| name(n).as_deref() == Some(segment);
            let all: Vec<usize> = (0..items.len()).filter(|&i| called(&items[i])).collect();
            if all.len() > 1 && all.iter().any(|&i| items[i].get("agents").is_some()) {
                return Err(NoStep::Several(all));
            }
            let number = || segment.parse().ok().filter(|i| *i < items.len());
            match all.first().copied().or_else(number) {
                Some(at) => Ok(&mut items[at]),
                None => Err(NoStep::Element(names)),
            }
        }
        _ => Err(NoStep::Leaf(kind)),
    }
}
