//! JSON as cargo writes it: text, lists and objects. The launcher builds this crate before
//! anything else, so it has no reader of all JSON.

use std::iter::Peekable;
use std::str::Chars;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, in its order.
    Object(Vec<(String, Json)>),
    /// A number, a truth value or null, as written.
    Other(String),
}

impl Json {
    /// The value in `text`; `None` where it is no JSON.
    pub fn read(text: &str) -> Option<Self> {
        let mut rest = text.chars().peekable();
        let value = value(&mut rest)?;
        skip(&mut rest);
        rest.next().is_none().then_some(value)
    }

    /// What an object has under `key`.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(all) => all.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The list under `key`; empty where there is none.
    pub fn list(&self, key: &str) -> &[Self] {
        match self.get(key) {
            Some(Self::List(list)) => list,
            _ => &[],
        }
    }
}

fn skip(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| c.is_whitespace()).is_some() {}
}

fn value(rest: &mut Peekable<Chars<'_>>) -> Option<Json> {
    skip(rest);
    match rest.peek()? {
        '"' => string(rest).map(Json::Text),
        '[' => members(rest, ']', value).map(Json::List),
        '{' => {
            let pair = |rest: &mut Peekable<Chars<'_>>| {
                skip(rest);
                let key = string(rest)?;
                skip(rest);
                rest.next_if_eq(&':')?;
                Some((key, value(rest)?))
            };
            members(rest, '}', pair).map(Json::Object)
        }
        _ => {
            let mut word = String::new();
            while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || "+-.".contains(*c)) {
                word.push(c);
            }
            (!word.is_empty()).then_some(Json::Other(word))
        }
    }
}

fn members<T>(
    rest: &mut Peekable<Chars<'_>>,
    end: char,
    member: impl Fn(&mut Peekable<Chars<'_>>) -> Option<T>,
) -> Option<Vec<T>> {
    rest.next();
    skip(rest);
    let mut all = Vec::new();
    if rest.next_if_eq(&end).is_some() {
        return Some(all);
    }
    loop {
        all.push(member(rest)?);
        skip(rest);
        match rest.next()? {
            ',' => {}
            c if c == end => return Some(all),
            _ => return None,
        }
    }
}

fn string(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    rest.next_if_eq(&'"')?;
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).ok()?;
                    text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                c => text.push(c),
            },
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_lists_and_strings_are_read() {
        let text = r#" {"a": [1, -2.5e3, null, {"b": "x\"\n\u0041"}], "c": {}, "d": []} "#;
        let json = Json::read(text).unwrap();
        assert_eq!(json.list("a")[3].text("b"), Some("x\"\nA"));
        assert_eq!(json.list("a")[1], Json::Other("-2.5e3".into()));
        assert_eq!(json.get("c"), Some(&Json::Object(Vec::new())));
        assert!(json.list("d").is_empty() && json.get("e").is_none());
        for wrong in ["", "{", "[1,", "{\"a\" 1}", "[1] 2", "\"a", "[1 2]"] {
            assert_eq!(Json::read(wrong), None, "{wrong}");
        }
    }
}
