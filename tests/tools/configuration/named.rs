//! Every key is named by a test: a key whose effect nobody tests goes.
//! `OSTLER_SHOW_KEYS=1 cargo test --test tools named -- --nocapture` prints which file names which.

use super::walk::tables;
use crate::common::root;
use ostler_trainer::config::schema;
use std::collections::BTreeMap;
use std::path::Path;

/// The texts of tests: file and text. Files that go through all keys say nothing about one.
fn texts(folder: &Path, of_tests: bool, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        let (name, ending) = (path.file_stem(), path.extension());
        let name = name.unwrap_or_default().to_string_lossy();
        if ["tests/tools/configuration", "tests/tools/fuzz"].contains(&shown.as_str()) {
            continue;
        }
        if path.is_dir() {
            texts(&path, of_tests || name == "tests", all);
        } else if ending.is_some_and(|e| ["rs", "py", "json"].iter().any(|known| e == *known)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let start = match of_tests || name.ends_with("tests") {
                true => Some(0),
                false => text.find("#[cfg(test)]\nmod tests {"),
            };
            // Lines of TOML within a literal are lines.
            all.extend(start.map(|at| (shown, text[at..].replace("\\n", "\n"))));
        }
    }
}

/// Whether `text` has `word` between characters that cannot belong to a name.
fn word<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        (!before.ends_with(of_name) && !after.starts_with(of_name)).then_some((before, after))
    })
}

/// Whether a value is given to `key`, or read from it.
fn gives(text: &str, key: &str) -> bool {
    word(text, key).any(|(before, after)| {
        let after = after.trim_start_matches('"').trim_start();
        before.ends_with('.')
            || after.starts_with(',')
            || (after.starts_with('=') && !after.starts_with("=="))
            || (after.starts_with(':') && !after.starts_with("::"))
    })
}

#[test]
fn every_key_is_named_by_a_test() {
    let mut all = Vec::new();
    for folder in ["tests", "sim", "collector", "trainer", "python"] {
        texts(&root().join(folder), folder == "tests", &mut all);
    }
    let keys = schema::keys();
    // A type that several tables have is tested where one of them is.
    let mut named: BTreeMap<String, Option<&str>> = BTreeMap::new();
    tables(keys, keys.root(), "", &|root| root, &mut |table, path, _| {
        let path = path.replace("[]", "").replace(".NAME", "");
        let of_type = keys.name(table).unwrap_or_default();
        let of_table = path.rsplit('.').next().unwrap_or_default();
        for (key, schema) in keys.table(table).unwrap() {
            if keys.holds_table(schema) {
                continue;
            }
            let concerns = |text: &str| {
                [of_type, of_table]
                    .iter()
                    .any(|of| of.is_empty() || word(text, of).next().is_some())
            };
            let found = all.iter().find(|(_, text)| concerns(text) && gives(text, key));
            let id = match of_type {
                "" => key.clone(),
                _ => format!("{of_type} {key}"),
            };
            let shown = named.entry(id).or_default();
            *shown = shown.or(found.map(|(file, _)| file.as_str()));
            if std::env::var_os("OSTLER_SHOW_KEYS").is_some() {
                println!("{path}.{key}: {}", found.map_or("-", |(file, _)| file));
            }
        }
    });
    let unnamed: Vec<_> = named.iter().filter(|(_, by)| by.is_none()).map(|(key, _)| key).collect();
    assert!(unnamed.is_empty(), "no test names these keys: {unnamed:?}");
    assert!((300..=MOST).contains(&named.len()), "{} keys", named.len());
}

/// Keys that there may be: 33 more than before there was `[task.terrain]`, whose kinds of ground
/// have their own, 18 more than before `[symmetry]` and the recipes of FastSAC and FlashSAC, 14
/// more than before `[[task.reference]]` and `[amp]`, 3 for the solver's iterations, noise of
/// evaluations and of components, 2 for a program's own transforms, and 1 for goals that are drawn
/// anew when they are reached. More of them are harder to choose from.
const MOST: usize = 440;
