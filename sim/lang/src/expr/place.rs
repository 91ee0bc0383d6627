//! Where the checker is: in the expression itself, or in a named one that it uses.

use super::tree::{NodeRef, Tree};
use super::value::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// A text that is being checked, and the meaning of its names.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    /// The text's nodes.
    pub tree: &'a Tree<'a>,
    /// The text.
    pub text: &'a str,
    /// The named expression whose text it is; `None`: the expression itself.
    pub of: Option<usize>,
    /// Arguments of a function, in the order of its parameters.
    pub arguments: Rc<[Argument<'a>]>,
    /// Entries that names of lists in braces stand for: list and entry, the innermost last.
    pub entries: Rc<Vec<(usize, usize)>>,
    /// Agents that `{each}` and `{other}` stand for.
    pub meant: AgentNames,
    /// Entries that the user of a named expression has.
    pub base: usize,
    /// Of a named function: who calls it, at which byte.
    pub caller: Option<Rc<(Place<'a>, usize)>>,
}

/// An argument of a named function: what was written, where it was written. Its value is
/// computed when it is first asked for.
#[derive(Debug)]
pub(super) struct Argument<'a> {
    pub name: &'a str,
    pub node: NodeRef,
    pub place: Place<'a>,
    pub value: RefCell<Option<Value>>,
}

impl<'a> Place<'a> {
    /// An expression by itself.
    pub(crate) fn new(text: &'a str, tree: &'a Tree<'a>) -> Self {
        Self {
            tree,
            text,
            of: None,
            arguments: Rc::from([]),
            entries: Rc::default(),
            meant: AgentNames::default(),
            base: 0,
            caller: None,
        }
    }

    /// The argument of that name.
    pub(crate) fn argument(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|a| a.name == name)
    }
}

/// Placeholder of an agent's name.
pub const PLACEHOLDERS: [&str; 3] = ["{agent}", "{other}", "{each}"];

/// Which agents `{each}` and `{other}` stand for now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct AgentNames {
    pub(super) each: Option<usize>,
    pub(super) other: Option<usize>,
}

/// A named value and all that its value may depend on besides the scope.
pub(super) type Known = (usize, Rc<Vec<(usize, usize)>>, AgentNames);
