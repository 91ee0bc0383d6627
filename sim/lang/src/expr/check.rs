//! Syntax tree -> checked graph: sizes, units, names.

use super::checker::{Checker, MAX_COMPONENTS};
use super::dag::MAX_NODES;
use super::error::ExprError;
use super::ops::Op;
use super::tree::{Node, NodeRef};
use super::unit::Unit;
use super::value::{Comp, Value};
use std::ops::Range;

/// Most nodes that are within one another, those of named expressions included: more than one
/// text can have.
const MAX_DEPTH: usize = 800;
/// Stack that one of them may take, with all that it calls but [`Checker::check`].
const STACK_OF_ONE: usize = 64 << 10;
/// Stack that is added where less than that is left.
const MORE_STACK: usize = 1 << 20;
/// Most nodes that are looked at, those of a named expression once for every use.
const MAX_WORK: usize = 1 << 20;

impl Checker<'_> {
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
                format!("this expression needs more than {MAX_NODES} operations"),
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
