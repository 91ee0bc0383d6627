//! The keys that a file may have and the values that they take: JSON Schema of the types.

use super::source::{Node, Value};
use schemars::generate::SchemaSettings;
use schemars::transform::{RemoveRefSiblings, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value as Json, json};

/// JSON Schema (draft 7) of a type that a file is read as. Its text is the type's documentation.
#[derive(Debug, Clone)]
pub struct Keys(Json);

impl Keys {
    /// The keys of `T`.
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft07().with(|s| s.transforms.clear());
        let mut root = settings.into_generator().into_root_schema_for::<T>().to_value();
        drop_null(&mut root);
        Self(root)
    }

    /// The schema of the whole file.
    pub fn root(&self) -> &Json {
        &self.0
    }

    /// What a schema refers to; itself where it refers to nothing.
    pub fn resolve<'k>(&'k self, mut schema: &'k Json) -> &'k Json {
        while let Some(target) = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
            let Some(found) = self.0.pointer(target) else { break };
            schema = found;
        }
        schema
    }

    /// The keys of a table; none of another kind of value.
    pub fn table<'k>(&'k self, schema: &'k Json) -> Option<&'k Map<String, Json>> {
        self.resolve(schema)["properties"].as_object()
    }

    /// The schema of a table's key: its own, or that of any key of a free-form table.
    pub fn key<'k>(&'k self, schema: &'k Json, key: &str) -> Option<&'k Json> {
        let free = || match &self.resolve(schema)["additionalProperties"] {
            Json::Null | Json::Bool(false) => None,
            free => Some(free),
        };
        self.table(schema).and_then(|keys| keys.get(key)).or_else(free)
    }

    /// The name of a table's type.
    pub fn name(&self, table: &Json) -> Option<&str> {
        let types = self.0["definitions"].as_object()?;
        types.iter().find(|(_, schema)| std::ptr::eq(*schema, table)).map(|(name, _)| name.as_str())
    }

    /// Whether a key stands for a table with keys of its own, or for a list of such.
    pub fn holds_table(&self, schema: &Json) -> bool {
        let target = self.resolve(schema);
        let inner = [target.get("items"), target.get("additionalProperties")];
        self.table(schema).is_some()
            || inner.into_iter().flatten().any(|inner| self.table(inner).is_some())
    }

    /// Whether `path` (without indices) is a key outside of lists.
    pub fn has(&self, path: &str) -> bool {
        path.split('.').try_fold(&self.0, |at, part| self.table(at)?.get(part)).is_some()
    }

    /// Where a key of exactly this name lies, outside of lists and of the top level.
    pub(super) fn find(&self, key: &str) -> Option<String> {
        let tables = self.table(&self.0)?.iter();
        tables.into_iter().find_map(|(name, schema)| self.find_in(schema, key, name))
    }

    fn find_in(&self, schema: &Json, key: &str, path: &str) -> Option<String> {
        let keys = self.table(schema)?;
        if keys.contains_key(key) {
            return Some(format!("{path}.{key}"));
        }
        keys.iter().find_map(|(name, inner)| self.find_in(inner, key, &format!("{path}.{name}")))
    }

    /// The forms that a value may have, where there are several.
    pub fn forms<'k>(&'k self, schema: &'k Json) -> Option<&'k [Json]> {
        self.resolve(schema)["anyOf"].as_array().map(Vec::as_slice)
    }

    /// The words of a choice, each with its meaning; empty for another kind of value.
    pub fn words<'k>(&'k self, schema: &'k Json) -> Vec<(&'k str, &'k str)> {
        let schema = self.resolve(schema);
        let all = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        let words = all.iter().flat_map(|one| {
            // Words without a meaning of their own stand together.
            let several = one["enum"].as_array().into_iter().flatten().map(|word| (word, ""));
            let docs = one["description"].as_str().unwrap_or_default();
            several.chain(one.get("const").map(|word| (word, docs)))
        });
        words.filter_map(|(word, docs)| Some((word.as_str()?, docs))).collect()
    }

    /// Whether a value has one of the forms, and its numbers are finite unless `open` says that they
    /// need not be.
    pub(super) fn fits(&self, node: &Node, schema: &Json, open: bool) -> bool {
        let least = schema["minimum"].as_f64().unwrap_or(f64::NEG_INFINITY);
        let target = self.resolve(schema);
        if let Some(forms) = self.forms(schema) {
            let enough = !matches!(node.value, Value::Int(i) if (i as f64) < least);
            return enough && forms.iter().any(|form| self.fits(node, form, open));
        }
        match (type_of(target), &node.value) {
            ("anything", _) | ("number", Value::Int(_)) | ("boolean", Value::Bool(_)) => true,
            ("number", Value::Float(x)) => x.is_finite() || (open && !x.is_nan()),
            ("integer", Value::Int(i)) => beyond(target, *i).is_none(),
            ("string", Value::Str(text)) => {
                let words = self.words(schema);
                words.is_empty() || words.iter().any(|(word, _)| word == text)
            }
            ("array", Value::Array(items)) => {
                let length = target["minItems"].as_u64().is_none_or(|n| n == items.len() as u64);
                length && items.iter().all(|item| self.fits(item, &target["items"], open))
            }
            ("object", Value::Table(entries)) => entries.iter().all(|entry| {
                self.key(schema, &entry.key)
                    .is_some_and(|inner| self.fits(&entry.node, inner, open))
            }),
            _ => false,
        }
    }

    /// The values that a key takes, in words.
    pub fn takes(&self, schema: &Json) -> String {
        let target = self.resolve(schema);
        if let Some(title) = schema["title"].as_str().or(target["title"].as_str()) {
            return title.to_string();
        }
        let Some(forms) = self.forms(schema) else {
            return kind(target).to_string();
        };
        let mut all = Vec::new();
        self.gather(forms, &mut all);
        if let Some(whole) = all.iter_mut().find(|form| *form == WHOLE)
            && let Some(least) = schema["minimum"].as_u64()
        {
            *whole = format!("a whole number, {least} or more");
        }
        let last = all.pop().unwrap_or_default();
        match all.is_empty() {
            true => last,
            false => format!("{} or {last}", all.join(", ")),
        }
    }

    fn gather(&self, forms: &[Json], all: &mut Vec<String>) {
        for form in forms {
            if let Some(inner) = self.forms(form) {
                self.gather(inner, all);
                continue;
            }
            let form = self.resolve(form);
            let words = self.words(form);
            match form["type"].as_str() {
                _ if !words.is_empty() => {
                    all.extend(words.iter().map(|(word, _)| format!("\"{word}\"")));
                }
                Some("number") => all.push("a finite number".into()),
                Some("integer") => all.push(WHOLE.into()),
                Some("boolean") => all.push("true, false".into()),
                Some("array") if form["minItems"] == 2 => {
                    all.push(match self.resolve(&form["items"])["type"].as_str() {
                        Some("integer") => {
                            "a range [least, most] of whole numbers from 0 on".into()
                        }
                        _ => "a range [low, high]".into(),
                    });
                }
                Some("array") if !all.is_empty() => all.push("a list of such".into()),
                Some("object") => all.push(match (form.get("properties"), &form["required"][0]) {
                    (None, _) => "a table of patterns of names".into(),
                    (_, Json::String(key)) => format!("a table with `{key}`"),
                    _ => "a table".into(),
                }),
                _ => all.push(kind(form).into()),
            }
        }
    }

    /// The schema for editors: keys that stand outside of the types are in it, and no key is
    /// needed, because a file may be a part of others.
    pub fn for_editors(&self) -> Json {
        let (mut root, mut elements) = (self.0.clone(), Vec::new());
        document(&mut root, &mut elements);
        for name in elements {
            if let Some(Json::Object(keys)) = root.pointer_mut(&format!("{name}/properties")) {
                let text = "`false`: leave this element of a list out.";
                keys.insert("enabled".into(), json!({ "type": "boolean", "description": text }));
            }
        }
        let file = json!({ "type": "string" });
        let more = [
            ("extends", file.clone(), "The file under this one."),
            (
                "include",
                json!({ "anyOf": [file, { "type": "array", "items": file }] }),
                "Files that this one puts together.",
            ),
            (
                "profile",
                json!({ "type": "object", "additionalProperties": { "$ref": "#" } }),
                "`[profile.NAME]`: values that replace the file's where `--profile NAME` asks for them.",
            ),
        ];
        if let Some(keys) = root["properties"].as_object_mut() {
            for (key, mut schema, text) in more {
                schema["description"] = text.into();
                keys.insert(key.into(), schema);
            }
        }
        match Schema::try_from(root) {
            Ok(mut schema) => {
                RemoveRefSiblings::default().transform(&mut schema);
                schema.to_value()
            }
            // Only a schema that is no object.
            Err(_) => Json::Null,
        }
    }
}

const WHOLE: &str = "a whole number from 0 on";

/// The type of a value that has one form; "anything" where it has none.
pub(super) fn type_of(schema: &Json) -> &str {
    match schema["type"].as_str() {
        None if schema["oneOf"].is_array() => "string",
        known => known.unwrap_or("anything"),
    }
}

/// The whole numbers that a key takes, in words, where `given` is none of them.
pub(super) fn beyond(schema: &Json, given: i64) -> Option<String> {
    let most = match schema["format"].as_str() {
        Some("uint8") => i64::from(u8::MAX),
        Some("uint16") => i64::from(u16::MAX),
        Some("uint32") => i64::from(u32::MAX),
        Some("int32") => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    let least = match schema["minimum"].as_i64() {
        Some(least) => least,
        None if schema["format"] == "int32" => i64::from(i32::MIN),
        None => i64::MIN,
    };
    match (given < least, given > most) {
        (true, _) if least == 0 => Some(WHOLE.into()),
        (false, false) => None,
        _ => Some(format!("a whole number from {least} to {most}")),
    }
}

/// The kind of a value that has one form.
fn kind(schema: &Json) -> &'static str {
    match schema["type"].as_str() {
        Some("number") => "a number",
        Some("integer") => "a whole number",
        Some("boolean") => "true or false",
        Some("array") => "a list",
        Some("object") => "a table",
        _ => "text in quotes",
    }
}

/// TOML has no null: a key that may be missing takes what its type takes, and has the default
/// null.
fn drop_null(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            let null = match map.get_mut("type") {
                Some(Json::Array(types)) => {
                    types.retain(|t| t != "null");
                    let one = types.pop();
                    map.insert("type".into(), one.unwrap_or_default());
                    true
                }
                _ => false,
            };
            let null = null
                || match map.get_mut("anyOf").and_then(Json::as_array_mut) {
                    Some(forms) => {
                        let before = forms.len();
                        forms.retain(|form| form["type"] != "null");
                        let dropped = forms.len() < before;
                        if let ([_], true) = (forms.as_slice(), dropped)
                            && let Some(Json::Object(only)) = forms.pop()
                        {
                            map.remove("anyOf");
                            for (key, value) in only {
                                map.entry(key).or_insert(value);
                            }
                        }
                        dropped
                    }
                    None => false,
                };
            if null {
                map.entry("default").or_insert(Json::Null);
            }
            map.values_mut().for_each(drop_null);
        }
        Json::Array(all) => all.iter_mut().for_each(drop_null),
        _ => {}
    }
}

/// Makes a schema one for editors: documentation without links to items of the code; no key that
/// is needed; no defaults of whole tables, nor of keys that are simply not there. The types of
/// lists' elements are added to `elements`.
fn document(schema: &mut Json, elements: &mut Vec<String>) {
    match schema {
        Json::Object(map) => {
            if let Some(Json::String(text)) = map.get_mut("description") {
                *text = plain(text);
            }
            if matches!(map.get("default"), Some(Json::Null | Json::Object(_))) {
                map.remove("default");
            }
            map.remove("required");
            if let Some(name) = map.get("items").and_then(|items| items["$ref"].as_str()) {
                elements.push(name.trim_start_matches('#').into());
            }
            map.values_mut().for_each(|inner| document(inner, elements));
        }
        Json::Array(all) => all.iter_mut().for_each(|inner| document(inner, elements)),
        _ => {}
    }
}

/// Documentation in one line, as Markdown: links are the names in them.
pub fn plain(docs: &str) -> String {
    let text = docs.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut out, mut rest) = (String::new(), text.as_str());
    // A heading such as `[env]` has its brackets within the quotes.
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out.extend([before, "`", name, "`"]);
        rest = match after.strip_prefix('(').and_then(|to| to.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}
