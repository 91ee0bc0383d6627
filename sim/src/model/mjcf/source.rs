//! XML text -> a tree of elements that knows where everything stands.

use super::MjcfError;
use super::reach::Reach;
use crate::files;
use std::path::{Path, PathBuf};

/// Elements nested deeper than this are refused (the reader recurses).
pub(super) const MAX_DEPTH: usize = 200;
/// Bytes of one model file; a robot without meshes needs some 10 kB.
const MAX_BYTES: u64 = 64 << 20;
/// Attributes of one element; the schema knows less than 100. The reader compares each with
/// all before it.
const MAX_ATTRIBUTES: usize = 1000;
/// Namespaces that one file declares; every element keeps a list of those around it.
const MAX_NAMESPACES: usize = 100;
/// Characters are counted ahead for every so many bytes of a file, so that places on a long
/// line are found at once.
const STRIDE: usize = 4096;
/// Files one model may include.
pub(super) const MAX_FILES: usize = 1000;

/// A place in one of the model's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    file: u32,
    byte: u32,
}

impl At {
    /// Where the first file begins.
    pub const START: At = At { file: 0, byte: 0 };

    /// Key that sorts places by file and position.
    pub fn order(self) -> (u32, u32) {
        (self.file, self.byte)
    }

    /// Number of its file, in the order of reading.
    pub fn file(self) -> usize {
        self.file as usize
    }
}

/// The mistake and its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub at: At,
    pub message: String,
}

impl Fault {
    pub fn new(at: At, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// Result of reading a part of a file.
pub(super) type Read<T> = Result<T, Fault>;

/// `name="value"`.
#[derive(Debug, Clone)]
pub(super) struct Attr {
    pub name: String,
    pub value: String,
    /// The name's place.
    pub at: At,
    /// The value's first character.
    value_at: At,
    /// The value stands in the file as it is here, so offsets hold.
    verbatim: bool,
}

impl Attr {
    /// An attribute that does not stand in the file, for what stands at `at`.
    pub fn made(name: &str, value: &str, at: At) -> Self {
        Self {
            name: name.to_string(),
            value: value.to_string(),
            at,
            value_at: at,
            verbatim: false,
        }
    }

    /// Gives it another value, which does not stand in the file.
    pub fn set(&mut self, value: String) {
        self.value = value;
        self.verbatim = false;
    }

    /// Place of the value's byte `offset`.
    pub fn value_at(&self, offset: usize) -> At {
        At {
            byte: self.value_at.byte + if self.verbatim { offset as u32 } else { 0 },
            ..self.value_at
        }
    }
}

/// `<name attrs>children</name>`.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub name: String,
    pub at: At,
    pub attrs: Vec<Attr>,
    pub children: Vec<Element>,
    /// Text between its children, which says nothing.
    pub stray: Option<At>,
    /// Name of a joint or actuator in keyframes of attached models.
    pub slot: Option<u32>,
    /// Only for pictures: MuJoCo leaves it out (visual shapes of URDFs).
    pub discarded: bool,
}

impl Element {
    /// An element that does not stand in the file, for what stands at `at`.
    pub fn made(name: &str, at: At) -> Self {
        Self {
            name: name.to_string(),
            at,
            attrs: Vec::new(),
            children: Vec::new(),
            stray: None,
            slot: None,
            discarded: false,
        }
    }

    /// Gives an attribute a value, whether it stands in the file or not.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.attrs.iter_mut().find(|a| a.name == name) {
            Some(attr) => attr.set(value.to_string()),
            None => self.attrs.push(Attr::made(name, value, self.at)),
        }
    }

    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| a.name == name)
    }

    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |c| c.name == name)
    }
}

struct SourceFile {
    path: PathBuf,
    text: String,
    line_starts: Vec<u32>,
    /// Characters before every [`STRIDE`]th byte.
    characters: Vec<u32>,
}

/// Blanks out an XML declaration behind blank lines, which MuJoCo's reader takes and XML
/// does not allow; everything stays in its place.
fn late_declaration(text: String) -> String {
    let start = text.len() - text.trim_start().len();
    let declared = text[start..].starts_with("<?xml ").then(|| text.find("?>"));
    match declared.flatten().filter(|_| start > 0) {
        Some(end) => {
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            let ascii = text[..end + 2].is_ascii();
            if !ascii {
                return text;
            }
            text[..end + 2]
                .chars()
                .map(blank)
                .chain(text[end + 2..].chars())
                .collect()
        }
        None => text,
    }
}

/// Characters start at bytes that are not UTF-8 continuations.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b & 0xC0 != 0x80).count()
}

impl SourceFile {
    /// Characters before a byte.
    fn characters_before(&self, byte: usize) -> usize {
        let stride = byte / STRIDE;
        let rest = &self.text.as_bytes()[stride * STRIDE..byte];
        self.characters[stride] as usize + characters(rest)
    }
}

/// Every file of a model, for places in messages.
#[derive(Default)]
pub(super) struct Sources {
    files: Vec<SourceFile>,
    /// Where includes of the model that is being read may lie.
    reach: Reach,
    /// That model's first file: others may include the same files.
    first: usize,
}

impl Sources {
    /// How many files were read.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|f| f.path.clone()).collect()
    }

    /// Line and column, both from 1; the column counts characters.
    fn line_column(&self, at: At) -> (usize, usize) {
        let file = &self.files[at.file as usize];
        let line = file.line_starts.partition_point(|s| *s <= at.byte) - 1;
        let before = |byte: u32| file.characters_before(byte as usize);
        (
            line + 1,
            1 + before(at.byte) - before(file.line_starts[line]),
        )
    }

    /// `path:line:column`, for errors.
    pub fn place(&self, at: At) -> String {
        let (line, column) = self.line_column(at);
        format!(
            "{}:{line}:{column}",
            self.files[at.file as usize].path.display()
        )
    }

    /// `file:line:column`, for lists of ignored elements.
    pub fn short_place(&self, at: At) -> String {
        let (line, column) = self.line_column(at);
        let path = &self.files[at.file as usize].path;
        let name = path
            .file_name()
            .map_or(path.to_string_lossy(), |n| n.to_string_lossy());
        format!("{name}:{line}:{column}")
    }

    pub fn error(&self, fault: Fault) -> MjcfError {
        MjcfError::Invalid {
            place: self.place(fault.at),
            message: fault.message,
        }
    }

    /// Parses a model's `text`, replacing `<include>` by the contents of the named file.
    pub fn parse(
        &mut self,
        path: &Path,
        text: String,
        reach: &Reach,
    ) -> Result<Element, MjcfError> {
        self.reach = reach.clone();
        self.first = self.files.len();
        self.parse_file(path, text, &mut Vec::new())
    }

    fn parse_file(
        &mut self,
        path: &Path,
        text: String,
        open: &mut Vec<PathBuf>,
    ) -> Result<Element, MjcfError> {
        let file = self.files.len() as u32;
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes()
                    .zip(1u32..)
                    .filter(|(b, _)| *b == b'\n')
                    .map(|(_, i)| i),
            )
            .collect();
        let strides = text.as_bytes().chunks(STRIDE).scan(0_u32, |sum, chunk| {
            *sum += characters(chunk) as u32;
            Some(*sum)
        });
        let source = SourceFile {
            path: path.to_path_buf(),
            text: text.clone(),
            line_starts,
            characters: std::iter::once(0).chain(strides).collect(),
        };
        self.files.push(source);
        if let Err((byte, why)) = countable(&text) {
            let byte = byte as u32;
            return Err(self.error(Fault::new(At { file, byte }, why)));
        }
        let text = late_declaration(text);
        let document = roxmltree::Document::parse(&text).map_err(|e| {
            let pos = e.pos();
            // roxmltree ends its message with the position, which we put in front.
            let message = e.to_string();
            let message = message.split(" at ").next().unwrap_or_default().to_string();
            let remedy = match e {
                roxmltree::Error::DtdDetected => "; a model file needs no <!DOCTYPE>, remove it",
                _ => "",
            };
            MjcfError::Invalid {
                place: format!("{}:{}:{}", path.display(), pos.row, pos.col),
                message: format!("not well-formed XML: {message}{remedy}"),
            }
        })?;
        let top = document.root_element();
        let mut root = self
            .convert(top, file, &text, 0)
            .map_err(|f| self.error(f))?;
        open.push(path.to_path_buf());
        self.expand_includes(&mut root, open, 0)?;
        open.pop();
        Ok(root)
    }

    fn convert(&self, node: roxmltree::Node, file: u32, text: &str, depth: usize) -> Read<Element> {
        let at = |byte: usize| At {
            file,
            byte: byte as u32,
        };
        let here = at(node.range().start);
        if depth > MAX_DEPTH {
            return Err(Fault::new(
                here,
                format!("elements are nested more than {MAX_DEPTH} deep"),
            ));
        }
        let attrs = node
            .attributes()
            .map(|a| Attr {
                name: a.name().to_string(),
                // As XML has it for those that are no references: a name is a line at most.
                value: a.value().replace(['\n', '\r'], " "),
                at: at(a.range().start),
                value_at: at(a.range_value().start),
                verbatim: text
                    .get(a.range_value())
                    .is_some_and(|t| t.len() == a.value().len()),
            })
            .collect();
        let mut children = Vec::new();
        let mut stray = None;
        for child in node.children() {
            if child.is_element() {
                children.push(self.convert(child, file, text, depth + 1)?);
            } else if child.is_text()
                && let Some(words) = child.text().filter(|t| !t.trim().is_empty())
            {
                let skip = words.len() - words.trim_start().len();
                stray.get_or_insert(at(child.range().start + skip));
            }
        }
        Ok(Element {
            name: node.tag_name().name().to_string(),
            at: here,
            attrs,
            children,
            stray,
            slot: None,
            discarded: false,
        })
    }

    fn expand_includes(
        &mut self,
        element: &mut Element,
        open: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<(), MjcfError> {
        // Included files nest inside the includer: the bound holds for the whole tree.
        if depth > MAX_DEPTH {
            return Err(self.error(Fault::new(
                element.at,
                format!("elements are nested more than {MAX_DEPTH} deep"),
            )));
        }
        let mut children = Vec::with_capacity(element.children.len());
        for mut child in std::mem::take(&mut element.children) {
            if child.name == "include" {
                let included = self.include(&child, open, depth)?;
                children.extend(included);
            } else {
                self.expand_includes(&mut child, open, depth + 1)?;
                children.push(child);
            }
        }
        element.children = children;
        Ok(())
    }

    fn include(
        &mut self,
        element: &Element,
        open: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<Vec<Element>, MjcfError> {
        let (path, attr) = self
            .included_path(element, open.last())
            .map_err(|f| self.error(f))?;
        let refuse = |s: &Self, why: String| s.error(Fault::new(attr, why));
        if open.contains(&path) || self.files[self.first..].iter().any(|f| f.path == path) {
            let why = format!(
                "{} is included a second time; MJCF allows it once",
                path.display()
            );
            return Err(refuse(self, why));
        }
        if self.files.len() >= MAX_FILES || open.len() + depth > MAX_DEPTH {
            let why = format!("more than {MAX_FILES} files, or includes too deep");
            return Err(refuse(self, why));
        }
        let text = read_text(&path)
            .map_err(|e| refuse(self, format!("cannot read {}: {e}", path.display())))?;
        let root = self.parse_file(&path, text, open)?;
        if root.name != "mujoco" && root.name != "mujocoinclude" {
            let why = format!(
                "an included file starts with <mujoco> or <mujocoinclude>, this one with <{}>",
                root.name
            );
            return Err(self.error(Fault::new(root.at, why)));
        }
        Ok(root.children)
    }

    /// The file an `<include>` in `includer` names: from the model's folder, else beside
    /// the includer.
    fn included_path(&self, element: &Element, includer: Option<&PathBuf>) -> Read<(PathBuf, At)> {
        let Some(attr) = element.attr("file") else {
            return Err(Fault::new(element.at, "<include> needs file=\"...\""));
        };
        if let Some(other) = element.attrs.iter().find(|a| a.name != "file") {
            let why = format!(
                "unknown attribute \"{}\" of <include>; it has file",
                other.name
            );
            return Err(Fault::new(other.at, why));
        }
        if let Some(child) = element.children.first() {
            return Err(Fault::new(child.at, "<include> has no children"));
        }
        let at = attr.value_at(0);
        let mut names = vec![PathBuf::from(&attr.value)];
        let folder = includer.and_then(|f| f.parent());
        names.extend(folder.and_then(|f| Some(self.reach.inner(f)?.join(&attr.value))));
        let path = self.reach.first(&names);
        Ok((path.map_err(|why| Fault::new(at, why))?, at))
    }
}

/// Refuses text whose elements have more attributes, or that has more namespaces, than can
/// be told apart in little time; with the place. Anything else that is wrong is the XML
/// reader's to say.
fn countable(text: &str) -> Result<(), (usize, String)> {
    let bytes = text.as_bytes();
    let (mut at, mut namespaces) = (0, 0);
    while let Some(open) = bytes[at..].iter().position(|b| *b == b'<') {
        at += open;
        let rest = &text[at..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((begin, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let Some(length) = rest[begin.len()..].find(end) else {
                return Ok(());
            };
            at += begin.len() + length + end.len();
            continue;
        }
        let (tag, mut attributes) = (at, 0);
        at += 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'>' => break,
                b'"' | b'\'' => {
                    attributes += 1;
                    let Some(length) = bytes[at + 1..].iter().position(|b| b == byte) else {
                        return Ok(());
                    };
                    at += length + 1;
                }
                b'x' if text[at..].starts_with("xmlns") => namespaces += 1,
                _ => {}
            }
            at += 1;
        }
        if attributes > MAX_ATTRIBUTES {
            let why = format!("an element with {attributes} attributes; {MAX_ATTRIBUTES} are read");
            return Err((tag, why));
        }
        if namespaces > MAX_NAMESPACES {
            let why = format!("more than {MAX_NAMESPACES} namespaces (xmlns) in a file");
            return Err((tag, why));
        }
    }
    Ok(())
}

/// Reads a model file; refuses files that are too large.
pub(super) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    files::read(path, MAX_BYTES)
}

/// As [`read_bytes`], of text.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    files::read_text(path, MAX_BYTES)
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
