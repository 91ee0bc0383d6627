//! XML text -> a tree of elements that knows where everything stands.

use super::element::{At, Attr, Element, Fault, MAX_DEPTH, Read};
use super::encoding::decode;
use super::error::MjcfError;
use super::reach::Reach;
use super::xml;
use ostler_base::files;
use std::path::{Path, PathBuf};

/// Bytes of one model file; a robot without meshes needs some 10 kB.
const MAX_BYTES: u64 = 64 << 20;
/// Characters are counted ahead for every so many bytes of a file, so that places on a long
/// line are found at once.
const STRIDE: usize = 4096;
/// Files one model may include.
pub(super) const MAX_FILES: usize = 1000;

struct SourceFile {
    path: PathBuf,
    text: String,
    line_starts: Vec<u32>,
    /// Characters before every [`STRIDE`]th byte.
    characters: Vec<u32>,
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
    /// What stands behind the ends of root elements.
    pub unread: Vec<At>,
}

impl Sources {
    /// How many files were read.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// The first file's text with other values of some attributes.
    pub(crate) fn with_values(&self, mut values: Vec<(&Attr, String)>) -> String {
        let mut text = self.files.first().map_or(String::new(), |f| f.text.clone());
        values.retain(|(attr, _)| attr.value_at(0).file() == 0);
        // From the end, so that places hold.
        values.sort_by_key(|(attr, _)| std::cmp::Reverse(attr.value_at(0).byte()));
        for (attr, value) in values {
            let start = attr.value_at(0).byte();
            let quote = text.get(..start).and_then(|before| before.chars().last());
            let length = quote.and_then(|q| text.get(start..)?.find(q));
            if let Some(length) = length {
                text.replace_range(start..start + length, &written(&value));
            }
        }
        text
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|f| f.path.clone()).collect()
    }

    /// Line and column, both from 1; the column counts characters.
    fn line_column(&self, at: At) -> (usize, usize) {
        let file = &self.files[at.file()];
        let line = file.line_starts.partition_point(|s| *s as usize <= at.byte()) - 1;
        let before = |byte| file.characters_before(byte);
        (line + 1, 1 + before(at.byte()) - before(file.line_starts[line] as usize))
    }

    /// `path:line:column`, for errors.
    pub(crate) fn place(&self, at: At) -> String {
        let (line, column) = self.line_column(at);
        format!("{}:{line}:{column}", self.files[at.file()].path.display())
    }

    /// `file:line:column`, for lists of ignored elements.
    pub(crate) fn short_place(&self, at: At) -> String {
        let (line, column) = self.line_column(at);
        let path = &self.files[at.file()].path;
        let name = path.file_name().map_or(path.to_string_lossy(), |n| n.to_string_lossy());
        format!("{name}:{line}:{column}")
    }

    pub(crate) fn error(&self, fault: Fault) -> MjcfError {
        MjcfError::Invalid { place: self.place(fault.at), message: fault.message }
    }

    /// Parses a model's `text`, replacing `<include>` by the contents of the named file.
    pub(crate) fn parse(
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
            .chain(text.bytes().zip(1u32..).filter(|(b, _)| *b == b'\n').map(|(_, i)| i))
            .collect();
        let strides = text.as_bytes().chunks(STRIDE).scan(0_u32, |sum, chunk| {
            *sum += characters(chunk) as u32;
            Some(*sum)
        });
        let characters = std::iter::once(0).chain(strides).collect();
        let source = SourceFile { path: path.to_path_buf(), text, line_starts, characters };
        self.files.push(source);
        let read = xml::parse(file, &self.files[file as usize].text);
        let (mut root, behind) = read.map_err(|f| self.error(f))?;
        self.unread.extend(behind);
        open.push(path.to_path_buf());
        self.expand_includes(&mut root, open, 0)?;
        open.pop();
        Ok(root)
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
        let (path, attr) = self.included_path(element, open.last()).map_err(|f| self.error(f))?;
        let refuse = |s: &Self, why: String| s.error(Fault::new(attr, why));
        if open.contains(&path) || self.files[self.first..].iter().any(|f| f.path == path) {
            let why = format!("{} is included a second time; MJCF allows it once", path.display());
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
            let why = format!("unknown attribute \"{}\" of <include>; it has file", other.name);
            return Err(Fault::new(other.at, why));
        }
        if let Some(child) = element.children.first() {
            return Err(Fault::new(child.at, "<include> has no children"));
        }
        let at = attr.value_at(0);
        let folder = includer.and_then(|f| f.parent());
        let path = self.reach.file(&attr.value, folder);
        Ok((path.map_err(|why| Fault::new(at, why))?, at))
    }
}

/// Reads a model file; refuses files that are too large.
pub(super) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    files::read(path, MAX_BYTES)
}

/// As [`read_bytes`], of text.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    Ok(decode(read_bytes(path)?))
}

/// A value as it stands in an attribute.
fn written(value: &str) -> String {
    let mut text = value.replace('&', "&amp;");
    for (character, name) in [('<', "&lt;"), ('"', "&quot;"), ('\'', "&apos;")] {
        text = text.replace(character, name);
    }
    text
}

/// The text of a file, if its bytes are not that text in UTF-8.
pub(super) fn recoded(path: &Path) -> std::io::Result<Option<String>> {
    let bytes = read_bytes(path)?;
    let text = decode(bytes.clone());
    Ok((text.as_bytes() != bytes.as_slice()).then_some(text))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
