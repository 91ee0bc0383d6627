//! The pages: a heading and a table of keys for each table of a configuration.

use ostler_sim::config::file::{Keys, plain};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

const RUN: &str = "# Every key of a configuration

This page is printed from the program. `ostler check CONFIG` shows a configuration with all its
values; `--set table.key=value` replaces one. A key that does not exist is an error that names
the nearest one. [An editor](task-language.md#in-an-editor) can complete them. Lengths are in metres, angles in radians, times in seconds. A default of \"none\"
means that the key is simply not there; \"needed\" means that there is no default.

| page | tables |
|---|---|
| this one | the run: simulation, environments, length, collection, guards, logs |
| [The task](configuration-task.md) | `[task]` and all below it but for the next two |
| [Terrains and motions](configuration-terrain.md) | `[task.terrain]`, `[[task.reference]]` |
| [Learners and networks](configuration-learners.md) | `[actor]`, `[critic]`, `[ppo]`, `[sac]`, `[td3]`, `[ars]`, `[replay]` |

`include`, `extends` and `[profile.NAME]` put configurations together: see
[several files](task-language.md#several-files) and [learners](learners.md).
";

const TASK: &str = "# Every key of a task

This page is printed from the program; [every key of a configuration](configuration.md) has the
other tables. [Tasks](task-language.md) explains how a task is written.
";

const TERRAIN: &str = "# Every key of terrains and motions

This page is printed from the program; [every key of a configuration](configuration.md) has the
other tables. [Rough ground](task-terrain.md) and [motions](motions.md) explain them.
";

const LEARNERS: &str = "# Every key of learners and networks

This page is printed from the program; [every key of a configuration](configuration.md) has the
other tables. [Learners](learners.md) explains them, [replay buffer](replay.md) where transitions lie.
";

/// A page of the documentation.
struct Part {
    file: &'static str,
    head: &'static str,
    /// The tables that it has, with all below them that no other page has.
    tables: &'static [&'static str],
}

/// The first has what no other one has.
const PARTS: [Part; 4] = [
    Part { file: "configuration.md", head: RUN, tables: &[] },
    Part { file: "configuration-task.md", head: TASK, tables: &["task"] },
    Part {
        file: "configuration-terrain.md",
        head: TERRAIN,
        tables: &["task.terrain", "task.reference"],
    },
    Part {
        file: "configuration-learners.md",
        head: LEARNERS,
        tables: &["actor", "critic", "ppo", "sac", "td3", "ars", "replay"],
    },
];

/// The page of a table: its place among `PARTS`.
fn part_of(path: &str) -> usize {
    let above =
        |table: &str| path.strip_prefix(table).is_some_and(|p| p.is_empty() || p.starts_with('.'));
    let most = |part: &Part| part.tables.iter().filter(|t| above(t)).map(|t| t.len()).max();
    let best = PARTS.iter().enumerate().filter_map(|(k, part)| Some((most(part)?, k))).max();
    best.map_or(0, |(_, k)| k)
}

/// A table that is still to be printed.
struct Table<'k> {
    schema: &'k Value,
    /// `[env]`, `[[task.reward]]`, `task.observation.noise = { ... }`.
    title: String,
    /// The keys from the root, without brackets.
    path: String,
}

impl Table<'_> {
    /// Whether it has a heading such as `[env]`.
    fn stands_alone(&self) -> bool {
        self.title.starts_with('[') && !self.title.starts_with("[[")
    }
}

struct Page<'k> {
    keys: &'k Keys,
    /// Of each of `PARTS`.
    texts: [String; 4],
    /// Where a type has been printed: page, title.
    printed: HashMap<&'k str, (usize, String)>,
}

/// All pages: file and text.
pub fn print(keys: &Keys) -> Vec<(&'static str, String)> {
    let texts = PARTS.map(|part| part.head.into());
    let mut page = Page { keys, texts, printed: HashMap::new() };
    let title = "At the top of the file".into();
    page.table(&Table { schema: keys.root(), title, path: String::new() });
    PARTS.iter().map(|part| part.file).zip(page.texts).collect()
}

impl<'k> Page<'k> {
    fn table(&mut self, table: &Table<'k>) {
        let level = if table.path.contains('.') { "###" } else { "##" };
        let code = table.title.starts_with('[') || table.title.contains('=');
        let quote = if code { "`" } else { "" };
        let text = &mut self.texts[part_of(&table.path)];
        let _ = writeln!(text, "\n{level} {quote}{}{quote}\n", table.title);
        let docs = if code { described(&docs_of(table.schema)) } else { String::new() };
        if !docs.is_empty() {
            let _ = writeln!(text, "{docs}\n");
        }
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        let mut below = Vec::new();
        for (key, schema) in self.keys.table(table.schema).unwrap() {
            below.extend(self.row(table, key, schema));
        }
        for table in below {
            self.table(&table);
        }
    }

    /// A line of a table of keys; the tables that lie below it.
    fn row(&mut self, table: &Table<'k>, key: &str, schema: &'k Value) -> Vec<Table<'k>> {
        let path = match table.path.as_str() {
            "" => key.to_string(),
            above => format!("{above}.{key}"),
        };
        let mut below = Vec::new();
        let kind = self.kind(schema, &path, 0, &mut below);
        let default = match default(self.keys, table.schema, key) {
            None => "needed".to_string(),
            _ if below.iter().any(Table::stands_alone) => String::new(),
            Some(Value::Null) => "none".into(),
            Some(value) => match written(&value).as_str() {
                "" => "none".into(),
                value => format!("`{value}`"),
            },
        };
        let meaning = meaning(&docs_of(schema), &self.words(schema));
        let text = &mut self.texts[part_of(&table.path)];
        let _ = writeln!(text, "| `{key}` | {kind} | {default} | {meaning} |");
        below
    }

    /// The kind of a value in words; tables of their own are added to `below`.
    fn kind(
        &mut self,
        schema: &'k Value,
        path: &str,
        lists: usize,
        below: &mut Vec<Table<'k>>,
    ) -> String {
        let target = self.keys.resolve(schema);
        if let Some(forms) = self.keys.forms(schema) {
            let takes = self.keys.takes(schema);
            let mut text = escaped(&takes);
            for form in forms {
                let kind = self.kind(form, path, lists, below);
                if let Some(link) = kind.strip_prefix("table, as ") {
                    text = format!("{text}, as {link}");
                }
            }
            return text;
        }
        let words = self.keys.words(schema);
        if !words.is_empty() {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            return words.join(", ");
        }
        match target["type"].as_str().unwrap_or_else(|| panic!("{path}: no type: {target}")) {
            "boolean" => "`true` or `false`".into(),
            "number" => "number".into(),
            "integer" => "whole number".into(),
            "string" => "text".into(),
            "array" => match target["minItems"].as_u64() {
                Some(count) => {
                    let one = self.kind(&target["items"], path, lists, below);
                    format!("[{}]", vec![one; count as usize].join(", "))
                }
                None => match self.kind(&target["items"], path, lists + 1, below).as_str() {
                    "number" => "list of numbers".into(),
                    "whole number" => "list of whole numbers".into(),
                    "text" => "list of texts".into(),
                    "table" => "tables".into(),
                    one => match one.strip_prefix("list of") {
                        Some(inner) => format!("list of lists of{inner}"),
                        None => format!("list of {one}"),
                    },
                },
            },
            _ => self.object(schema, path, lists, below),
        }
    }

    fn object(
        &mut self,
        schema: &'k Value,
        path: &str,
        lists: usize,
        below: &mut Vec<Table<'k>>,
    ) -> String {
        let target = self.keys.resolve(schema);
        if self.keys.table(schema).is_none() {
            if target["additionalProperties"] == true {
                return "table of anything".into();
            }
            let path = format!("{path}.NAME");
            return match self.kind(&target["additionalProperties"], &path, lists, below).as_str() {
                "number" => "table of numbers".into(),
                "text" => "table of texts".into(),
                "table" => "tables".into(),
                one => format!("table of: {one}"),
            };
        }
        let name = schema["$ref"].as_str().unwrap_or_else(|| panic!("{path}: a table's type"));
        if let Some((part, title)) = self.printed.get(name) {
            let file = match *part == part_of(path) {
                true => "",
                false => PARTS[*part].file,
            };
            return format!("table, as [{}]({file}#{})", code(title), anchor(title));
        }
        let title = match lists {
            0 if path.matches('.').count() < 2 || path.ends_with(".NAME") => format!("[{path}]"),
            0 => format!("{path} = {{ ... }}"),
            _ if path.matches('.').count() < 2 => format!("[[{path}]]"),
            _ => format!("{path} = [{{ ... }}]"),
        };
        self.printed.insert(name, (part_of(path), title.clone()));
        below.push(Table { schema: target, title, path: path.to_string() });
        "table".into()
    }

    /// The words of a choice, or of a list of choices, each with its meaning.
    fn words(&self, schema: &'k Value) -> Vec<(String, String)> {
        let words = match self.keys.resolve(schema).get("items") {
            Some(items) => self.keys.words(items),
            None => self.keys.words(schema),
        };
        words.into_iter().map(|(word, docs)| (word.into(), plain(docs))).collect()
    }
}

/// The value of a key that is left out, null where it is then not there; nothing where the key
/// is needed.
pub fn default(keys: &Keys, table: &Value, key: &str) -> Option<Value> {
    let schema = &keys.table(table)?[key];
    if let Some(value) = schema.get("default") {
        return Some(value.clone());
    }
    if table["required"].as_array().is_some_and(|needed| needed.iter().any(|n| n == key)) {
        return None;
    }
    // A default that is not written: that of its type.
    let words = keys.words(schema);
    let target = keys.resolve(schema);
    Some(match target["type"].as_str() {
        _ if !words.is_empty() => words[0].0.into(),
        Some("number") => 0.0.into(),
        Some("integer") => 0.into(),
        Some("boolean") => false.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(serde_json::Map::new()),
        _ => "".into(),
    })
}

fn docs_of(schema: &Value) -> String {
    plain(schema["description"].as_str().unwrap_or_default())
}

/// A type's documentation without the name of its table, which the heading has.
fn described(docs: &str) -> String {
    let text = match docs.strip_prefix('`').and_then(|d| d.split_once('`')) {
        Some((head, rest)) if head.starts_with('[') => {
            rest.trim_start_matches([':', '.', ',', ' '])
        }
        _ => docs,
    };
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A field's documentation, and those of the words that it may be.
fn meaning(docs: &str, words: &[(String, String)]) -> String {
    let mut text = docs.to_string();
    // Where the documentation of the key explains the words itself.
    let explained = words.iter().any(|(word, _)| docs.contains(&format!("`\"{word}\"`")));
    if !explained && words.len() > 1 {
        // A word that says all by itself has no documentation.
        for (word, docs) in words.iter().filter(|(_, docs)| !docs.is_empty()) {
            let _ = write!(text, " `\"{word}\"`: {docs}");
        }
    }
    escaped(text.trim())
}

/// A value as a file would have it.
fn written(value: &Value) -> String {
    match value {
        Value::Array(all) => {
            let all: Vec<_> = all.iter().map(written).collect();
            format!("[{}]", all.join(", "))
        }
        Value::Object(all) if all.is_empty() => "{}".into(),
        Value::Object(_) | Value::Null => String::new(),
        Value::Number(n) => match n.as_f64() {
            Some(x) if n.is_f64() => format!("{x:?}"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(title: &str) -> String {
    format!("`{title}`")
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(title: &str) -> String {
    let keep = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    title.chars().filter_map(keep).collect()
}
