//! What names in braces stand for.

use super::checker::Checker;
use super::error::ExprError;
use super::lex::word_in_braces;
use super::place::{PLACEHOLDERS, Place};
use ostler_base::names::nearest;
use std::borrow::Cow;
use std::ops::Range;

/// The first name in braces of `text`: its bytes, the braces included.
fn braces(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{') {
        let start = from + open;
        match word_in_braces(&text[start..]) {
            Some(len) => return Some(start..start + len),
            None => from = start + 1,
        }
    }
    None
}

impl<'a> Checker<'a> {
    /// Does `work` at another place.
    pub(super) fn at_place<T>(&mut self, place: Place<'a>, work: impl FnOnce(&mut Self) -> T) -> T {
        let back = std::mem::replace(&mut self.place, place);
        let done = work(self);
        self.place = back;
        done
    }

    /// `text` with what names in braces stand for in their places. `span` is where it was
    /// written.
    pub(super) fn fill<'t>(
        &mut self,
        text: &'t str,
        span: &Range<usize>,
    ) -> Result<Cow<'t, str>, ExprError> {
        let mut filled = Cow::Borrowed(text);
        let mut from = 0;
        while let Some(found) = braces(&filled[from..]) {
            let found = found.start + from..found.end + from;
            let placeholder = filled[found.clone()].to_string();
            let at = self.place.text[span.clone()].find(&placeholder);
            let own = at.map_or_else(
                || span.clone(),
                |at| span.start + at..span.start + at + placeholder.len(),
            );
            let name = self.meaning(&placeholder, own)?;
            let mut text = filled.into_owned();
            text.replace_range(found.clone(), &name);
            from = found.start + name.len();
            filled = Cow::Owned(text);
        }
        Ok(filled)
    }

    /// The name that `{word}` stands for.
    fn meaning(&mut self, placeholder: &str, span: Range<usize>) -> Result<String, ExprError> {
        let word = &placeholder[1..placeholder.len() - 1];
        if let Some(argument) = self.place.argument(word) {
            return self.name_of_argument(argument, span);
        }
        if PLACEHOLDERS.contains(&placeholder) {
            return self.agent_meant(placeholder, span);
        }
        let defined = self.scope.defined;
        let Some(list) = defined.list(word) else {
            let error = ExprError::new(span, format!("`{placeholder}` stands for nothing"));
            let agents = ["agent", "other", "each"];
            let near = nearest(word, agents.into_iter().chain(defined.list_names()));
            return Err(error.help(match near {
                Some(near) => format!("did you mean {{{near}}}?"),
                None => "a list of [task.names] in braces stands for its entries, inside \
                         each(LIST, ...)"
                    .to_string(),
            }));
        };
        let bound = self.place.entries.iter().rev().find(|b| b.0 == list);
        let (list, entry) = match bound {
            Some(&(_, entry)) => (&defined.lists[list], entry),
            None if self.trying.is_some() => {
                self.free.insert(list);
                (&defined.lists[list], 0)
            }
            None => {
                let error =
                    ExprError::new(span, format!("`{placeholder}` stands for nothing here"));
                let entries = defined.lists[list].summary();
                return Err(error.help(format!(
                    "inside each({word}, ...) it stands for {entries}, one after the other"
                )));
            }
        };
        Ok(list.entries[entry].clone())
    }

    /// `text`, for people: with names in place of what stands for them, where that is known.
    pub(super) fn named(&self, text: &str) -> String {
        let mut named = text.to_string();
        for &(list, entry) in self.place.entries.iter().rev() {
            let list = &self.scope.defined.lists[list];
            named = named.replace(&format!("{{{}}}", list.name), &list.entries[entry]);
        }
        self.agents_named(named)
    }
}
