//! Lists of the kernels' headers for Rust: a macro for each, which calls another one with the
//! list's lines.
#![allow(dead_code, reason = "each crate reads its own lists")]

use std::fmt::Write;
use std::path::Path;

/// Lists of a header, and the names of their macros. Several lists of one macro are each in
/// braces behind their name.
pub type Lists = &'static [(&'static str, &'static str)];

/// Those of `kernels/state.h`.
pub const STATE: Lists = &[
    ("OSTLER_SIZES", "sizes"),
    ("OSTLER_EPISODE", "episode_columns"),
    ("OSTLER_WORLD", "world_columns"),
    ("OSTLER_STEP_BUFFERS", "step_columns"),
    ("OSTLER_TABLES", "task_tables"),
];

/// Those of `kernels/env/stats.h`.
pub const STATS: Lists = &[("OSTLER_STATS", "episode_stats")];

/// Those of `kernels/collide/shapes.h`.
pub const SHAPES: Lists = &[("OSTLER_SHAPES", "shapes"), ("OSTLER_PAIRS", "pairs_of_shapes")];

/// Those of `kernels/tables.cuh`.
pub const ROBOT: Lists =
    &[("OSTLER_COUNTS OSTLER_SCALARS OSTLER_INTS OSTLER_REALS", "robot_tables")];

/// Writes the macros of a header's lists into a file.
pub fn write(header: &Path, lists: Lists, path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(header)
        .map_err(|e| format!("cannot read {}: {e}", header.display()))?;
    let mut rust = String::new();
    for (names, name) in lists {
        let _ = writeln!(
            rust,
            "macro_rules! {name} {{ ($then:ident $($first:tt)*) => {{ $then! {{ $($first)*"
        );
        for list in names.split(' ') {
            let (open, close) =
                if *names == list { (String::new(), "") } else { (format!("{list} {{"), "}\n") };
            rust.push_str(&open);
            for line in lines(&text, list)? {
                let items = items(line).ok_or_else(|| format!("{list}: cannot read `{line}`"))?;
                let _ = write!(rust, "({} {}", items[0], camel(items[0]));
                for item in &items[1..] {
                    let _ = write!(rust, " {item}");
                }
                rust.push_str(")\n");
            }
            rust.push_str(close);
        }
        rust.push_str("} } }\n");
    }
    std::fs::write(path, rust).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// The lines of a list.
fn lines<'a>(text: &'a str, list: &str) -> Result<Vec<&'a str>, String> {
    let head = format!("#define {list}(X) \\");
    let mut rest = text.lines().skip_while(|l| *l != head);
    rest.next().ok_or_else(|| format!("no `{head}`"))?;
    let mut all = Vec::new();
    for line in rest {
        let (line, more) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        all.push(line.trim());
        if !more {
            break;
        }
    }
    Ok(all)
}

/// Entries between the commas of `X(...)`; the last is in quotes, and may have some.
fn items(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix("X(")?.strip_suffix(')')?;
    let quoted = inside.find('"')?;
    let (before, says) = inside.split_at(quoted);
    let mut items: Vec<&str> = before.trim().strip_suffix(',')?.split(',').map(str::trim).collect();
    items.push(says);
    Some(items)
}

/// `body_pos`: `BodyPos`.
fn camel(name: &str) -> String {
    let upper = |part: &str| -> String {
        let mut letters = part.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    };
    name.split('_').map(upper).collect()
}
