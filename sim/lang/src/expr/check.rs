//! Syntax tree -> checked graph: sizes, units, names.

pub(crate) use super::value::{Comp, Value};

use super::dag::{Dag, Id};
use super::functions::Function;
use super::inline::Known;
use super::ops::Op;
use super::place::Place;
use super::tree::{Node, NodeRef, Tree};
use super::unit::Unit;
use super::{Element, ElementKind, ExprError, Remembered, Scope};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Most components of one vector.
pub(crate) const MAX_COMPONENTS: usize = 4096;
/// Most nodes that are within one another, those of named expressions included: more than one
/// text can have.
const MAX_DEPTH: usize = 800;
/// Stack that one of them may take, with all that it calls but [`Checker::check`].
const STACK_OF_ONE: usize = 64 << 10;
/// Stack that is added where less than that is left.
const MORE_STACK: usize = 1 << 20;
/// Most nodes that are looked at, those of a named expression once for every use.
const MAX_WORK: usize = 1 << 20;

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Arg {
    /// A value.
    Value(Value),
    /// Named elements of the model.
    Elements(Vec<Element>),
    /// A word.
    Word(String),
}

/// A call whose arguments were checked.
pub struct Call {
    /// The called function.
    pub function: &'static Function,
    /// The whole call.
    pub span: Range<usize>,
    /// Arguments and where they are.
    pub args: Vec<(Arg, Range<usize>)>,
}

impl Call {
    /// Where argument `i` is (the call if there is none).
    pub fn span_of(&self, i: usize) -> Range<usize> {
        self.args.get(i).map_or_else(|| self.span.clone(), |a| a.1.clone())
    }

    /// The word that argument `i` is.
    pub fn word(&self, i: usize) -> Option<&str> {
        match self.args.get(i) {
            Some((Arg::Word(word), _)) => Some(word),
            _ => None,
        }
    }

    /// The elements that argument `i` names.
    pub fn elements_of(&self, i: usize) -> &[Element] {
        match self.args.get(i) {
            Some((Arg::Elements(e), _)) => e,
            _ => &[],
        }
    }

    /// The elements that all arguments name; `None` without arguments.
    pub fn elements(&self) -> Option<Vec<Element>> {
        let all = (0..self.args.len()).flat_map(|i| self.elements_of(i).to_vec());
        (!self.args.is_empty()).then(|| all.collect())
    }
}

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
    /// Whether the agent is mentioned that this is evaluated for.
    pub of_agent: bool,
    /// Where values that this expression remembers are kept.
    pub remembered: HashMap<(Remembered, Vec<Id>), usize>,
    /// The text that is being checked.
    pub(super) place: Place<'a>,
    /// Values of named expressions that were used.
    pub(super) values: HashMap<Known, Value>,
    /// The named expression that is being checked by itself, if it is one.
    pub(super) trying: Option<usize>,
    /// Lists of which such an expression takes an entry.
    pub(super) free: BTreeSet<usize>,
    /// Which physics steps contacts are read of.
    pub(super) steps: Steps,
    /// Whether contacts of the last physics step were read.
    pub(super) latest: bool,
    /// Calls of [`check`](Self::check) that have not returned, and all so far.
    deep: usize,
    work: usize,
}

impl<'a> Checker<'a> {
    /// Before anything is checked.
    pub fn new(text: &'a str, tree: &'a Tree<'a>, scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            dag: Dag::default(),
            elements: Vec::new(),
            of_agent: false,
            remembered: HashMap::new(),
            place: Place::new(text, tree),
            values: HashMap::new(),
            trying: None,
            free: BTreeSet::new(),
            steps: Steps::Mean,
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

    /// The value of a node.
    pub fn check(&mut self, node: NodeRef) -> Result<Value, ExprError> {
        self.work += 1;
        if self.deep == MAX_DEPTH || self.work > MAX_WORK {
            let what = match self.deep == MAX_DEPTH {
                true => "named expressions are nested too deeply in this one",
                false => "this expression comes to too much, written out",
            };
            return Err(ExprError::new(self.span(node), what).help("split it into several terms"));
        }
        self.deep += 1;
        let first = self.dag.nodes().len();
        let value = stacker::maybe_grow(STACK_OF_ONE, MORE_STACK, || self.chain(node));
        self.deep -= 1;
        let value = value?;
        self.known_at_start(first, self.span(node))?;
        Ok(value)
    }

    /// Chains of operators are walked, not descended.
    fn chain(&mut self, node: NodeRef) -> Result<Value, ExprError> {
        let tree = self.place.tree;
        let mut chain = Vec::new();
        let mut first = node;
        while let (Node::Binary { left, .. }, _) = &tree.nodes[first] {
            chain.push(first);
            first = *left;
        }
        let mut value = self.single(first)?;
        self.bounded(&value, first)?;
        while let Some(at) = chain.pop() {
            let Node::Binary { op, op_span, left, right } = &tree.nodes[at].0 else {
                continue;
            };
            let right_value = self.check(*right)?;
            let sides = [self.span(*left), self.span(*right)];
            value = self.binary(*op, op_span, [value, right_value], &sides)?;
            self.bounded(&value, at)?;
        }
        Ok(value)
    }

    fn bounded(&self, value: &Value, node: NodeRef) -> Result<(), ExprError> {
        if value.len() > MAX_COMPONENTS {
            return Err(ExprError::new(
                self.span(node),
                format!("this vector has {} components", value.len()),
            )
            .help(format!("at most {MAX_COMPONENTS}")));
        }
        if self.dag.full() {
            return Err(ExprError::new(
                0..self.place.text.len(),
                format!("this expression needs more than {} operations", super::dag::MAX_NODES),
            )
            .help("split it into several terms"));
        }
        Ok(())
    }

    fn single(&mut self, node: NodeRef) -> Result<Value, ExprError> {
        let tree = self.place.tree;
        let (kind, span) = &tree.nodes[node];
        match kind {
            Node::Number(x) => Ok(Value::scalar(self.dag.constant(*x), Unit::Any)),
            Node::Name(name) => {
                let name = self.fill(name, span)?;
                self.name(&name, span)
            }
            Node::Text(text) => {
                let text = self.fill(text, span)?;
                Err(self.quoted(&text, span))
            }
            Node::List(items) => {
                let values = items.iter().map(|&i| self.check(i)).collect::<Result<Vec<_>, _>>()?;
                self.concat(values, span.clone())
            }
            Node::Call { name, name_span, args } => {
                let name = self.fill(name, name_span)?;
                self.call(&name, name_span, args, span)
            }
            Node::Member { of, name, name_span } => {
                let name = self.fill(name, name_span)?;
                self.member(*of, &name, name_span)
            }
            Node::Index { of, at, index_span } => {
                let value = self.check(*of)?;
                let i = position(*at, value.len()).filter(|&i| i < value.len());
                let i = i.ok_or_else(|| outside(*at, value.len(), index_span.clone()))?;
                Ok(Value { comps: vec![value.comps[i]], quat: false, ..value })
            }
            Node::Slice { of, from, to, index_span } => {
                let value = self.check(*of)?;
                let n = value.len();
                let end =
                    |at: i64| position(at, n).ok_or_else(|| outside(at, n, index_span.clone()));
                let from = from.map_or(Ok(0), end)?;
                let to = to.map_or(Ok(n), end)?;
                if from >= to {
                    return Err(ExprError::new(index_span.clone(), "this slice is empty").help(
                        format!("[{from}:{to}] of {n} components; the end is not included"),
                    ));
                }
                Ok(Value { comps: value.comps[from..to].to_vec(), quat: false, ..value })
            }
            Node::Negate(of) => {
                let value = self.check(*of)?;
                self.number(&value, self.span(*of), "`-`")?;
                let comps = value
                    .comps
                    .iter()
                    .map(|c| Comp { node: self.dag.one(Op::Neg, c.node), unit: c.unit });
                Ok(Value { comps: comps.collect(), ..value })
            }
            Node::Not(of) => {
                let value = self.check(*of)?;
                self.condition(&value, self.span(*of), "`not`")?;
                let ids = value.ids();
                Ok(Value::truth(ids.into_iter().map(|x| self.dag.one(Op::Not, x)).collect()))
            }
            Node::If { cond, yes, no } => {
                let spans = [self.span(*cond), self.span(*yes), self.span(*no)];
                let values = [self.check(*cond)?, self.check(*yes)?, self.check(*no)?];
                self.condition(&values[0], spans[0].clone(), "`? :`")?;
                self.choose(values, spans)
            }
            // Chains of operators begin with something else.
            Node::Binary { .. } => self.check(node),
        }
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

    /// Component-wise operation with a unit for every component.
    pub fn zip(
        &mut self,
        call: &Call,
        values: &[Value],
        mut f: impl FnMut(&mut Dag, &[Comp]) -> Result<Comp, ExprError>,
    ) -> Result<Value, ExprError> {
        let sides: Vec<&Value> = values.iter().collect();
        let who = format!("`{}`", call.function.name);
        let n = length_of(&sides, call.span.clone(), &who)?;
        let mut comps = Vec::with_capacity(n);
        for i in 0..n {
            let x: Vec<Comp> = values.iter().map(|v| v.at(i)).collect();
            comps.push(f(&mut self.dag, &x)?);
        }
        let quat = n == 4 && values.iter().any(|v| v.quat);
        Ok(Value { quat, ..Value::new(comps) })
    }

    /// Component-wise operation with one unit for all.
    pub fn map(
        &mut self,
        call: &Call,
        values: &[Value],
        unit: Unit,
        mut f: impl FnMut(&mut Dag, &[Id]) -> Id,
    ) -> Result<Value, ExprError> {
        self.zip(call, values, |d, x| {
            let ids: Vec<Id> = x.iter().map(|c| c.node).collect();
            Ok(Comp { node: f(d, &ids), unit })
        })
    }
}

/// Index counted from the start; negative ones count from the end.
fn position(at: i64, len: usize) -> Option<usize> {
    let len = len as i64;
    let i = if at < 0 { len + at } else { at };
    (0..=len).contains(&i).then_some(i as usize)
}

fn outside(at: i64, len: usize, span: Range<usize>) -> ExprError {
    let have = match len {
        1 => "a number has no components but [0]".to_string(),
        n => format!("the components of a vector of {n} are [0] to [{}]", n - 1),
    };
    ExprError::new(span, format!("there is no component {at}")).help(have)
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
