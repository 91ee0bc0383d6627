//! Resolved configurations side by side.

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A configuration is no longer than this (bytes).
const MOST: u64 = 16 << 20;

/// Keys and their values in each run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// Key, and its value in each run; none where it is not there.
    pub rows: Vec<(String, Vec<Option<String>>)>,
}

impl Table {
    /// Of the runs in these folders; a configuration that cannot be read has no keys.
    pub fn of(folders: &[&Path]) -> Self {
        let mut rows: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for (i, folder) in folders.iter().enumerate() {
            let text =
                ostler_sim::files::read_text(&folder.join(ostler_run::run::dir::CONFIG), MOST);
            let table = text.ok().and_then(|t| t.parse::<toml::Table>().ok());
            let mut flat = Vec::new();
            if let Some(table) = table {
                flatten("", &toml::Value::Table(table), &mut flat);
            }
            for (key, value) in flat {
                let row = rows.entry(key).or_insert_with(|| vec![None; folders.len()]);
                row[i] = Some(value);
            }
        }
        Self { rows: rows.into_iter().collect() }
    }
}

/// `section.key`; elements of lists of tables by their name, or their number.
fn flatten(path: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    let below = |key: &str| match path {
        "" => key.to_string(),
        path => format!("{path}.{key}"),
    };
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&below(key), value, out);
            }
        }
        toml::Value::Array(all) if all.iter().any(toml::Value::is_table) => {
            for (i, value) in all.iter().enumerate() {
                let name = value.get("name").and_then(toml::Value::as_str);
                let name = name.map_or_else(|| i.to_string(), str::to_string);
                flatten(&below(&name), value, out);
            }
        }
        value => out.push((path.to_string(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_the_names_of_their_terms() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let text = |weight: f64, more: &str| {
            format!("seed = 1\n{more}\n[[task.reward]]\nname = \"alive\"\nweight = {weight:?}\n")
        };
        std::fs::write(dirs[0].path().join("config.toml"), text(1.0, "")).unwrap();
        std::fs::write(dirs[1].path().join("config.toml"), text(2.0, "new = [1, 2]")).unwrap();
        let table = Table::of(&[dirs[0].path(), dirs[1].path(), Path::new("no/such")]);
        let row = |key: &str| table.rows.iter().find(|r| r.0 == key).unwrap().1.clone();
        let some = |t: &str| Some(t.to_string());
        assert_eq!(row("task.reward.alive.weight"), [some("1.0"), some("2.0"), None]);
        assert_eq!(row("new"), [None, some("[1, 2]"), None]);
        assert_eq!(row("seed"), [some("1"), some("1"), None]);
    }
}
