//! docs/configuration.md and the pages beside it, the reference of every key, are printed from
//! the types that read a configuration: their documentation, their kinds, their defaults.
//! `OSTLER_WRITE_DOCS=1` writes them anew.

mod named;
mod page;
mod walk;

use crate::common::root;
use ostler_trainer::config::schema;

/// The pages: file and text.
fn written() -> Vec<(&'static str, String)> {
    page::print(schema::keys())
}

#[test]
fn the_pages_of_keys_are_what_the_program_reads() {
    for (file, text) in written() {
        let lines = text.lines().count();
        assert!(lines <= 400, "{file}: {lines} lines");
        let page = root().join("docs").join(file);
        if std::env::var_os("OSTLER_WRITE_DOCS").is_some() {
            std::fs::write(&page, &text).unwrap();
            continue;
        }
        let kept = std::fs::read_to_string(&page).unwrap();
        let differ = kept.lines().zip(text.lines()).find(|(kept, new)| kept != new);
        assert!(
            kept == text,
            "docs/{file} is not what the types say; OSTLER_WRITE_DOCS=1 writes it anew. \
             The first line that differs: {differ:?}"
        );
    }
}

/// Every key with its table, of a page.
fn keys(page: &str) -> Vec<(String, String)> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            table = title.trim_matches('`').to_string();
        }
        if let Some(key) = line.strip_prefix("| `").and_then(|l| l.split('`').next()) {
            found.push((table.clone(), key.to_string()));
        }
    }
    found
}

#[test]
fn every_key_of_a_shipped_configuration_is_on_the_page() {
    let keys: Vec<_> = written().iter().flat_map(|(_, page)| keys(page)).collect();
    let has = |table: &str, key: &str| keys.iter().any(|(t, k)| t == table && k == key);
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let file: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        for (section, value) in &file {
            if ["profile", "include", "extends"].contains(&section.as_str()) {
                continue;
            }
            let Some(table) = value.as_table() else {
                continue;
            };
            for (key, value) in table {
                let at = format!("[{section}]");
                assert!(has(&at, key), "{}: {at} {key}", path.display());
                seen += 1;
                let elements = value.as_array().into_iter().flatten();
                for key in elements.filter_map(|e| e.as_table()).flat_map(|t| t.keys()) {
                    let at = format!("[[{section}.{}]]", value_name(table, value));
                    assert!(has(&at, key), "{}: {at} {key}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

/// The key under which a value lies.
fn value_name<'t>(table: &'t toml::Table, value: &toml::Value) -> &'t str {
    let found = table.iter().find(|(_, v)| std::ptr::eq(*v, value));
    found.map(|(k, _)| k.as_str()).unwrap()
}
