//! Mistakes in a configuration: their places and remedies.

use super::source::{Origin, Sources};
use ostler_base::text::line;
use std::fmt;

/// One mistake. `Display` is `file:line:column: message`, the quoted line with a
/// caret under the place, and the right form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// `file`, or `--set a.b=c`; empty if there is no place.
    pub label: String,
    /// Line and column, counted from 1, in characters; none for arguments.
    pub position: Option<(usize, usize)>,
    quote: Option<Box<Quote>>,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    order: (usize, usize),
}

/// The part of a line that is shown, the caret's first column in it (from 0) and its length,
/// in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quote {
    line: String,
    caret: usize,
    length: usize,
}

impl Diagnostic {
    /// A mistake without a place.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            label: String::new(),
            position: None,
            quote: None,
            message: message.into(),
            help: None,
            order: (0, 0),
        }
    }

    /// A mistake at a place.
    pub fn at(sources: &Sources, origin: &Origin, message: impl Into<String>) -> Self {
        let mut d = Self::plain(message);
        let Some(source) = sources.0.get(origin.source) else {
            return d;
        };
        let text = &source.text;
        let start = floor_char(text, origin.span.start);
        let end = floor_char(text, origin.span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let column = text[line_start..start].chars().count();
        let length = text[start..end.min(line_end)].chars().count().max(1);
        d.label = source.label.clone();
        d.order = (origin.source, start);
        if !source.argument {
            let number = text[..line_start].matches('\n').count() + 1;
            d.position = Some((number, column + 1));
        }
        // Of a very long line what is shown of it.
        let skip = column.saturating_sub(QUOTE / 2);
        let line: String = line.chars().skip(skip).take(QUOTE).collect();
        d.quote = Some(Box::new(Quote { line, caret: column - skip, length: length.min(QUOTE) }));
        d
    }

    /// Adds the right value.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The last character boundary at or before byte `i`.
fn floor_char(text: &str, i: usize) -> usize {
    let mut i = i.min(text.len());
    while !text.is_char_boundary(i) {
        i -= 1;
    }
    i
}

/// A very long line is quoted in part, so that the caret stays in sight.
const QUOTE: usize = 120;
/// Most mistakes that are shown. Each is looked up in the text: a file with thousands is
/// no configuration, and would take the product of its length and their number.
pub(super) const MOST: usize = 100;

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            write!(f, "{}", line(&self.label))?;
            if let Some((line, column)) = self.position {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", line(&self.message))?;
        if let Some(quote) = self.quote.as_deref() {
            // A tab is quoted as one blank: the caret's column counts characters.
            let shown = quote.line.chars();
            let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
            let number = self.position.map(|p| p.0.to_string()).unwrap_or_default();
            let pad = " ".repeat(number.len());
            let blank = " ".repeat(quote.caret);
            let caret = "^".repeat(quote.length);
            write!(f, "\n  {number} | {shown}\n  {pad} | {blank}{caret}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  {}", line(help))?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<Diagnostic>);

impl std::error::Error for ConfigErrors {}

impl From<Diagnostic> for ConfigErrors {
    fn from(d: Diagnostic) -> Self {
        Self(vec![d])
    }
}

impl ConfigErrors {
    /// Sorted by place; those beyond the first hundred are left out.
    pub fn sorted(mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|d| d.order);
        list.dedup();
        if list.len() > MOST {
            list.truncate(MOST);
            let rest = format!("there are more mistakes than these {MOST}");
            list.push(Diagnostic::plain(rest));
        }
        Self(list)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
                write!(f, "error: ")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}
