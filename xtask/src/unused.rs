//! Public items that nobody outside of their crate names: candidates for `pub(crate)` or removal.
//!
//! By names alone: an item counts as used where any other crate, test, benchmark or program has a
//! word of its name, whatever that means there, so that a common name hides one that nobody uses.
//! What is named only to be handed on (`pub use`) is not used by that. Fields and variants are
//! not looked at.

use crate::changed::{Package, packages};
use crate::meaning::words;
use crate::place::Place;
use crate::{SetupError, changed};
use std::collections::BTreeSet;

/// Words before the name of an item.
const KINDS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod"];
/// Words that may stand before these.
const BEFORE: [&str; 4] = ["unsafe", "async", "extern", "const"];

/// A public item.
#[derive(Debug, PartialEq, Eq)]
struct Item<'a> {
    line: usize,
    kind: &'a str,
    name: &'a str,
}

/// Prints the items, with file and line, by crate.
///
/// # Errors
/// git or cargo fail, a file cannot be read.
pub fn list(place: &Place) -> Result<(), SetupError> {
    let sources = changed::rust_files(&place.root)?;
    for package in packages(place)?.iter().filter(|p| p.library.is_some()) {
        let used: BTreeSet<&str> = sources
            .iter()
            .filter(|(file, _)| !is_library(package, file))
            .flat_map(|(_, text)| named(&words(text)))
            .collect();
        let mut count = 0;
        for (file, text) in sources.iter().filter(|(file, _)| is_library(package, file)) {
            for item in items(text).into_iter().filter(|item| !used.contains(item.name)) {
                println!("{file}:{}: {} {}", item.line, item.kind, item.name);
                count += 1;
            }
        }
        println!("{}: {count} public items that no other crate names\n", package.name);
    }
    Ok(())
}

/// Whether the file is part of the library, not of a program, a test or a benchmark.
fn is_library(package: &Package, file: &str) -> bool {
    let within = file.strip_prefix(&package.folder).and_then(|rest| rest.strip_prefix("/src/"));
    within.is_some_and(|rest| rest != "main.rs" && !rest.starts_with("bin/"))
}

/// All words but those of `pub use`.
fn named<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at..].starts_with(&["pub", "use"]) {
            at += words[at..].iter().position(|w| *w == ";").unwrap_or(words.len());
        }
        found.extend(words.get(at));
        at += 1;
    }
    found
}

/// The public items of a file, up to its tests.
fn items(text: &str) -> Vec<Item<'_>> {
    let text = text.split("\n#[cfg(test)]\n").next().unwrap_or(text);
    let words = words(text);
    let mut found = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| **word == "pub") {
        let mut rest = words[at + 1..].iter().copied().peekable();
        let mut kind = rest.next();
        // `const fn`, `unsafe extern "C" fn`
        while kind.is_some_and(|k| BEFORE.contains(&k) || k.starts_with('"')) {
            let next = rest.peek().copied();
            let goes_on = next
                .is_some_and(|n| KINDS.contains(&n) || BEFORE.contains(&n) || n.starts_with('"'));
            if !goes_on {
                break;
            }
            kind = rest.next();
        }
        let (Some(kind), Some(name)) = (kind.filter(|k| KINDS.contains(k)), rest.next()) else {
            continue;
        };
        let offset = words[at].as_ptr() as usize - text.as_ptr() as usize;
        found.push(Item { line: text[..offset].matches('\n').count() + 1, kind, name });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_are_found_with_their_lines() {
        let text = "//! pub fn no() {}\npub use a::B;\npub struct One { pub field: u8 }\n\
                    pub(crate) fn hidden() {}\nimpl One {\n    pub const fn two() {}\n\
                    pub unsafe extern \"C\" fn three() {}\npub const FOUR: u8 = 4;\n}\n\
                    #[cfg(test)]\nmod tests { pub fn none() {} }\n";
        let found: Vec<_> = items(text).iter().map(|i| (i.line, i.kind, i.name)).collect();
        let expected =
            [(3, "struct", "One"), (6, "fn", "two"), (7, "fn", "three"), (8, "const", "FOUR")];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_handed_on_is_not_used() {
        let found = named(&words("use a::One; pub use b::{Two, Three}; Four::five(); // Six\n"));
        for (word, used) in
            [("One", true), ("Two", false), ("Three", false), ("five", true), ("Six", false)]
        {
            assert_eq!(found.contains(&word), used, "{word}");
        }
    }
}
