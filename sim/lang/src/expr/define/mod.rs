//! Definitions of a task: lists of parts (`[task.names]`), named expressions (`[task.let]`),
//! and the names of its states.

mod lets;
mod lists;
mod read;
mod report;

pub use lets::Let;
pub use lists::List;
pub use report::LetRow;

use super::looks::Looks;
use super::unit::Unit;

/// Words that no definition can be called.
const KEYWORDS: [&str; 11] =
    ["and", "or", "not", "true", "false", "command", "param", "state", "native", "event", "motion"];

/// A function of a task as expressions know it.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its place in the configuration.
    pub index: usize,
    /// Its name, read as `native.NAME`.
    pub name: String,
    /// Whose it is.
    pub agent: Option<usize>,
    /// Its first output among all.
    pub first: usize,
    /// Units of its outputs.
    pub units: Vec<Unit>,
}

/// Names that a task defines for its expressions.
#[derive(Debug, Default)]
pub struct Definitions<'a> {
    /// Lists of parts, in the order of their names.
    pub lists: Vec<List>,
    /// Named expressions, in the order of their names.
    pub lets: Vec<Let<'a>>,
    /// Names of the states as they are written, in order.
    pub states: Vec<&'a str>,
    /// Native functions, put here by the task.
    pub natives: Vec<Declared>,
    /// The reference motion, put here by the task.
    pub motion: Looks,
}

impl<'a> Definitions<'a> {
    /// No definitions.
    pub fn none() -> &'static Definitions<'static> {
        static NONE: Definitions<'static> = Definitions {
            lists: Vec::new(),
            lets: Vec::new(),
            states: Vec::new(),
            natives: Vec::new(),
            motion: Looks::none(),
        };
        &NONE
    }

    /// All that `text` says with the entries of lists in place of their names in braces: the
    /// entries, and the text. Other words in braces stay.
    pub fn spelled(&self, text: &str) -> Vec<(Vec<(usize, usize)>, String)> {
        let mut all = vec![(Vec::new(), text.to_string())];
        for (l, list) in self.lists.iter().enumerate() {
            let placeholder = format!("{{{}}}", list.name);
            if !text.contains(&placeholder) {
                continue;
            }
            let of = |(bound, text): &(Vec<(usize, usize)>, String)| {
                let (bound, text) = (bound.clone(), text.clone());
                let entries = list.entries.iter().enumerate();
                let placeholder = placeholder.clone();
                entries.map(move |(e, entry)| {
                    let bound = bound.iter().copied().chain([(l, e)]).collect();
                    (bound, text.replace(&placeholder, entry))
                })
            };
            // A list may have 1024 entries: three of them would fill a machine's memory.
            all = all.iter().flat_map(of).take(1 << 14).collect();
        }
        all
    }

    /// Names that `text` stands for where names of parts are listed: the entries of the list
    /// of that name, unless it `is_part` of the robot; one for every entry of a list in
    /// braces; else itself.
    pub fn entries(&self, text: &str, is_part: impl Fn(&str) -> bool) -> Vec<String> {
        match self.list(text) {
            Some(list) if !is_part(text) => self.lists[list].written.clone(),
            _ => self.spelled(text).into_iter().map(|(_, name)| name).collect(),
        }
    }

    /// The list of that name.
    pub(super) fn list(&self, name: &str) -> Option<usize> {
        self.lists.iter().position(|l| l.name == name)
    }

    /// The named expression of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.lets.iter().position(|l| l.name == name)
    }

    /// Names of all lists.
    pub(super) fn list_names(&self) -> impl Iterator<Item = &str> {
        self.lists.iter().map(|l| l.name.as_str())
    }

    /// Names of all named expressions.
    pub(super) fn let_names(&self) -> impl Iterator<Item = &str> {
        self.lets.iter().map(|l| l.name)
    }
}

/// Whether `name` looks like a name of an expression: letters, digits and `_`, no digit first.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl<'a> Definitions<'a> {
    /// The native function of that name.
    pub fn native(&self, name: &str) -> Option<&Declared> {
        self.natives.iter().find(|n| n.name == name)
    }
}
