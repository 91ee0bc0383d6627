//! A source as far as it means something: for hashes that outlive comments, formatting, and code
//! that moves to another module or crate.

use std::path::Path;

/// What is hashed of a file: Rust and C++ by their words, all else as it is.
pub fn of(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let text = || String::from_utf8_lossy(bytes);
    match extension {
        "rs" => without_paths(&words(&text())).join("\n").into_bytes(),
        "cpp" | "cuh" | "h" => words(&text()).join("\n").into_bytes(),
        _ => bytes.to_vec(),
    }
}

/// Names, numbers, strings and single marks, without comments and blanks.
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let (length, counts) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |at| at + 2), false)
        } else if c.is_whitespace() {
            (c.len_utf8(), false)
        } else if let Some(end) = raw_string(rest) {
            (end, true)
        } else if c == '"' {
            (quoted(rest, '"'), true)
        } else if c == '\'' && is_character(rest) {
            (quoted(rest, '\''), true)
        } else if name(c) {
            (rest.find(|c| !name(c)).unwrap_or(rest.len()), true)
        } else {
            (c.len_utf8(), true)
        };
        let (word, after) = rest.split_at(length);
        words.extend(counts.then_some(word));
        rest = after;
    }
    words
}

/// Where Rust's `r"..."` or `r#"..."#` ends, if the text begins with one.
fn raw_string(text: &str) -> Option<usize> {
    let open = text.strip_prefix('r')?;
    let hashes = open.len() - open.trim_start_matches('#').len();
    let body = open[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close)?;
    Some(2 + hashes + end + close.len())
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |at| at + 2)
}

/// `'a'` and `'\n'`, not the lifetime `'a`.
fn is_character(text: &str) -> bool {
    let mut rest = text.chars().skip(1);
    match rest.next() {
        Some('\\') => true,
        Some(_) => rest.next() == Some('\''),
        None => false,
    }
}

/// Types whose names look like modules'.
const TYPES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

/// Rust without what changes when code moves: `use`, `mod name;`, visibility, and modules before
/// names. Without commas before a bracket that closes, too, which the formatter adds.
fn without_paths<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut at = 0;
    let after = |from: usize, mark: &str| {
        let found = words[from..].iter().position(|w| *w == mark);
        found.map_or(words.len(), |found| from + found + 1)
    };
    while let Some(word) = words.get(at) {
        let begins = kept.last().is_none_or(|w| [";", "{", "}", "]"].contains(w));
        let next = |k: usize| words.get(at + k).copied().unwrap_or_default();
        let module =
            word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') && !TYPES.contains(word);
        if begins && (*word == "use" || *word == "mod" && next(2) == ";") {
            at = after(at, ";");
        } else if *word == "pub" {
            at = if next(1) == "(" && ["crate", "super", "in", "self"].contains(&next(2)) {
                after(at, ")")
            } else {
                at + 1
            };
        } else if module && next(1) == ":" && next(2) == ":" && next(3) != "<" {
            at += 3;
        } else {
            if [")", "]", "}"].contains(word) && kept.last() == Some(&",") {
                kept.pop();
            }
            kept.push(word);
            at += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Vec<u8> {
        of(Path::new("a.rs"), text.as_bytes())
    }

    #[test]
    fn code_that_moves_means_the_same() {
        let here = "//! Here.\nuse crate::model::{Model, mjcf};\nmod parts;\n\
                    pub(crate) fn f(a: &'static str) -> char {\n    super::g::<u8>(a, 'b'); crate::model::h(x[..]) // so\n}\n";
        let there = "use ostler_model::Model;\nuse ostler_model::mjcf;\n/* There. */\n\
                     pub fn f(\n    a: &'static str,\n) -> char {\n    g::<u8>(a, 'b');\n    ostler_model::h(x[..])\n}\n";
        assert_eq!(rust(here), rust(there));
    }

    #[test]
    fn what_is_done_counts() {
        let text = "fn f() { g(1, f32::MAX, \"a // b\", r#\"c \" d\"#, '\\'') }";
        for (from, to) in [
            ("1", "2"),
            ("a // b", "a // c"),
            ("c \" d", "c \" e"),
            ("'\\''", "'\"'"),
            ("g(", "k("),
            ("f32::", "f64::"),
            ("fn f", "const fn f"),
        ] {
            assert!(text.contains(from), "{from}");
            assert_ne!(rust(text), rust(&text.replace(from, to)), "{from}");
        }
        let cpp = |text: &str| of(Path::new("a.cuh"), text.as_bytes());
        assert_eq!(cpp("int a; // one\n"), cpp("int\na;"));
        assert_ne!(cpp("int a;"), cpp("int b;"));
        assert_ne!(of(Path::new("a.py"), b"a # b"), of(Path::new("a.py"), b"a"));
    }
}
