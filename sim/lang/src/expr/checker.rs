//! State of a check, and what all its parts ask of values.

use super::dag::{Dag, Id};
use super::element::{Element, ElementKind};
use super::error::ExprError;
use super::history::Kind as Remembered;
use super::place::{Known, Place};
use super::scope::Scope;
use super::tree::{NodeRef, Tree};
use super::value::Value;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Most components of one vector.
pub(crate) const MAX_COMPONENTS: usize = 4096;

/// The physics steps of a control step of which contacts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    /// The mean over all of them.
    Mean,
    /// Each, in a condition that is counted.
    Counted,
    /// The last one.
    Last,
}

/// State of one check.
pub struct Checker<'a> {
    /// Names that can be used.
    pub scope: &'a Scope<'a>,
    /// Operations so far.
    pub dag: Dag,
    /// Elements that were read.
    pub elements: Vec<Element>,
    /// Elements that were named, and kinds of others of the same names that could be meant.
    pub(super) shared: Vec<(Element, ElementKind)>,
    /// Whether the agent is mentioned that this is evaluated for.
    pub of_agent: bool,
    /// Where values that this expression remembers are kept.
    pub remembered: HashMap<(Remembered, Vec<Id>), usize>,
    /// The text that is being checked.
    pub(super) place: Place<'a>,
    /// Values of named expressions that were used.
    pub(super) values: HashMap<Known, (Value, bool)>,
    /// Whether `{each}` or `{other}` was read.
    pub(super) by_name: bool,
    /// The named expression that is being checked by itself, if it is one.
    pub(super) trying: Option<usize>,
    /// Lists of which such an expression takes an entry.
    pub(super) free: BTreeSet<usize>,
    /// Which physics steps contacts are read of.
    pub(super) steps: Steps,
    /// Whether contacts of the last physics step were read.
    pub(super) latest: bool,
    /// How much later than the present frame the reference is read, in control steps.
    pub(super) ahead: f32,
    /// Calls of [`check`](Self::check) that have not returned, and all so far.
    pub(super) deep: usize,
    pub(super) work: usize,
}

impl<'a> Checker<'a> {
    /// Before anything is checked.
    pub fn new(text: &'a str, tree: &'a Tree<'a>, scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            dag: Dag::default(),
            elements: Vec::new(),
            shared: Vec::new(),
            of_agent: false,
            remembered: HashMap::new(),
            place: Place::new(text, tree),
            values: HashMap::new(),
            by_name: false,
            trying: None,
            free: BTreeSet::new(),
            steps: Steps::Mean,
            ahead: 0.0,
            latest: false,
            deep: 0,
            work: 0,
        }
    }

    /// The same, of the named expression `index` by itself: an entry of a list that is not
    /// given is the list's first.
    pub(super) fn trying(mut self, index: usize) -> Self {
        self.trying = Some(index);
        self.place.of = Some(index);
        self
    }

    /// Notes that an element is read.
    pub fn reads(&mut self, e: Element) {
        let e = match e.kind {
            ElementKind::Subtree => Element { kind: ElementKind::Body, ..e },
            _ => e,
        };
        if !self.elements.contains(&e) {
            self.elements.push(e);
        }
    }

    pub(super) fn span(&self, node: NodeRef) -> Range<usize> {
        self.place.tree.nodes[node].1.clone()
    }

    /// Refuses numbers where a condition is needed.
    pub fn condition(&self, value: &Value, span: Range<usize>, who: &str) -> Result<(), ExprError> {
        if value.truth {
            return Ok(());
        }
        Err(ExprError::new(span, format!("{who} takes a condition, this is {}", value.describe()))
            .help("compare it, such as `> 0`"))
    }

    /// Refuses conditions where a number is needed.
    pub fn number(&self, value: &Value, span: Range<usize>, who: &str) -> Result<(), ExprError> {
        if !value.truth {
            return Ok(());
        }
        Err(ExprError::new(span, format!("{who} takes a number, this is {}", value.describe()))
            .help("if(condition, 1, 0) makes a number of it; `not` reverses it"))
    }
}

/// The common length; scalars fit all.
pub(crate) fn length_of(
    values: &[&Value],
    span: Range<usize>,
    who: &str,
) -> Result<usize, ExprError> {
    let n = values.iter().map(|v| v.len()).max().unwrap_or(1);
    let Some(other) = values.iter().find(|v| v.len() != n && v.len() != 1) else {
        return Ok(n);
    };
    let first = values.iter().map(|v| v.len()).find(|&l| l != 1).unwrap_or(n);
    let second = if first == n { other.len() } else { n };
    let mut help = "both sides need one length, or one of them a single number".to_string();
    if first.min(second) <= 3 && first.max(second) <= 4 {
        let cut = ["", "x", "xy", "xyz"][first.min(second)];
        help = format!("cut the longer one with .{cut}");
    }
    Err(ExprError::new(span, format!("{who} on vectors of {first} and {second}")).help(help))
}

/// Units that cannot be brought together.
pub(crate) fn disagree(span: Range<usize>, message: String) -> ExprError {
    ExprError::new(span, message).help("multiply one by a constant to say how they compare")
}
