//! Headers of native functions: found, read, held against their checksums.

use crate::config::{ConfigError, Header, Leave, NativeCode, TaskConfig};
use ostler_base::files;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a header with all that it includes.
const MOST_BYTES: usize = 1 << 20;
/// Most files of a header.
const MOST_FILES: usize = 64;
/// Endings of headers.
const ENDINGS: [&str; 3] = [".cuh", ".h", ".hpp"];

/// Reads the headers of `[[task.native]]` into `task.native_code`, with `leave` for what may be
/// done with them, and fills in the terms' checksums. Paths count from `folder`, that of the
/// configuration. A header lies in one of `within` or below it: the folders of the
/// configuration's files.
///
/// # Errors
/// A header is missing, lies elsewhere or has another checksum; it includes something that it
/// cannot have. Nothing has changed then.
pub fn read_headers(
    task: &mut TaskConfig,
    folder: &Path,
    within: &[PathBuf],
    leave: Leave,
) -> Result<(), ConfigError> {
    let mut headers: Vec<Arc<Header>> = Vec::with_capacity(task.native.len());
    let mut sums = Vec::with_capacity(task.native.len());
    for (i, term) in task.native.iter().enumerate() {
        let key = format!("task.native[{i}].file");
        let header = header(&term.file, folder, within)
            .map_err(|(why, help)| ConfigError::new(&key, why).help(help))?;
        let sum = checksum(&header);
        if let Some(wanted) = term.checksum.as_ref().filter(|w| **w != sum) {
            let why = format!(
                "{} is not the file that the checksum is of: it has {sum}, not {wanted}",
                header.path.display()
            );
            return Err(ConfigError::new(format!("task.native[{i}].checksum"), why)
                .help("restore the file; or, if you want the file as it is, leave the key out"));
        }
        // Terms of one header share it.
        let known = headers.iter().find(|h| h.files == header.files);
        let header = known.cloned().unwrap_or_else(|| Arc::new(header));
        headers.push(header);
        sums.push(sum);
    }
    for (term, sum) in task.native.iter_mut().zip(sums) {
        term.checksum = Some(sum);
    }
    task.native_code = NativeCode { headers, leave };
    Ok(())
}

/// BLAKE3 of names and texts.
fn checksum(header: &Header) -> String {
    let mut hash = blake3::Hasher::new();
    for (name, text) in &header.files {
        for part in [name, text] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
    }
    hash.finalize().to_hex().to_string()
}

/// A mistake and its remedy.
type Wrong = (String, String);

fn wrong<T>(why: String, help: &str) -> Result<T, Wrong> {
    Err((why, help.to_string()))
}

/// Reads a header and all that it includes.
fn header(file: &str, folder: &Path, within: &[PathBuf]) -> Result<Header, Wrong> {
    if !ENDINGS.iter().any(|e| file.ends_with(e)) {
        let why = format!("\"{file}\" is not the name of a header");
        return wrong(why, "file = \"grasp.cuh\", for example; or .h, .hpp");
    }
    let path = folder.join(file);
    let inside = |root: &PathBuf| files::lies_within(&path, root);
    if !within.iter().any(inside) {
        let why = format!("\"{file}\" is outside of the configuration's folder");
        return wrong(why, "put the header beside the configuration or below it");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut reader = Reader {
        folder: path.parent().unwrap_or(Path::new("")).to_path_buf(),
        within,
        files: Vec::new(),
        bytes: 0,
    };
    reader.file(&name, None)?;
    Ok(Header { path, files: reader.files })
}

struct Reader<'a> {
    folder: PathBuf,
    /// Where files may lie.
    within: &'a [PathBuf],
    files: Vec<(String, String)>,
    bytes: usize,
}

impl Reader<'_> {
    /// Reads the file `name` of the header's folder, unless that has been done, and what it
    /// includes. `by`: where it is included.
    fn file(&mut self, name: &str, by: Option<&str>) -> Result<(), Wrong> {
        if self.files.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let path = self.folder.join(name);
        let by = by.map_or(String::new(), |by| format!(" (included at {by})"));
        let odd = |c: char| !c.is_alphanumeric() && !"._-+ /".contains(c);
        if name.contains(odd) {
            let why = format!("\"{name}\" cannot be the name of a header{by}");
            return wrong(why, "letters, digits, spaces, and . _ - + are allowed");
        }
        if self.files.len() >= MOST_FILES {
            return wrong(format!("more than {MOST_FILES} files{by}"), "join some");
        }
        let inside = |root: &PathBuf| files::lies_within(&path, root);
        if !self.within.iter().any(inside) {
            let why = format!("{}{by} leads outside of the configuration's folder", path.display());
            return wrong(why, "put the file itself there in the place of the link");
        }
        let text = files::read_text(&path, MOST_BYTES as u64).map_err(|e| {
            let shown = path.display();
            match e.kind() {
                ErrorKind::NotFound => (
                    format!("there is no file {shown}{by}"),
                    "the path is relative to the file that has it".to_string(),
                ),
                ErrorKind::FileTooLarge => (
                    format!("{shown}{by}: {e}"),
                    "a header is code; numbers of a table can be inputs or columns of a \
                     height field"
                        .to_string(),
                ),
                _ => (
                    format!("cannot read {shown}{by}: {e}"),
                    "a header is a text file in UTF-8".to_string(),
                ),
            }
        })?;
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            let why = format!("{}{by}: more than {MOST_BYTES} bytes", path.display());
            return wrong(why, "with all that a header includes");
        }
        if let Some((line, what)) = brings_in(&text) {
            let why = format!("{name}:{line}: {what} is not to be had here");
            return wrong(why, "#include \"FILE\" on a line of its own takes a file in");
        }
        self.files.push((name.to_string(), text.clone()));
        for (number, line) in text.lines().enumerate() {
            let at = || format!("{name}:{}", number + 1);
            match included(line) {
                None => {}
                Some(Included::Own(other)) => {
                    let Some(other) = beside(name, other) else {
                        let why = format!("{}: {} leaves the header's folder", at(), line.trim());
                        return wrong(why, "put the file beside the header or below it");
                    };
                    self.file(&other, Some(&at()))?;
                }
                Some(Included::Other) => {
                    let why = format!("{}: {} is not to be had here", at(), line.trim());
                    return wrong(
                        why,
                        "the text is compiled for GPUs, too, which have no system headers; \
                         mathematics is in namespace ostler (docs/native.md)",
                    );
                }
            }
        }
        Ok(())
    }
}

/// Attributes whose texts an assembler reads: wherever they have any, and the others where there
/// are attributes or definitions.
const ASSEMBLED: [&str; 5] = ["section", "alias", "ifunc", "symver", "weakref"];
const OTHERS: [&str; 2] = ["copy", "patchable_function_entry"];

/// What would bring a text in that is neither copied nor in the checksum, and its line: a
/// directive in another spelling than [`included`] knows, or an assembler's.
fn brings_in(text: &str) -> Option<(usize, String)> {
    for (i, line) in text.split('\n').enumerate() {
        if line.strip_suffix('\r').unwrap_or(line).contains('\r') {
            return Some((i + 1, "a carriage return within a line".into()));
        }
        if ["??/", "??="].iter().any(|sign| line.contains(sign)) {
            return Some((i + 1, "a trigraph".into()));
        }
    }
    let lines = logical_lines(text);
    for (i, (number, line)) in lines.iter().enumerate() {
        let number = *number;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names = || line.split(|c: char| !word(c));
        let told = |name: &&str| {
            let plain = name.trim_matches('_');
            let attribute = ASSEMBLED.contains(&plain) || OTHERS.contains(&plain);
            plain == "asm" || attribute && attributes(line)
        };
        if let Some(name) = names().find(told) {
            return Some((number, name.to_string()));
        }
        let rest = || lines[i + 1..].iter().map(|line| line.1.as_str());
        if let Some(name) = ASSEMBLED.iter().find(|name| opens(name, line, rest())) {
            return Some((number, name.to_string()));
        }
        if line.contains("R\"") {
            return Some((number, "a raw string".into()));
        }
        // Names that are made of parts could be any of these.
        if ["##", "%:%:"].iter().any(|sign| line.contains(sign)) {
            return Some((number, "##".into()));
        }
        let start = line.trim_start();
        let rest = ["#", "%:"].iter().find_map(|sign| start.strip_prefix(sign));
        let rest = rest.map_or("", str::trim_start);
        let directive = rest.split(|c: char| !word(c)).next().unwrap_or_default();
        let plain = || text.lines().nth(number - 1).is_some_and(|line| included(line).is_some());
        match directive {
            "include" if plain() => {}
            "include" | "include_next" | "import" | "embed" => {
                return Some((number, format!("#{directive} in this form")));
            }
            _ => {}
        }
    }
    None
}

/// Whether a line has attributes, or defines what may stand in some.
fn attributes(line: &str) -> bool {
    ["__attribute", "[[", "define"].iter().any(|sign| line.contains(sign))
}

/// Whether a bracket opens behind this name, with underscores around it or none, in a line or in
/// the `rest`, the lines that follow.
fn opens<'a>(name: &str, line: &'a str, rest: impl Iterator<Item = &'a str> + Clone) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].trim_end_matches('_');
        let after = line[at + name.len()..].trim_start_matches('_');
        let mut next = std::iter::once(after).chain(rest.clone()).map(str::trim_start);
        !before.ends_with(word)
            && !after.starts_with(word)
            && next.find(|text| !text.is_empty()).is_some_and(|text| text.starts_with('('))
    })
}

/// Characters with the numbers of their lines, without the ends of lines that are continued: as
/// for GCC, blanks may stand between the backslash and the end.
fn spliced(text: &str) -> Vec<(char, usize)> {
    let (mut all, mut number, mut rest) = (Vec::with_capacity(text.len()), 1, text);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let blank = |c: char| c.is_ascii_whitespace() && c != '\n' || c == '\u{b}';
        if c == '\\'
            && let Some(after) = rest.trim_start_matches(blank).strip_prefix('\n')
        {
            number += 1;
            rest = after;
            continue;
        }
        all.push((c, number));
        number += usize::from(c == '\n');
    }
    all
}

/// Lines as the preprocessor has them, with their numbers: continued ones are joined, comments
/// are a space, and of texts in quotes the opening ones are left.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    enum In {
        Code,
        Line,
        Block,
        Text(char),
    }
    let text = spliced(text);
    let (mut lines, mut line, mut first) = (Vec::new(), String::new(), 1);
    let (mut at, mut i) = (In::Code, 0);
    while let Some(&(c, number)) = text.get(i) {
        i += 1;
        let next = text.get(i).map(|next| next.0);
        match (&at, c) {
            (In::Block, '*') if next == Some('/') => {
                i += 1;
                at = In::Code;
            }
            (In::Block, _) => {}
            (_, '\n') => {
                lines.push((first, std::mem::take(&mut line)));
                first = number + 1;
                at = In::Code;
            }
            (In::Line, _) => {}
            (In::Code, '/') if next == Some('/') => at = In::Line,
            (In::Code, '/') if next == Some('*') => {
                i += 1;
                line.push(' ');
                at = In::Block;
            }
            (In::Text(_), '\\') => i += usize::from(next.is_some_and(|c| c != '\n')),
            (In::Text(quote), _) if c == *quote => {
                line.push(' ');
                at = In::Code;
            }
            (In::Text(_), _) => {}
            (In::Code, '\'') if in_number(&line) => {}
            (In::Code, '"' | '\'') => {
                line.push(c);
                at = In::Text(c);
            }
            _ => line.push(c),
        }
    }
    lines.push((first, line));
    lines
}

/// Whether code ends within a number, where `'` separates digits.
fn in_number(code: &str) -> bool {
    let word = code.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next();
    word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// What a line includes.
#[derive(Debug, PartialEq)]
pub enum Included<'a> {
    /// A file by its name.
    Own(&'a str),
    /// One of the system's, or a macro's.
    Other,
}

/// What `line` includes, if it is such a line.
pub fn included(line: &str) -> Option<Included<'_>> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?;
    if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let name = rest.trim_start().strip_prefix('"');
    Some(match name.and_then(|n| n.split_once('"')) {
        Some((name, _)) => Included::Own(name),
        None => Included::Other,
    })
}

/// The name, from the header's folder, of what the file `name` there calls `other`; none
/// where that leaves the folder.
pub fn beside(name: &str, other: &str) -> Option<String> {
    if other.is_empty() || other.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in other.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_include_are_known_by_what_they_include() {
        assert_eq!(included("#include \"a/b.h\""), Some(Included::Own("a/b.h")));
        assert_eq!(included("  #  include\"x.cuh\" // y"), Some(Included::Own("x.cuh")));
        assert_eq!(included("#include <math.h>"), Some(Included::Other));
        assert_eq!(included("#include NAME"), Some(Included::Other));
        assert_eq!(included("#included"), None);
        assert_eq!(included("int include;"), None);
    }

    #[test]
    fn nothing_is_brought_in_past_the_copies() {
        for (text, line) in [
            ("int a;\n#import \"x.h\"\n", 2),
            ("%:include \"/etc/passwd\"", 1),
            ("#/**/include \"x.h\"", 1),
            ("#/*\n*/include \"x.h\"", 1),
            ("#inc\\\nlude \"x.h\"", 1),
            ("#include_next <math.h>", 1),
            ("#embed \"x.bin\"", 1),
            ("asm(\".incbin \\\"x\\\"\");", 1),
            ("int x;\n__asm__ volatile(\"nop\");", 2),
            ("const char* s = R\"(\" /* \")\";\n#import \"x\"", 1),
            ("/* \" */ %:import \"x\"", 1),
            ("int a = 1'0; const char* s = \"' /* \";\n#import \"x\"", 2),
            ("#inc\\ \nlude \"x.h\"", 1),
            ("#inc\\\t\r\nlude \"x.h\"", 1),
            ("int q;\n#inc\\\rlude \"x.h\"", 2),
            ("int q;\r#include \"x.h\"", 1),
            ("/* x *\\\n/ #include \"x.h\"\n/* */", 1),
            ("/\\\n* \" */ #include \"x.h\"", 1),
            ("#inc??/\nlude \"x.h\"", 1),
            ("#define J(a,b) a##b\nJ(as,m)(\"nop\");", 1),
            ("int a;\n__attribute__((section(\"a\\n.incbin\"))) char s;", 2),
            ("#define S section(\"a\\n.incbin\")", 1),
            ("int a [[gnu::__section__(\"a\")]];", 1),
            ("int a __attribute__((\nsection(\"a\\n.incbin\")));", 2),
            ("int a AT((alias // of\n\n (\"a\\n.incbin\")));", 1),
        ] {
            assert_eq!(brings_in(text).map(|found| found.0), Some(line), "{text}");
        }
        for text in [
            "#include \"a.h\"\n  #  include\"b.h\" // asm\n",
            "// #import\n/* asm\n%:include \"x\" */ int plasma;",
            "#pragma once\n#define A \\\n  1\nfloat x = 'a' + \"/*\"[0];\n",
            "int section = 1; // a \\ b \\\n##\nfloat copy(float x);",
            "const char *s = \"asm in VR\", *t = \"R\"; int n = 1'000'000; char c = u8'\"';",
        ] {
            assert_eq!(brings_in(text), None, "{text}");
        }
    }

    #[test]
    fn names_count_from_the_file_and_stay_in_the_headers_folder() {
        let of = |name, other| beside(name, other);
        assert_eq!(of("a.cuh", "b.h").as_deref(), Some("b.h"));
        assert_eq!(of("x/a.cuh", "b.h").as_deref(), Some("x/b.h"));
        assert_eq!(of("x/a.cuh", "../b.h").as_deref(), Some("b.h"));
        assert_eq!(of("x/a.cuh", "./y//b.h").as_deref(), Some("x/y/b.h"));
        for out in ["../b.h", "/b.h", "y/../../b.h", ""] {
            assert_eq!(of("a.cuh", out), None, "{out}");
        }
    }
}
