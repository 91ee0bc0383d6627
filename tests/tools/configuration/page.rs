//! The pages: a heading and a table of keys for each table of a configuration.

use super::defaults;
use super::types::{Def, Field, Shape, Types, name};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use syn::{GenericArgument, PathArguments, Type};

const RUN: &str = "# Every key of a configuration

This page is printed from the program. `ostler check CONFIG` shows a configuration with all its
values; `--set table.key=value` replaces one. A key that does not exist is an error that names
the nearest one. Lengths are in metres, angles in radians, times in seconds. A default of \"none\"
means that the key is simply not there; \"needed\" means that there is no default.

| page | tables |
|---|---|
| this one | the run: simulation, environments, length, collection, guards, logs |
| [The task](configuration-task.md) | `[task]` and all below it |
| [Learners and networks](configuration-learners.md) | `[actor]`, `[critic]`, `[ppo]`, `[sac]`, `[td3]`, `[ars]`, `[replay]` |

`include`, `extends` and `[profile.NAME]` put configurations together: see
[several files](task-language.md#several-files) and [learners](learners.md).
";

const TASK: &str = "# Every key of a task

This page is printed from the program; [every key of a configuration](configuration.md) has the
other tables. [Tasks](task-language.md) explains how a task is written.
";

const LEARNERS: &str = "# Every key of learners and networks

This page is printed from the program; [every key of a configuration](configuration.md) has the
other tables. [Learners](learners.md) explains them, [replay buffer](replay.md) where transitions lie.
";

/// A page of the documentation.
struct Part {
    file: &'static str,
    head: &'static str,
    /// The tables at the top of a file that it has, with all below them.
    tables: &'static [&'static str],
}

/// The first has what no other one has.
const PARTS: [Part; 3] = [
    Part { file: "configuration.md", head: RUN, tables: &[] },
    Part { file: "configuration-task.md", head: TASK, tables: &["task"] },
    Part {
        file: "configuration-learners.md",
        head: LEARNERS,
        tables: &["actor", "critic", "ppo", "sac", "td3", "ars", "replay"],
    },
];

/// The page of a table: its place among `PARTS`.
fn part_of(path: &str) -> usize {
    let top = path.split('.').next().unwrap_or(path);
    let has = |part: &Part| part.tables.contains(&top);
    PARTS.iter().position(has).unwrap_or(0)
}

/// A table that is still to be printed.
struct Table<'t> {
    def: &'t Def,
    /// `[env]`, `[[task.reward]]`, `task.observation.noise = { ... }`.
    title: String,
    /// The keys from the root, without brackets.
    path: String,
    /// Its values in the default configuration.
    values: Option<&'t Value>,
    docs: String,
}

/// Values of keys that are left out.
pub struct Defaults {
    /// Of a whole configuration.
    pub all: Value,
    /// Of types that are not in it.
    pub of_types: HashMap<String, Value>,
}

struct Page<'t> {
    types: &'t Types,
    of_types: &'t HashMap<String, Value>,
    /// Of each of `PARTS`.
    texts: [String; 3],
    /// Where a type has been printed: page, title.
    printed: HashMap<String, (usize, String)>,
}

/// All pages: file and text.
pub fn print(types: &Types, defaults: &Defaults) -> Vec<(&'static str, String)> {
    let root = types.find("Config", Path::new("trainer/learn/src/config/mod.rs"));
    let root = types.find("Config", &root.unwrap().file).unwrap();
    let mut page = Page {
        types,
        of_types: &defaults.of_types,
        texts: PARTS.map(|part| part.head.into()),
        printed: HashMap::new(),
    };
    page.table(&Table {
        def: root,
        title: "At the top of the file".into(),
        path: String::new(),
        values: Some(&defaults.all),
        docs: String::new(),
    });
    let files = PARTS.map(|part| part.file);
    files.into_iter().zip(page.texts).collect()
}

impl<'t> Page<'t> {
    fn table(&mut self, table: &Table<'t>) {
        let Shape::Struct(fields) = &table.def.shape else {
            return;
        };
        let level = if table.path.contains('.') { "###" } else { "##" };
        let code = table.title.starts_with('[') || table.title.contains('=');
        let quote = if code { "`" } else { "" };
        let text = &mut self.texts[part_of(&table.path)];
        let _ = writeln!(text, "\n{level} {quote}{}{quote}\n", table.title);
        if !table.docs.is_empty() {
            let _ = writeln!(text, "{}\n", table.docs);
        }
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        let mut below = Vec::new();
        for field in fields {
            below.extend(self.row(table, field));
        }
        for table in below {
            self.table(&table);
        }
    }

    /// A line of a table of keys; the tables that lie below it.
    fn row(&mut self, table: &Table<'t>, field: &Field) -> Vec<Table<'t>> {
        let path = match table.path.as_str() {
            "" => field.key.clone(),
            above => format!("{above}.{}", field.key),
        };
        let own = table.values.and_then(|v| v.get(&field.key));
        let mut below = Vec::new();
        let kind = self.kind(&field.ty, table.def, &path, 0, &mut below);
        let default = match (table.values, own) {
            (Some(_), Some(value)) => written(value),
            // Left out of what is written: not there.
            (Some(_), None) => String::new(),
            (None, _) => match defaults::of(self.types, table.def, field) {
                Some(value) => value,
                None => "needed".into(),
            },
        };
        let is_table = below.iter().any(|t| t.title.starts_with("[") && !t.title.starts_with("[["));
        let default = match default.as_str() {
            "needed" => "needed".to_string(),
            _ if is_table => String::new(),
            "" => "none".into(),
            value => format!("`{value}`"),
        };
        let meaning = meaning(&field.docs, &self.words(&field.ty, table.def));
        let key = &field.key;
        let text = &mut self.texts[part_of(&table.path)];
        let _ = writeln!(text, "| `{key}` | {kind} | {default} | {meaning} |");
        for table in &mut below {
            if table.title.starts_with("[") && !table.title.starts_with("[[") {
                table.values = own.filter(|v| v.is_object()).or(table.values);
            }
        }
        below
    }

    /// The kind of a value in words; tables of their own are added to `below`.
    fn kind(
        &mut self,
        ty: &Type,
        owner: &Def,
        path: &str,
        lists: usize,
        below: &mut Vec<Table<'t>>,
    ) -> String {
        if let Type::Array(a) = ty {
            let one = self.kind(&a.elem, owner, path, lists, below);
            let count = match &a.len {
                syn::Expr::Lit(l) => match &l.lit {
                    syn::Lit::Int(i) => i.base10_parse::<usize>().unwrap(),
                    _ => 1,
                },
                _ => 1,
            };
            return format!("[{}]", vec![one; count].join(", "));
        }
        let name = name(ty).unwrap_or_else(|| panic!("{path}: a type without a name"));
        match name.as_str() {
            "bool" => "`true` or `false`".into(),
            "f64" | "f32" => "number".into(),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "whole number".into(),
            "String" | "PathBuf" => "text".into(),
            // toml::Table.
            "Table" => "table of anything".into(),
            "Option" | "Box" => self.kind(inner(ty, 0), owner, path, lists, below),
            "Vec" => match self.kind(inner(ty, 0), owner, path, lists + 1, below).as_str() {
                "number" => "list of numbers".into(),
                "whole number" => "list of whole numbers".into(),
                "text" => "list of texts".into(),
                one if one.starts_with("list of") => one.replacen("list of", "list of lists of", 1),
                "table" => "tables".into(),
                one => format!("list of {one}"),
            },
            "BTreeMap" => {
                let path = format!("{path}.NAME");
                match self.kind(inner(ty, 1), owner, &path, lists, below).as_str() {
                    "number" => "table of numbers".into(),
                    "text" => "table of texts".into(),
                    "table" => "tables".into(),
                    one => format!("table of: {one}"),
                }
            }
            _ => self.named(&name, owner, path, lists, below),
        }
    }

    fn named(
        &mut self,
        name: &str,
        owner: &Def,
        path: &str,
        lists: usize,
        below: &mut Vec<Table<'t>>,
    ) -> String {
        let types = self.types;
        let def = types.find(name, &owner.file);
        let def = def.unwrap_or_else(|| panic!("{path}: no type {name}"));
        match &def.shape {
            Shape::Text(_) => "text".into(),
            Shape::Enum(variants) => {
                let mut kinds = Vec::new();
                for v in variants {
                    match v.content.first() {
                        None => kinds.push(format!("`\"{}\"`", v.word)),
                        // The content is shown below, whatever is said of it here.
                        Some(content) => {
                            kinds.push(self.kind(&content.ty, def, path, lists, below));
                        }
                    }
                }
                match &def.expecting {
                    Some(text) => escaped(text),
                    None => kinds.join(", "),
                }
            }
            Shape::Struct(fields) => {
                let id = format!("{}:{}", def.file.display(), def.name);
                if let Some((part, title)) = self.printed.get(&id) {
                    let file = match *part == part_of(path) {
                        true => "",
                        false => PARTS[*part].file,
                    };
                    return format!("table, as [{}]({file}#{})", code(title), anchor(title));
                }
                let title = match lists {
                    0 if path.matches('.').count() < 2 || path.ends_with(".NAME") => {
                        format!("[{path}]")
                    }
                    0 => format!("{path} = {{ ... }}"),
                    _ if path.matches('.').count() < 2 => format!("[[{path}]]"),
                    _ => format!("{path} = [{{ ... }}]"),
                };
                assert!(!fields.is_empty(), "{path}: a table without keys");
                self.printed.insert(id, (part_of(path), title.clone()));
                below.push(Table {
                    def,
                    title,
                    path: path.to_string(),
                    values: self.of_types.get(name),
                    docs: described(&def.docs),
                });
                "table".into()
            }
        }
    }

    /// The words of a choice, each with its meaning.
    fn words(&self, ty: &Type, owner: &Def) -> Vec<(String, String)> {
        let Some(mut named) = name(ty) else {
            return Vec::new();
        };
        let mut ty = ty;
        while ["Option", "Box", "Vec"].contains(&named.as_str()) {
            ty = inner(ty, 0);
            let Some(next) = name(ty) else {
                return Vec::new();
            };
            named = next;
        }
        match self.types.find(&named, &owner.file).map(|d| &d.shape) {
            Some(Shape::Enum(all)) if all.iter().all(|v| v.content.is_empty()) => {
                all.iter().map(|v| (v.word.clone(), v.docs.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
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

/// An argument of a generic type.
fn inner(ty: &Type, at: usize) -> &Type {
    if let Type::Path(p) = ty
        && let Some(last) = p.path.segments.last()
        && let PathArguments::AngleBracketed(all) = &last.arguments
        && let Some(GenericArgument::Type(inner)) = all.args.iter().nth(at)
    {
        return inner;
    }
    panic!("a generic type without an argument {at}")
}
