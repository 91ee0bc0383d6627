//! XML text -> elements, as MuJoCo's reader (tinyxml2) takes it, which is more than XML allows:
//! `--` in comments, attributes without a blank between, a bare `&`, prefixes that nothing
//! declares, anything behind the end. Entities are XML's five and characters' numbers, so no
//! text grows; elements nest without recursion.

use super::element::{At, Attr, Element, Fault, MAX_DEPTH, Read};
use std::collections::HashSet;

/// The root element of file number `file`, and what stands behind its end, which is not read.
pub(super) fn parse(file: u32, text: &str) -> Read<(Element, Option<At>)> {
    Reader { file, text, at: 0 }.document()
}

struct Reader<'t> {
    file: u32,
    text: &'t str,
    /// The next byte.
    at: usize,
}

impl<'t> Reader<'t> {
    fn place(&self, byte: usize) -> At {
        At::new(self.file, byte)
    }

    fn fault(&self, byte: usize, why: impl std::fmt::Display) -> Fault {
        Fault::new(self.place(byte), format!("not well-formed XML: {why}"))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips `token` if it is next.
    fn takes(&mut self, token: &str) -> bool {
        let next = self.rest().starts_with(token);
        self.at += if next { token.len() } else { 0 };
        next
    }

    /// The text up to `end`, which is skipped too.
    fn until(&mut self, end: &str) -> Option<&'t str> {
        let rest = self.rest();
        let length = rest.find(end)?;
        self.at += length + end.len();
        Some(&rest[..length])
    }

    fn document(mut self) -> Read<(Element, Option<At>)> {
        let mut open: Vec<Element> = Vec::new();
        let mut root: Option<Element> = None;
        let mut before = None;
        loop {
            let start = self.at;
            let words = self.rest().split('<').next().unwrap_or_default();
            self.at += words.len();
            if !words.trim_matches(is_blank).is_empty() {
                let skipped = words.len() - words.trim_start_matches(is_blank).len();
                let at = self.place(start + skipped);
                match open.last_mut() {
                    Some(around) => _ = around.stray.get_or_insert(at),
                    None if root.is_some() => {
                        self.at = at.byte();
                        break;
                    }
                    None => before = Some(at),
                }
            }
            let here = self.at;
            if self.rest().is_empty() {
                break;
            }
            if let Some(words) = self.aside()? {
                if let Some(around) = open.last_mut().filter(|_| words) {
                    around.stray.get_or_insert(At::new(self.file, here));
                }
            } else if root.is_some() {
                self.at = here;
                break;
            } else if self.takes("</") {
                let name = self.name(here)?;
                let Some(ended) = open.pop() else {
                    return Err(self.fault(here, format!("</{name}> ends no element")));
                };
                if ended.name != name {
                    let why = format!("</{name}> where <{}> has to end", ended.name);
                    return Err(self.fault(here, why));
                }
                if self.until(">").is_none() {
                    return Err(self.fault(here, format!("</{name} has no >")));
                }
                close(ended, &mut open, &mut root);
            } else {
                self.at += 1;
                self.skip_blanks();
                if open.len() > MAX_DEPTH {
                    let why = format!("elements are nested more than {MAX_DEPTH} deep");
                    return Err(Fault::new(self.place(here), why));
                }
                let mut element = Element::made(self.name(here)?, self.place(here));
                if self.attributes(&mut element)? {
                    close(element, &mut open, &mut root);
                } else {
                    open.push(element);
                }
            }
        }
        if let Some(element) = open.last() {
            let why = format!("<{}> has no end", element.name);
            return Err(self.fault(element.at.byte(), why));
        }
        let behind = (self.at < self.text.len()).then(|| self.place(self.at));
        let mut root = root.ok_or_else(|| self.fault(0, "there is no element"))?;
        root.stray = before.or(root.stray);
        Ok((root, behind))
    }

    /// Skips a comment, a declaration or raw text; whether that is text that says something.
    /// `None`: an element begins or ends here.
    fn aside(&mut self) -> Read<Option<bool>> {
        let here = self.at;
        for (begin, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")] {
            if !self.takes(begin) {
                continue;
            }
            let inside = self.until(end);
            let inside = inside
                .ok_or_else(|| self.fault(here, format!("{begin} has no end, which is {end}")))?;
            if begin == "<!" && inside.contains('[') {
                let why = "entities and rules of a <!DOCTYPE> are not read; a model file needs \
                           none, remove it";
                return Err(self.fault(here, why));
            }
            return Ok(Some(begin == "<![CDATA[" && !inside.trim().is_empty()));
        }
        Ok(None)
    }

    /// A name of an element or attribute; `start`: where the element stands.
    fn name(&mut self, start: usize) -> Read<&'t str> {
        let rest = self.rest();
        let part = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "_:.-".contains(c);
        let name = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || ".-".contains(c)) {
            let why = "no name where one begins; in text and values `<` is written &lt;";
            return Err(self.fault(start, why));
        }
        self.at += name.len();
        Ok(name)
    }

    /// Reads an element's attributes and the end of its tag; whether that ends the element.
    fn attributes(&mut self, element: &mut Element) -> Read<bool> {
        let start = element.at.byte();
        let mut names = HashSet::new();
        loop {
            self.skip_blanks();
            if self.takes("/>") {
                return Ok(true);
            }
            if self.takes(">") {
                return Ok(false);
            }
            let at = self.at;
            if self.rest().is_empty() {
                return Err(self.fault(start, format!("<{} has no >", element.name)));
            }
            let name = self.name(at).map_err(|_| {
                let why = format!("neither an attribute of <{}> nor its end", element.name);
                self.fault(at, why)
            })?;
            self.skip_blanks();
            let equals = self.takes("=");
            self.skip_blanks();
            let quote = ["\"", "'"].into_iter().find(|q| self.takes(q));
            let Some(quote) = quote.filter(|_| equals) else {
                let why = format!("an attribute is written {name}=\"value\"");
                return Err(self.fault(at, why));
            };
            let value_at = self.at;
            let raw = self.until(quote);
            let raw = raw.ok_or_else(|| {
                self.fault(at, format!("the value of {name} has no end, which is {quote}"))
            })?;
            if !names.insert(name) {
                let why = format!("{name} is given twice; remove one");
                return Err(self.fault(at, why));
            }
            let value = value(raw).map_err(|(byte, why)| self.fault(value_at + byte, why))?;
            // What XML says of names is no attribute.
            if name == "xmlns" || ["xmlns:", "xml:", "xsi:"].iter().any(|p| name.starts_with(p)) {
                continue;
            }
            let verbatim = value.len() == raw.len();
            let (at, value_at) = (self.place(at), self.place(value_at));
            element.attrs.push(Attr::read(name, value, at, value_at, verbatim));
        }
    }
}

/// Blanks, and the mark of UTF-8 that some editors leave in the middle.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}' || c == '\0'
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

/// The text that a value means; else the byte and what is wrong there.
fn value(raw: &str) -> Result<String, (usize, &'static str)> {
    let control = |c: char| c.is_control() && !"\t\n\r".contains(c);
    if let Some(at) = raw.find(control) {
        return Err((at, "a control character in a value; remove it"));
    }
    if let Some(at) = raw.find(char::REPLACEMENT_CHARACTER) {
        let why = "a character that is not UTF-8 and whose encoding is not known; save the file \
                   as UTF-8, for example with: iconv -f WINDOWS-1252 -t UTF-8 FILE";
        return Err((at, why));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['&', '\r']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("\r\n").or(rest.strip_prefix('\r')) {
            text.push('\n');
            rest = after;
            continue;
        }
        let end = rest.find(';').unwrap_or(0);
        let c = entity(&rest[1..end.max(1)]);
        if c.is_some_and(control) {
            return Err((raw.len() - rest.len(), "the number of a control character; remove it"));
        }
        // As MuJoCo: what means nothing stands for itself.
        text.push(c.unwrap_or('&'));
        rest = &rest[if c.is_some() { end + 1 } else { 1 }..];
    }
    text.push_str(rest);
    // A value is one line, as XML has it for those that are no references: names go into lines.
    Ok(text.replace(['\n', '\r'], " "))
}

/// The character that `&name;` means.
fn entity(name: &str) -> Option<char> {
    let number = |digits: &str, radix| char::from_u32(u32::from_str_radix(digits, radix).ok()?);
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix("#x") {
            Some(digits) => number(digits, 16),
            None => number(name.strip_prefix('#')?, 10),
        },
    }
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
