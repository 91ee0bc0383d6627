//! From a path such as `task.reward[2].expr` back to the place it was written.

use super::source::{Node, Origin, Sources, Value};

/// The end of a path.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// Where.
    pub origin: Origin,
    /// False: the key is not written, `origin` is the nearest table that holds it.
    pub exact: bool,
}

/// The node at `path`, or the innermost that encloses it.
pub(crate) fn locate(root: &Node, path: &str) -> Option<Located> {
    let mut node = root;
    let mut place = None;
    let mut exact = true;
    for segment in path.split(['.', '[', ']']).filter(|s| !s.is_empty()) {
        let next = match &node.value {
            Value::Table(_) => node.get(segment).map(|e| match e.node.value {
                // The header or key of a table says more than its extent.
                Value::Table(_) => (&e.node, e.key_origin.clone()),
                _ => (&e.node, e.node.origin.clone()),
            }),
            Value::Array(items) => segment
                .parse::<usize>()
                .ok()
                .and_then(|i| items.get(i))
                .map(|n| (n, n.origin.clone())),
            _ => None,
        };
        match next {
            Some((n, origin)) => {
                node = n;
                place = Some(origin);
            }
            None => {
                exact = false;
                break;
            }
        }
    }
    place.map(|origin| Located { origin, exact })
}

/// The path of the value that was written at `origin`.
pub(crate) fn path_of(root: &Node, origin: &Origin) -> Option<String> {
    let deeper = |name: String, node: &Node, join: &str| {
        if node.origin == *origin {
            return Some(name);
        }
        path_of(node, origin).map(|inner| match inner.as_bytes() {
            [b'[', ..] => name + &inner,
            _ => name + join + &inner,
        })
    };
    match &root.value {
        Value::Table(entries) => entries.iter().find_map(|e| deeper(e.key.clone(), &e.node, ".")),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, n)| deeper(format!("[{i}]"), n, "."))
        }
        _ => None,
    }
}

/// Narrows the origin of a text value to bytes `inner` of the text's value.
///
/// TOML writes text in four ways; escapes and line-ending backslashes make the
/// written form longer than the value.
pub(crate) fn inside(sources: &Sources, origin: &Origin, inner: std::ops::Range<usize>) -> Origin {
    let Some(raw) = sources.0.get(origin.source).and_then(|s| s.text.get(origin.span.clone()))
    else {
        return origin.clone();
    };
    let base = origin.span.start;
    let start = written(raw, inner.start);
    let end = written(raw, inner.end.max(inner.start)).max(start);
    Origin { source: origin.source, span: base + start..base + end }
}

/// The byte of the written form `raw` at which byte `target` of its value begins.
fn written(raw: &str, target: usize) -> usize {
    let (quote, escapes) = match raw.as_bytes() {
        [b'"', b'"', b'"', ..] if raw.len() >= 6 => (3, true),
        [b'\'', b'\'', b'\'', ..] if raw.len() >= 6 => (3, false),
        [b'"', ..] => (1, true),
        [b'\'', ..] => (1, false),
        // A bare value from the command line.
        _ => (0, false),
    };
    let closed = quote > 0 && raw.ends_with(&raw[..quote]);
    let end = if closed { raw.len() - quote } else { raw.len() };
    let mut at = quote;
    if quote == 3 {
        // A line end right after the opening quotes is not part of the value.
        for newline in ["\r\n", "\n"] {
            if raw[at..].starts_with(newline) {
                at += newline.len();
                break;
            }
        }
    }
    let mut value = 0;
    while value < target && at < end {
        let rest = &raw[at..end];
        let Some(c) = rest.chars().next() else { break };
        if c == '\\' && escapes {
            let (taken, made) = escape(rest);
            // A line-ending backslash makes nothing: the next character decides.
            at += taken;
            value += made;
        } else {
            at += c.len_utf8();
            value += c.len_utf8();
        }
    }
    // Blank continuation before the byte that is meant.
    while escapes && at < end && raw[at..].starts_with('\\') {
        match escape(&raw[at..end]) {
            (taken, 0) => at += taken,
            _ => break,
        }
    }
    at.min(end)
}

/// Bytes taken and bytes of value made by the escape at the start of `rest`.
fn escape(rest: &str) -> (usize, usize) {
    let hex = |digits: usize| {
        rest.get(2..2 + digits)
            .and_then(|c| u32::from_str_radix(c, 16).ok())
            .and_then(char::from_u32)
            .map_or((2, 1), |c| (2 + digits, c.len_utf8()))
    };
    match rest.as_bytes().get(1) {
        Some(b'x') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(c) if c.is_ascii_whitespace() => {
            let blank = rest[1..].len() - rest[1..].trim_start().len();
            (1 + blank, 0)
        }
        _ => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value_of(raw: &str) -> String {
        let doc = format!("v = {raw}");
        let t: toml::Table = doc.parse().unwrap();
        t["v"].as_str().unwrap().to_string()
    }

    #[test]
    fn every_way_of_writing_text_maps_back_to_the_written_byte() {
        for raw in [
            "'ab X'",
            "\"a\\tb\\u00e9 X\"",
            "'''\nab\nX'''",
            "\"\"\"\nab \\\n   \n  c X\"\"\"",
            "\"\\x41\\U0001F600X\"",
            "\"\"\"a\\\n   X\"\"\"",
        ] {
            let value = value_of(raw);
            let target = value.find('X').unwrap();
            let at = written(raw, target);
            assert_eq!(&raw[at..=at], "X", "{raw}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn never_leaves_the_text(raw in "[\"']{0,3}[ -~\\n\\\\é]{0,20}[\"']{0,3}", target in 0usize..40) {
            let at = written(&raw, target);
            prop_assert!(at <= raw.len());
        }
    }
}
