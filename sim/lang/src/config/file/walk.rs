//! The keys, and the kind of value that each takes.

use super::error::{self, Diagnostic};
use super::keys::{self, Keys};
use super::locate;
use super::source::{Entry, Node, Sources, Value};
use ostler_base::names::nearest;
use schemars::JsonSchema;
use serde_json::{Map, Value as Json};

/// What a file may hold.
#[derive(Debug, Clone)]
pub struct Rules {
    keys: Keys,
    recognise: fn(&str, &str) -> Option<String>,
    gone: &'static [(&'static str, &'static str)],
    elsewhere: &'static [&'static str],
}

impl Rules {
    /// The keys of `T`.
    pub fn of<T: JsonSchema>() -> Self {
        Self { keys: Keys::of::<T>(), recognise: |_, _| None, gone: &[], elsewhere: &[] }
    }

    /// Adds other programs' names of keys: each, with the table that it stands in, to a sentence
    /// with ours.
    #[must_use]
    pub fn recognise(self, recognise: fn(&str, &str) -> Option<String>) -> Self {
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

    /// The keys, with what each takes.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Every unknown key and every value that its key does not take, up to some more than are
    /// shown.
    pub(super) fn check(&self, root: &Node, sources: &Sources) -> Vec<Diagnostic> {
        self.walk(root, sources).found
    }

    /// The same, then every key that is needed and not there: of a whole file.
    pub(super) fn check_whole(&self, root: &Node, sources: &Sources) -> Vec<Diagnostic> {
        let walk = self.walk(root, sources);
        if walk.found.is_empty() { walk.missing } else { walk.found }
    }

    fn walk<'a>(&'a self, root: &'a Node, sources: &'a Sources) -> Walk<'a> {
        let (found, missing) = (Vec::new(), Vec::new());
        let mut walk = Walk { sources, rules: self, root, found, missing };
        walk.node(root, self.keys.root(), "");
        walk
    }
}

struct Walk<'a> {
    sources: &'a Sources,
    rules: &'a Rules,
    root: &'a Node,
    found: Vec<Diagnostic>,
    missing: Vec<Diagnostic>,
}

/// Keys whose numbers may be infinite: there, or for one of the names in a table.
const OPEN: [&str; 10] = [
    "sim.max_speed",
    "sim.max_position",
    "sim.limit.max_speed",
    "sim.limit.max_position",
    "task.params",
    "task.actuator.effort_limit",
    "task.actuator.velocity_limit",
    "task.command.resample_s",
    "task.event.duration_s",
    "task.rewards.max_abs",
];

/// Whether the numbers of a key may be infinite: of a limit, of a time that does not end, of what
/// is clipped.
fn is_open(path: &str) -> bool {
    let within = |key: &&str| {
        path.strip_prefix(*key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    path.split('.').any(|key| key.ends_with("clip")) || OPEN.iter().any(within)
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, schema: &Json, path: &str) {
        // One more than are shown, so that it is known that there are more.
        if self.found.len() > error::MOST {
            return;
        }
        let keys = &self.rules.keys;
        let target = keys.resolve(schema);
        if let Some(forms) = keys.forms(schema) {
            // What a table lacks, and a mistake within one, is named there.
            if !matches!(node.value, Value::Table(_)) && keys.fits(node, schema, is_open(path)) {
                return;
            }
            let mut forms = forms.iter();
            let table = forms.find(|form| keys.resolve(form)["type"] == "object");
            return match (table, &node.value) {
                (Some(table), Value::Table(_)) => self.node(node, table, path),
                _ => self.misfit(node, schema, path),
            };
        }
        match (keys::type_of(target), &node.value) {
            ("object", Value::Table(entries)) => {
                for entry in entries {
                    if self.found.len() > error::MOST {
                        return;
                    }
                    let at = join(path, &entry.key);
                    match keys.key(schema, &entry.key) {
                        Some(inner) => self.node(&entry.node, inner, &at),
                        None if self.rules.elsewhere.contains(&at.as_str()) => {}
                        None => self.unknown(entry, keys.table(schema), path),
                    }
                }
                let few = self.missing.len() <= error::MOST;
                let needed = target["required"].as_array().filter(|_| few).into_iter().flatten();
                for key in needed.filter_map(Json::as_str).filter(|key| node.get(key).is_none()) {
                    let error = self.about(node, format!("the key \"{key}\" is missing"));
                    self.missing.push(error);
                }
            }
            ("array", Value::Array(items)) if self.is_one_of_many(items, target) => {
                let written = node.plain();
                self.wrong(node, format!("{path} is a list of such lists: write [{written}]"));
            }
            ("array", Value::Array(items)) => {
                let given = items.len();
                if let Some(n) = target["minItems"].as_u64().filter(|n| *n != given as u64) {
                    self.refuse(node, format!("a list of {n} is expected, this has {given}"));
                }
                for item in items {
                    self.node(item, &target["items"], path);
                }
            }
            ("array", Value::Table(_)) if keys.resolve(&target["items"])["type"] == "object" => {
                self.wrong(node, format!("{path} is a list of tables, write [[{path}]]"));
            }
            ("number", Value::Float(x)) if x.is_nan() => {
                self.wrong(node, format!("{path} cannot be nan"));
            }
            ("number", Value::Float(x)) if x.is_infinite() && !is_open(path) => {
                self.infinite(node, path);
            }
            ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => {}
            ("integer", Value::Int(i)) => {
                if let Some(range) = keys::beyond(target, *i) {
                    self.refuse(node, format!("{range} is expected, this is {i}"));
                }
            }
            ("string", Value::Str(text)) => {
                let words: Vec<&str> = keys.words(schema).into_iter().map(|w| w.0).collect();
                if !words.is_empty() && !words.contains(&text.as_str()) {
                    self.refuse(node, unknown_word(text, &words));
                }
            }
            // A table that may hold anything.
            ("anything", value) => self.anything(node, value),
            ("object", Value::Array(_)) if self.is_plural(path) => {
                let one = path.strip_suffix('s').unwrap_or(path);
                self.wrong(
                    node,
                    format!("{path} is a table; did you mean [[{one}]], a list of tables?"),
                );
            }
            _ => self.misfit(node, schema, path),
        }
    }

    /// Whether these are the numbers of one range where a list of ranges is expected.
    fn is_one_of_many(&self, items: &[Node], target: &Json) -> bool {
        let inner = self.rules.keys.resolve(&target["items"]);
        let number = |node: &Node| matches!(node.value, Value::Int(_) | Value::Float(_));
        inner["type"] == "array"
            && inner["minItems"].as_u64() == Some(items.len() as u64)
            && !items.is_empty()
            && items.iter().all(number)
    }

    /// Whether a list of tables is called so, but for the last letter.
    fn is_plural(&self, path: &str) -> bool {
        path.strip_suffix('s').is_some_and(|one| self.rules.keys.has(one))
    }

    fn anything(&mut self, node: &Node, value: &Value) {
        match value {
            Value::Datetime => self.refuse(node, "no key takes a date or time".into()),
            Value::Array(items) => items.iter().for_each(|item| self.anything(item, &item.value)),
            Value::Table(all) => all.iter().for_each(|e| self.anything(&e.node, &e.node.value)),
            _ => {}
        }
    }

    /// A mistake in a value, with the path from the root.
    fn about(&self, node: &Node, message: String) -> Diagnostic {
        let message = match locate::path_of(self.root, &node.origin) {
            Some(path) => format!("{path}: {message}"),
            None => message,
        };
        Diagnostic::at(self.sources, &node.origin, message)
    }

    fn refuse(&mut self, node: &Node, message: String) {
        let error = self.about(node, message);
        self.found.push(error);
    }

    fn misfit(&mut self, node: &Node, schema: &Json, path: &str) {
        let items = match &node.value {
            Value::Array(items) => &items[..],
            _ => std::slice::from_ref(node),
        };
        let holds = |odd: fn(f64) -> bool| {
            items.iter().any(|item| matches!(item.value, Value::Float(x) if odd(x)))
        };
        if holds(f64::is_nan) {
            return self.wrong(node, format!("{path} cannot be nan"));
        }
        if holds(f64::is_infinite) && !is_open(path) {
            return self.infinite(node, path);
        }
        let (takes, kind) = (self.rules.keys.takes(schema), node.value.kind());
        self.wrong(node, format!("{path} takes {takes}, this is {kind}"));
    }

    fn infinite(&mut self, node: &Node, path: &str) {
        let time = path.ends_with("_s");
        let remedy =
            if time { "; for never write a time that is not reached, such as 1e6" } else { "" };
        self.wrong(node, format!("{path} has to be finite{remedy}"));
    }

    fn wrong(&mut self, node: &Node, message: String) {
        self.found.push(Diagnostic::at(self.sources, &node.origin, message));
    }

    fn unknown(&mut self, entry: &Entry, known: Option<&Map<String, Json>>, path: &str) {
        let key = &entry.key;
        let place = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
        let message = format!("unknown key \"{key}\"{place}");
        let known = || known.into_iter().flat_map(Map::keys).map(String::as_str);
        let own = join(path, key);
        let gone = self.rules.gone.iter().find(|(gone, _)| *gone == own);
        let help = gone
            .map(|(_, instead)| format!("it is gone: {instead}"))
            .or_else(|| (self.rules.recognise)(path, key))
            .or_else(|| Some(format!("did you mean {}?", join(path, nearest(key, known())?))))
            .or_else(|| {
                // `clip` of `clip_param`.
                let longer = known().find(|k| k.split('_').any(|word| word == key.as_str()))?;
                Some(format!("did you mean {}?", join(path, longer)))
            })
            .or_else(|| Some(format!("did you mean {}?", self.rules.keys.find(key)?)))
            .unwrap_or_else(|| format!("allowed: {}", known().collect::<Vec<_>>().join(", ")));
        self.found.push(Diagnostic::at(self.sources, &entry.key_origin, message).help(help));
    }
}

/// Words that a key took in earlier builds: the word, one that it still takes, and what replaces it.
const GONE: &[(&str, &str, &str)] = &[(
    "half",
    "reward",
    "observations are kept in single precision; a larger buffer lies in a file, replay.storage = \"memmap\" or \"tiered\"",
)];

/// Why a key does not take a word.
fn unknown_word(given: &str, allowed: &[&str]) -> String {
    let mut gone =
        GONE.iter().filter(|(word, beside, _)| *word == given && allowed.contains(beside));
    if let Some((_, _, instead)) = gone.next() {
        return format!("\"{given}\" is gone: {instead}");
    }
    let list: Vec<String> = allowed.iter().map(|a| format!("\"{a}\"")).collect();
    let near = nearest(given, allowed.iter().copied())
        .map(|n| format!("; did you mean \"{n}\"?"))
        .unwrap_or_default();
    format!("\"{given}\" is not known here, allowed: {}{near}", list.join(", "))
}

/// A key below a path.
fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
