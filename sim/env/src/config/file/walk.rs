//! The keys, and the kind of value that each takes.

use super::error::{self, Diagnostic};
use super::forms::{self, Form, Kind, shorter};
use super::source::{Entry, Node, Sources, Value};
use ostler_base::names::nearest;
use serde::Serialize;
use toml::Value as Schema;

/// The key that stands for any key of a free-form table.
pub const ANY: &str = "*";

/// What a file may hold.
#[derive(Debug, Clone)]
pub struct Rules {
    /// None of what cannot be written at all: serde then judges alone.
    schema: Option<Schema>,
    special: fn(&str) -> Option<Kind>,
    recognise: fn(&str) -> Option<String>,
    gone: &'static [(&'static str, &'static str)],
    elsewhere: &'static [&'static str],
}

impl Rules {
    /// The keys of `exemplar`, which has every key set once.
    pub fn of(exemplar: &impl Serialize) -> Self {
        Self {
            schema: Schema::try_from(exemplar).ok(),
            special: |_| None,
            recognise: |_| None,
            gone: &[],
            elsewhere: &[],
        }
    }

    /// Adds keys that take more than one kind of value, by their paths.
    #[must_use]
    pub fn special(self, special: fn(&str) -> Option<Kind>) -> Self {
        Self { special, ..self }
    }

    /// Adds other programs' names of keys: each to a sentence with ours.
    #[must_use]
    pub fn recognise(self, recognise: fn(&str) -> Option<String>) -> Self {
        Self { recognise, ..self }
    }

    /// Adds keys of earlier builds, by their paths: each with what replaces it.
    #[must_use]
    pub fn gone(self, gone: &'static [(&'static str, &'static str)]) -> Self {
        Self { gone, ..self }
    }

    /// Adds keys of the top level that others read: they are neither looked at nor refused.
    #[must_use]
    pub fn elsewhere(self, elsewhere: &'static [&'static str]) -> Self {
        Self { elsewhere, ..self }
    }

    /// The keys that others read.
    pub(super) fn others(&self) -> &'static [&'static str] {
        self.elsewhere
    }

    /// Every unknown key and every value of a wrong kind, up to some more than are shown.
    pub(super) fn check(&self, root: &Node, sources: &Sources) -> Vec<Diagnostic> {
        let Some(schema) = &self.schema else {
            return Vec::new();
        };
        let mut walk = Walk { sources, rules: self, schema, found: Vec::new() };
        walk.node(root, schema, "");
        walk.found
    }

    /// Whether `path` (without indices) is a key.
    pub fn has(&self, path: &str) -> bool {
        let mut parts = path.split('.');
        let root = self.schema.as_ref();
        root.is_some_and(|root| parts.try_fold(root, |node, part| node.get(part)).is_some())
    }
}

struct Walk<'a> {
    sources: &'a Sources,
    rules: &'a Rules,
    schema: &'a Schema,
    found: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, schema: &Schema, path: &str) {
        // One more than are shown, so that it is known that there are more.
        if self.found.len() > error::MOST {
            return;
        }
        let special = (self.rules.special)(path);
        if let Some(kind) = special.or_else(|| forms::special(path)) {
            return self.special(node, kind, path);
        }
        if path == "task.event.range" && !matches!(node.value, Value::Table(_)) {
            return self.special(node, Kind::Ranges, path);
        }
        let shorter = shorter(path);
        if !shorter.is_empty() {
            let plain = matches!(schema, Schema::Float(_)) && Form::Number.fits(node);
            if plain || shorter.iter().any(|form| form.fits(node)) {
                return;
            }
            // Else a mistake within the table is named there.
            if !matches!((schema, &node.value), (Schema::Table(_), Value::Table(_))) {
                let mut forms: Vec<&str> = shorter.iter().map(|form| form.words()).collect();
                match schema {
                    Schema::Table(_) => forms.push("a table"),
                    Schema::Float(_) if !shorter.contains(&Form::Number) => {
                        forms.insert(0, Form::Number.words());
                    }
                    _ => {}
                }
                let last = forms.pop().unwrap_or_default();
                let forms = match forms.is_empty() {
                    true => last.to_string(),
                    false => format!("{} or {last}", forms.join(", ")),
                };
                let kind = node.value.kind();
                return self.wrong(node, format!("{path} takes {forms}, this is {kind}"));
            }
        }
        match (schema, &node.value) {
            (Schema::Table(known), Value::Table(entries)) => {
                for entry in entries {
                    if self.found.len() > error::MOST {
                        return;
                    }
                    let at = if path.is_empty() {
                        entry.key.clone()
                    } else {
                        format!("{path}.{}", entry.key)
                    };
                    let elsewhere = self.rules.elsewhere;
                    match known.get(&entry.key).or_else(|| known.get(ANY)) {
                        None if path.is_empty() && elsewhere.contains(&entry.key.as_str()) => {}
                        Some(inner) => self.node(&entry.node, inner, &at),
                        None => self.unknown(entry, known, path),
                    }
                }
            }
            (Schema::Array(inner), Value::Array(items)) => {
                if let Some(inner) = inner.first() {
                    for item in items {
                        self.node(item, inner, path);
                    }
                }
            }
            (Schema::Array(inner), Value::Table(_))
                if matches!(inner.first(), Some(Schema::Table(_))) =>
            {
                self.wrong(node, format!("{path} is a list of tables, write [[{path}]]"));
            }
            (Schema::Float(_), Value::Float(x)) if x.is_nan() => {
                self.wrong(node, format!("{path} cannot be nan"));
            }
            (Schema::Float(_), Value::Float(x)) if x.is_infinite() && !path.ends_with("clip") => {
                self.wrong(node, format!("{path} has to be finite"));
            }
            (Schema::Float(_), Value::Int(_) | Value::Float(_))
            | (Schema::Integer(_), Value::Int(_))
            | (Schema::Boolean(_), Value::Bool(_))
            | (Schema::String(_), Value::Str(_)) => {}
            // A floor without numbers of its own.
            (Schema::Table(_), Value::Bool(_)) if path == "task.floor" => {}
            (Schema::Table(_), Value::Array(_)) if self.is_plural(path) => {
                let one = path.strip_suffix('s').unwrap_or(path);
                self.wrong(
                    node,
                    format!("{path} is a table; did you mean [[{one}]], a list of tables?"),
                );
            }
            (expected, found) => {
                let expected = match path {
                    "task.floor" => "true, false or a table",
                    _ => Form::of(expected),
                };
                let kind = found.kind();
                self.wrong(node, format!("{path} takes {expected}, this is {kind}"));
            }
        }
    }

    /// Whether a list of tables is called so, but for the last letter.
    fn is_plural(&self, path: &str) -> bool {
        let one = path.strip_suffix('s');
        one.is_some_and(|one| self.rules.has(one))
    }

    fn special(&mut self, node: &Node, kind: Kind, path: &str) {
        let (fits, expected) = kind.judge(&node.value);
        if !fits {
            let kind = node.value.kind();
            self.wrong(node, format!("{path} takes {expected}, this is {kind}"));
        }
    }

    fn wrong(&mut self, node: &Node, message: String) {
        self.found.push(Diagnostic::at(self.sources, &node.origin, message));
    }

    fn unknown(&mut self, entry: &Entry, known: &toml::Table, path: &str) {
        let key = &entry.key;
        let place = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
        let message = format!("unknown key \"{key}\"{place}");
        let join = |k: &str| {
            if path.is_empty() { k.to_string() } else { format!("{path}.{k}") }
        };
        let gone = self.rules.gone.iter().find(|(gone, _)| *gone == join(key));
        let help = gone
            .map(|(_, instead)| format!("it is gone: {instead}"))
            .or_else(|| (self.rules.recognise)(key))
            .or_else(|| {
                let elsewhere = find(self.schema, key, "")?;
                Some(format!("did you mean {elsewhere}?"))
            })
            .or_else(|| {
                let near = nearest(key, known.keys().map(String::as_str))?;
                Some(format!("did you mean {}?", join(near)))
            })
            .unwrap_or_else(|| {
                let keys: Vec<&str> = known.keys().map(String::as_str).collect();
                format!("allowed: {}", keys.join(", "))
            });
        self.found.push(Diagnostic::at(self.sources, &entry.key_origin, message).help(help));
    }
}

/// Where a key of exactly this name lives, outside of lists.
fn find(schema: &Schema, key: &str, path: &str) -> Option<String> {
    let table = schema.as_table()?;
    let join = |k: &str| {
        if path.is_empty() { k.to_string() } else { format!("{path}.{k}") }
    };
    if table.contains_key(key) && !path.is_empty() {
        return Some(join(key));
    }
    table.iter().find_map(|(k, v)| find(v, key, &join(k)))
}
