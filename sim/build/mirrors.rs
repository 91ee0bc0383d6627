//! Declarations of the kernels' headers for Rust: their numbers (every `enum` that begins a
//! line), structs, and tables of functions. `trainer/learn/build.rs` reads the learner's the same way.
//!
//! In a struct that has functions pointers stay pointers. In others they are addresses, and the
//! struct is `Pod`: the compiler refuses padding, which has to be a field instead. Comments
//! become documentation; one that says "null" makes its function an `Option`.

use std::fmt::Write;
use std::path::Path;

/// A header, the type that its numbers have in Rust, and those of its structs that Rust has.
pub type Header = (&'static str, &'static str, &'static [&'static str]);

/// Lists of pointers in structs, each a field with a type of its own in Rust.
const LISTS: [(&str, &str, &str); 4] = [
    ("OSTLER_EPISODE(", "episode", "EpisodeAddresses"),
    ("OSTLER_STEP_BUFFERS(", "buffers", "StepBufferAddresses"),
    ("OSTLER_TABLES(", "tables", "TableAddresses"),
    ("OSTLER_WORLD(", "world", "WorldAddresses"),
];

/// Types with names of their own in Rust.
const TYPES: [(&str, &str); 11] = [
    ("int", "i32"),
    ("unsigned", "u32"),
    ("long", "i64"),
    ("long long", "i64"),
    ("unsigned long", "u64"),
    ("unsigned long long", "u64"),
    ("size_t", "usize"),
    ("float", "f32"),
    ("double", "f64"),
    ("char", "u8"),
    ("void", "std::ffi::c_void"),
];

/// Writes the declarations of headers in a folder into a file.
pub fn write(folder: &Path, headers: &[Header], path: &Path) -> Result<(), String> {
    let mut rust = String::new();
    for (name, numbers, structs) in headers {
        let file = folder.join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        let text = std::fs::read_to_string(&file)
            .map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        let failed = |what: &str| format!("{}: cannot read `{what}`", file.display());
        enums(&text, numbers, &mut rust).ok_or_else(|| failed("enum"))?;
        for name in *structs {
            structure(&text, name, &mut rust).map_err(|line| failed(&line))?;
        }
    }
    std::fs::write(path, rust).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// All numbers of a header.
fn enums(text: &str, numbers: &str, rust: &mut String) -> Option<()> {
    for (at, _) in text.match_indices("\nenum ") {
        let (_, body) = text[at..].split_once('{')?;
        let (body, _) = body.split_once("};")?;
        let mut next = "0".to_string();
        for (code, says) in body.lines().map(commented) {
            for entry in code.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
                let (name, value) = match entry.split_once('=') {
                    Some((name, value)) => (name.trim_end(), number(value)),
                    None => (entry, next),
                };
                if name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                    return None;
                }
                documented(rust, says);
                let _ = writeln!(rust, "pub const {name}: {numbers} = {value};");
                next = format!("{name} + 1");
            }
        }
    }
    Some(())
}

/// A number's value: `1u << 31`, `~0u`, `OTHER + 6`.
fn number(value: &str) -> String {
    let word = |word: &str| {
        let word = word.replace('~', "!");
        match word.contains(|c: char| c.is_ascii_digit()) && !word.contains('_') {
            true => word.trim_end_matches('u').to_string(),
            false => word,
        }
    };
    value.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// A struct; the line that cannot be read is an error.
fn structure(text: &str, name: &str, rust: &mut String) -> Result<(), String> {
    let head = format!("struct {name} {{");
    let (before, body) = text.split_once(&head).ok_or(&head)?;
    let (body, _) = body.split_once("\n};").ok_or(&head)?;
    let mut above: Vec<_> =
        before.lines().rev().skip(usize::from(!before.ends_with('\n'))).collect();
    let comment = above.iter().take_while(|line| line.starts_with("//")).count();
    above.truncate(comment);
    above.reverse();
    let above: Vec<_> = above.iter().map(|line| line[2..].trim()).collect();
    let raw = body.contains("(*");
    documented(rust, &above.join(" "));
    rust.push_str("#[derive(Debug, Clone, Copy");
    rust.push_str(if raw { "" } else { ", bytemuck::Pod, bytemuck::Zeroable" });
    let _ = writeln!(rust, ")]\n#[repr(C)]\npub struct {name} {{");
    let mut says = String::new();
    for (code, comment) in body.lines().map(commented) {
        says.push_str(comment);
        if code.is_empty() {
            says.push(' ');
            continue;
        }
        for field in fields(code, raw, says.contains("null")).ok_or(code)? {
            documented(rust, says.trim());
            let _ = writeln!(rust, "    pub {field},");
        }
        says.clear();
    }
    rust.push_str("}\n");
    Ok(())
}

/// What a line of a struct declares.
fn fields(code: &str, raw: bool, nullable: bool) -> Option<Vec<String>> {
    if code.starts_with("typedef ") {
        return Some(Vec::new());
    }
    if let Some((_, name, of)) = LISTS.iter().find(|list| code.starts_with(list.0)) {
        return Some(vec![format!("{name}: {of}")]);
    }
    let code = code.strip_suffix(';')?;
    let Some((result, function)) = code.split_once(" (*") else {
        return declared(code, raw);
    };
    let (name, arguments) = function.strip_suffix(')')?.split_once(")(")?;
    let of = |argument: &str| Some(declared(argument.trim(), true)?.concat());
    let arguments = arguments.split(',').map(of).collect::<Option<Vec<_>>>()?.join(", ");
    let mut of = format!("unsafe extern \"C\" fn({arguments})");
    if result != "void" {
        let _ = write!(of, " -> {}", pointed(result, raw)?);
    }
    Some(vec![if nullable { format!("{name}: Option<{of}>") } else { format!("{name}: {of}") }])
}

/// `const float *a, *b[2]`: names with their types in Rust.
fn declared(code: &str, raw: bool) -> Option<Vec<String>> {
    let end = code.find([',', '[']).unwrap_or(code.len());
    let (of, _) = code[..end].split_at(code[..end].rfind([' ', '*'])? + 1);
    let base = of.trim_end_matches([' ', '*']);
    let entry = |entry: &str| {
        let name = entry.trim_start_matches([' ', '*']);
        let stars = entry.len() - entry.replace('*', "").len();
        let of = pointed(&format!("{base}{}", "*".repeat(stars)), raw)?;
        match name.split_once('[') {
            Some((name, count)) => Some(format!("{name}: [{of}; {}]", count.strip_suffix(']')?)),
            None => Some(format!("{name}: {of}")),
        }
    };
    code[base.len()..].split(',').map(entry).collect()
}

/// A type, or a pointer to one.
fn pointed(of: &str, raw: bool) -> Option<String> {
    let (base, pointer) = match of.strip_suffix('*') {
        Some(base) => (base.trim_end(), true),
        None => (of, false),
    };
    let (constant, base) = match base.strip_prefix("const ") {
        Some(base) => (true, base),
        None => (false, base),
    };
    let base = base.split('<').next()?.trim();
    let known = TYPES.iter().find(|known| known.0 == base).map_or(base, |known| known.1);
    Some(match (pointer, raw, constant) {
        (false, ..) => known.to_string(),
        (true, false, _) => "Address".to_string(),
        (true, true, true) => format!("*const {known}"),
        (true, true, false) => format!("*mut {known}"),
    })
}

/// A line's code and its comment.
fn commented(line: &str) -> (&str, &str) {
    let (code, says) = line.split_once("//").unwrap_or((line, ""));
    (code.trim(), says.trim())
}

/// A comment as documentation, in which brackets are no links.
fn documented(rust: &mut String, says: &str) {
    if !says.is_empty() {
        let _ = writeln!(rust, "#[doc = {:?}]", says.replace('[', "\\[").replace('<', "\\<"));
    }
}
