//! serde over the spanned tree: an error knows the value it is about.

use super::source::{Node, Origin, Value};
use ostler_base::names::nearest;
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};
use std::fmt;

/// A value that serde refused.
#[derive(Debug)]
pub struct Refused {
    /// The mistake.
    pub message: String,
    /// The value it is about: the innermost that serde was reading.
    pub origin: Option<Origin>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), origin: None }
    }

    fn within(mut self, origin: &Origin) -> Self {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }
}

/// Rust's names of types, in words.
fn words(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "usize" | "u64" | "u32" => "a whole number from 0 on".into(),
        "i64" | "i32" | "isize" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a string" => "text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        other => other.trim_start_matches("expected ").to_string(),
    }
}

/// Words that a key took in earlier builds: the word, one that it still takes, and what replaces it.
const GONE: &[(&str, &str, &str)] = &[(
    "half",
    "reward",
    "observations are kept in single precision; a larger buffer lies in a file, replay.storage = \"memmap\" or \"tiered\"",
)];

/// A value in words.
fn given(got: Unexpected<'_>) -> String {
    match got {
        Unexpected::Signed(n) => n.to_string(),
        Unexpected::Unsigned(n) => n.to_string(),
        Unexpected::Float(x) => x.to_string(),
        Unexpected::Str(s) => format!("the text \"{s}\""),
        other => other.to_string(),
    }
}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Self::new(msg.to_string().replace("expected \"auto\"", "\"auto\""))
    }

    fn invalid_type(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("{} is expected, this is {}", words(expected), given(got)))
    }

    fn invalid_value(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("{} is expected, this is {}", words(expected), given(got)))
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("{} is expected, this list has {len}", words(expected)))
    }

    fn unknown_variant(given: &str, allowed: &'static [&'static str]) -> Self {
        let gone =
            |(value, beside, _): &&(&str, &str, &str)| *value == given && allowed.contains(beside);
        if let Some((_, _, instead)) = GONE.iter().find(gone) {
            return Self::new(format!("\"{given}\" is gone: {instead}"));
        }
        let list: Vec<String> = allowed.iter().map(|a| format!("\"{a}\"")).collect();
        let near = nearest(given, allowed.iter().copied())
            .map(|n| format!("; did you mean \"{n}\"?"))
            .unwrap_or_default();
        Self::new(format!("\"{given}\" is not known here, allowed: {}{near}", list.join(", ")))
    }

    fn unknown_field(given: &str, allowed: &'static [&'static str]) -> Self {
        Self::new(format!("unknown key \"{given}\", allowed: {}", allowed.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key \"{field}\" is missing"))
    }
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(i) => visitor.visit_i64(*i),
            Value::Float(f) => visitor.visit_f64(*f),
            Value::Str(s) => visitor.visit_borrowed_str(s),
            Value::Datetime => Err(Refused::new("no key takes a date or time")),
            Value::Array(items) => {
                let mut rest = Items(items.iter());
                let value = visitor.visit_seq(&mut rest);
                // A fixed number of values leaves what is too much where it is.
                match (value, rest.0.next()) {
                    (Ok(_), Some(extra)) => {
                        let taken = items.len() - rest.0.len() - 1;
                        let message =
                            format!("a list of {taken} is expected, this has {}", items.len());
                        Err(Refused::new(message).within(&extra.origin))
                    }
                    (value, _) => value,
                }
            }
            Value::Table(entries) => {
                visitor.visit_map(Entries { rest: entries.iter(), value: None })
            }
        }
        .map_err(|e| e.within(&self.origin))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Str(s) => visitor.visit_enum(s.as_str().into_deserializer()),
            other => {
                Err(Refused::new(format!("text in quotes is expected, this is {}", other.kind())))
            }
        }
        .map_err(|e: Refused| e.within(&self.origin))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> de::SeqAccess<'de> for &mut Items<'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refused> {
        self.0.next().map(|n| seed.deserialize(n)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, super::source::Entry>,
    value: Option<&'de Node>,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        let Some(entry) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.node);
        seed.deserialize(entry.key.as_str().into_deserializer())
            .map(Some)
            .map_err(|e: Refused| e.within(&entry.key_origin))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let node = self.value.take().ok_or_else(|| Refused::new("a value before its key"))?;
        seed.deserialize(node)
    }
}
