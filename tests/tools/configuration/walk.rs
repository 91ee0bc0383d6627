//! Every key by its place, from the schema alone: its default is what a file means that leaves
//! the key out, and editors have it.

use super::page;
use crate::common::root;
use ostler_sim::config::file::Keys;
use ostler_trainer::config::{Config, schema};
use serde_json::{Map, Value, json};

/// Sees a table, its path, and how a value of it stands in a file.
type See<'a> = dyn FnMut(&Value, &str, &dyn Fn(Value) -> Value) + 'a;

/// Calls `see` with a table's schema, its place in a configuration (`task.reward[]`), and what
/// makes a whole file of such a table.
pub fn tables(
    keys: &Keys,
    schema: &Value,
    path: &str,
    whole: &dyn Fn(Value) -> Value,
    see: &mut See<'_>,
) {
    let table = keys.resolve(schema);
    let Some(all) = keys.table(schema) else {
        return;
    };
    see(table, path, whole);
    for (key, inner) in all {
        let above = least(keys, schema);
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let put = |value: Value| {
            let mut above = above.clone();
            above[key] = value;
            whole(above)
        };
        below(keys, inner, &path, &put, see);
    }
}

fn below(
    keys: &Keys,
    schema: &Value,
    path: &str,
    whole: &dyn Fn(Value) -> Value,
    see: &mut See<'_>,
) {
    let target = keys.resolve(schema);
    for form in keys.forms(schema).into_iter().flatten() {
        below(keys, form, path, whole, see);
    }
    if let Some(items) = target.get("items") {
        below(keys, items, &format!("{path}[]"), &|element| whole(json!([element])), see);
    }
    if let Some(free @ Value::Object(_)) = target.get("additionalProperties") {
        below(keys, free, &format!("{path}.NAME"), &|one| whole(json!({ "NAME": one })), see);
    }
    tables(keys, schema, path, whole, see);
}

/// A table with the keys that it needs.
fn least(keys: &Keys, schema: &Value) -> Value {
    let needed = keys.resolve(schema)["required"].as_array().cloned().unwrap_or_default();
    let all = keys.table(schema).unwrap();
    let entry = |key: &Value| {
        let key = key.as_str().unwrap();
        (key.to_string(), sample(keys, &all[key]))
    };
    Value::Object(needed.iter().map(entry).collect())
}

fn sample(keys: &Keys, schema: &Value) -> Value {
    if let Some(forms) = keys.forms(schema) {
        return sample(keys, &forms[0]);
    }
    if let Some((word, _)) = keys.words(schema).first() {
        return json!(word);
    }
    let target = keys.resolve(schema);
    match target["type"].as_str().unwrap() {
        "boolean" => json!(false),
        "number" => json!(0.5),
        "integer" => json!(1),
        "string" => json!("x"),
        "array" => {
            let count = target["minItems"].as_u64().unwrap_or(0) as usize;
            Value::Array(vec![sample(keys, &target["items"]); count])
        }
        _ => least(keys, schema),
    }
}

/// TOML has no null: what is not there.
fn without_null(value: Value) -> Value {
    match value {
        Value::Object(all) => {
            let there = all.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(there.map(|(key, value)| (key, without_null(value))).collect())
        }
        other => other,
    }
}

fn read(file: &Value) -> Result<Config, toml::de::Error> {
    toml::from_str(&toml::to_string(file).unwrap())
}

#[test]
fn a_key_that_is_left_out_has_the_default_of_the_page() {
    let keys = schema::keys();
    let mut seen = 0;
    tables(keys, keys.root(), "", &|root| root, &mut |table, path, whole| {
        for key in keys.table(table).unwrap().keys() {
            let mut file = least(keys, table);
            let without = read(&whole(file.clone()));
            let Some(default) = page::default(keys, table, key).map(without_null) else {
                file.as_object_mut().unwrap().remove(key);
                let why = read(&whole(file)).unwrap_err().to_string();
                assert!(
                    why.contains(key.as_str()) || path.contains("delay"),
                    "{path}.{key}: {why}"
                );
                continue;
            };
            if default.is_null() {
                continue;
            }
            file[key] = default.clone();
            assert_eq!(read(&whole(file)), without, "{path}.{key} = {default}");
            assert!(without.is_ok(), "{path}");
            seen += 1;
        }
    });
    assert!(seen > 200, "{seen}");
}

/// What a schema of an editor refers to, with all of the schema's keys.
fn properties<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Map<String, Value>> {
    let target = schema["$ref"].as_str().and_then(|r| root.pointer(r.trim_start_matches('#')));
    let parts = ["allOf", "anyOf"].iter().filter_map(|of| schema[of].as_array()).flatten();
    let inner = target.into_iter().chain(parts).flat_map(|part| properties(root, part));
    inner.chain(schema["properties"].as_object()).collect()
}

/// Every key of a file that the schema lacks.
fn unknown(root: &Value, schema: &Value, value: &toml::Value, path: &str, found: &mut Vec<String>) {
    let own = properties(root, schema);
    let resolved = schema["$ref"].as_str().and_then(|r| root.pointer(r.trim_start_matches('#')));
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let path = format!("{path}.{key}");
                let free = resolved.unwrap_or(schema).get("additionalProperties");
                match own.iter().find_map(|keys| keys.get(key)).or(free.filter(|f| f.is_object())) {
                    Some(inner) => unknown(root, inner, value, &path, found),
                    None if own.is_empty() => {}
                    None => found.push(path),
                }
            }
        }
        toml::Value::Array(all) => {
            if let Some(items) = schema.get("items") {
                all.iter().for_each(|one| unknown(root, items, one, path, found));
            }
        }
        _ => {}
    }
}

#[test]
fn editors_know_every_key_of_the_shipped_files() {
    let schema = schema::for_editors();
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let file: toml::Value =
            std::fs::read_to_string(&path).unwrap().parse::<toml::Table>().unwrap().into();
        let mut found = Vec::new();
        unknown(&schema, &schema, &file, "", &mut found);
        assert!(found.is_empty(), "{}: {found:?}", path.display());
        files += 1;
    }
    assert!(files > 5, "{files}");
    let mut wrong = Vec::new();
    let file: toml::Table = "[env]\nnum_env = 3\n[[task.reward]]\nwieght = 1".parse().unwrap();
    unknown(&schema, &schema, &file.into(), "", &mut wrong);
    assert_eq!(wrong, [".env.num_env", ".task.reward.wieght"]);
}
