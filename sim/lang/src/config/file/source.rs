//! TOML text as a tree whose every node knows where it was written.

use super::error::Diagnostic;
use ostler_base::files;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A configuration longer than this is not one (bytes).
const MAX_BYTES: u64 = 4 << 20;

/// Values nested deeper than this are refused: all that reads them recurses. A table's dotted keys
/// count, each of which TOML's reader bounds alone.
pub(crate) const MAX_DEPTH: usize = 100;

/// Of a longer text that is a mistake, so many characters are shown.
const SHOWN: usize = 100;

/// Where a value was written: bytes of one of the [`Sources`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Index into [`Sources`]; 0 is the file.
    pub source: usize,
    /// Bytes of its text.
    pub span: Range<usize>,
}

/// One text that values came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's path, or the flag such as `--set`.
    pub label: String,
    /// All of it.
    pub text: String,
    /// True for command-line arguments, which have no lines.
    pub argument: bool,
}

/// The file, followed by the overrides in the order given.
#[derive(Debug, Clone, Default)]
pub struct Sources(pub Vec<Source>);

/// A value and where it was written.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its place.
    pub origin: Origin,
    /// Its kind.
    pub value: Value,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub enum Value {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point or exponent.
    Float(f64),
    /// Text.
    Str(String),
    /// A date or time; no key takes one.
    Datetime,
    /// `[...]`, or tables written as `[[...]]`.
    Array(Vec<Node>),
    /// `[...]` or `{...}`.
    Table(Vec<Entry>),
}

/// One key of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub key_origin: Origin,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// Its kind, in words.
    pub fn kind(&self) -> String {
        match self {
            Self::Bool(b) => format!("{b}"),
            Self::Int(i) => format!("{i}"),
            Self::Float(f) => format!("{f:?}"),
            Self::Str(s) if s.chars().nth(SHOWN).is_some() => {
                let head: String = s.chars().take(SHOWN).collect();
                format!("the text \"{head}...\"")
            }
            Self::Str(s) => format!("the text \"{s}\""),
            Self::Datetime => "a date or time".into(),
            Self::Array(_) => "a list".into(),
            Self::Table(_) => "a table".into(),
        }
    }
}

impl Node {
    /// The value without its places.
    pub fn plain(&self) -> toml::Value {
        match &self.value {
            Value::Bool(b) => (*b).into(),
            Value::Int(i) => (*i).into(),
            Value::Float(f) => (*f).into(),
            // No key takes a date.
            Value::Datetime => String::new().into(),
            Value::Str(s) => s.as_str().into(),
            Value::Array(items) => items.iter().map(Self::plain).collect::<Vec<_>>().into(),
            Value::Table(all) => {
                let all = all.iter().map(|e| (e.key.clone(), e.node.plain()));
                toml::Value::Table(all.collect())
            }
        }
    }

    /// The value of `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|e| e.key == key),
            _ => None,
        }
    }
}

/// Reads a file that may hold a configuration.
pub fn read(path: &Path) -> Result<String, Diagnostic> {
    let label = path.display().to_string();
    let fail = |why: String| Diagnostic::plain(format!("cannot read {label}: {why}"));
    let bytes = files::read(path, MAX_BYTES).map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            fail("no such file".into()).help("`ostler envs` lists the configurations in configs/")
        }
        ErrorKind::InvalidInput if path.is_dir() => {
            fail("it is a folder; a TOML file is expected".into())
        }
        // A pipe could be read once, but a run reads its configuration more often, and
        // its robot is looked for beside it.
        ErrorKind::InvalidInput => {
            fail(e.to_string()).help("write it to a file: it is read more than once")
        }
        ErrorKind::FileTooLarge => {
            fail(format!("more than {MAX_BYTES} bytes are too many for a configuration"))
        }
        _ => fail(e.to_string()),
    })?;
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if ["xml", "mjcf", "urdf", "xacro"].contains(&ending) {
        let why = format!("{label} is a robot's file, and a task is expected");
        return Err(Diagnostic::plain(why).help(
            "a task is a TOML file that names it: [task] robot = \"FILE\" (docs/your-robot.md); `ostler compare` takes the robot itself",
        ));
    }
    String::from_utf8(bytes)
        .map_err(|e| fail(format!("not UTF-8 text at byte {}", e.utf8_error().valid_up_to())))
}

impl Sources {
    /// Adds a text and returns its index.
    pub fn add(&mut self, label: &str, text: &str, argument: bool) -> usize {
        self.0.push(Source { label: label.to_string(), text: text.to_string(), argument });
        self.0.len() - 1
    }

    /// Parses source `source`, a whole document.
    pub fn parse(&self, source: usize) -> Result<Node, Diagnostic> {
        let text = self.0.get(source).map_or("", |s| s.text.as_str());
        let table = DeTable::parse(text).map_err(|e| self.syntax(source, 0, &e))?;
        let span = table.span();
        self.table(table.get_ref(), source, 0, span, 0)
    }

    /// Parses one value that begins after byte `offset` of source `source` and goes
    /// to its end.
    pub fn parse_value(&self, source: usize, offset: usize) -> Result<Node, Diagnostic> {
        let text = self.0.get(source).map_or("", |s| &s.text[offset..]);
        let offset = offset + (text.len() - text.trim_start().len());
        let text = text.trim();
        let value = DeValue::parse(text).map_err(|e| self.syntax(source, offset, &e))?;
        self.node(value.get_ref(), value.span(), source, offset, 0)
    }

    fn syntax(&self, source: usize, offset: usize, e: &toml::de::Error) -> Diagnostic {
        let span = e.span().unwrap_or(0..0);
        let origin = Origin { source, span: span.start + offset..span.end + offset };
        let message = match e.message() {
            "duplicate key" => {
                let text = self.0.get(source).map_or("", |s| s.text.as_str());
                let key = text.get(origin.span.clone()).unwrap_or("a key");
                match entry_of_list(text, origin.span.start) {
                    Some(path) => format!(
                        "[{path}] stands beside [[{path}]]: an entry of a list has double brackets"
                    ),
                    None => format!(
                        "{key} is given twice here; each key and each [table] may be written once"
                    ),
                }
            }
            other => other.replace('\n', ", "),
        };
        Diagnostic::at(self, &origin, format!("not valid TOML: {message}"))
    }

    fn table(
        &self,
        table: &DeTable<'_>,
        source: usize,
        offset: usize,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Node, Diagnostic> {
        let at = |r: Range<usize>| Origin { source, span: r.start + offset..r.end + offset };
        let mut entries = Vec::new();
        for (key, value) in table {
            entries.push(Entry {
                key: key.get_ref().to_string(),
                key_origin: at(key.span()),
                node: self.node(value.get_ref(), value.span(), source, offset, depth + 1)?,
            });
        }
        Ok(Node { origin: at(span), value: Value::Table(entries) })
    }

    fn node(
        &self,
        value: &DeValue<'_>,
        span: Range<usize>,
        source: usize,
        offset: usize,
        depth: usize,
    ) -> Result<Node, Diagnostic> {
        let origin = Origin { source, span: span.start + offset..span.end + offset };
        if depth > MAX_DEPTH {
            let why = format!("values are nested more than {MAX_DEPTH} deep");
            return Err(Diagnostic::at(self, &origin, why));
        }
        let value = match value {
            DeValue::String(s) => Value::Str(s.to_string()),
            DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
                Ok(i) => Value::Int(i),
                Err(_) => {
                    return Err(Diagnostic::at(
                        self,
                        &origin,
                        "this whole number does not fit in 64 bits",
                    ));
                }
            },
            DeValue::Float(f) => match f.as_str().parse() {
                Ok(f) => Value::Float(f),
                Err(_) => return Err(Diagnostic::at(self, &origin, "not a number")),
            },
            DeValue::Boolean(b) => Value::Bool(*b),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(items) => {
                let items: Result<Vec<_>, _> = items
                    .iter()
                    .map(|v| self.node(v.get_ref(), v.span(), source, offset, depth + 1))
                    .collect();
                Value::Array(items?)
            }
            DeValue::Table(t) => return self.table(t, source, offset, span, depth),
        };
        Ok(Node { origin, value })
    }
}

/// The table at byte `at` of `text`, if it has a header with single brackets and one with double.
fn entry_of_list(text: &str, at: usize) -> Option<&str> {
    fn header(line: &str) -> Option<(bool, &str)> {
        let line = line.split('#').next()?.trim().strip_prefix('[')?.strip_suffix(']')?;
        let inner = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        Some((inner.is_some(), inner.unwrap_or(line).trim()))
    }
    let begin = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let (double, path) = header(text[begin..].lines().next()?)?;
    text.lines().filter_map(header).any(|other| other == (!double, path)).then_some(path)
}
