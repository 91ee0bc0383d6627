//! Functions of the past.

use crate::expr::checker::Checker;
use crate::expr::dag::Source;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::history;
use crate::expr::history::Kind as Remembered;
use crate::expr::signature::{Kind, Rule, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "previous",
        params: &[one("x", Kind::Value)],
        gives: "as x",
        rule: Rule::Keep,
        doc: "x at the end of the control step before; in an episode's first observation, x itself",
        body: Body::Special(previous),
    },
    Function {
        name: "since",
        params: &[one("conditions", Kind::Bool)],
        gives: "one per condition",
        rule: Rule::Fixed("s"),
        doc: "time since the condition last held, 0 while it does; where it has not held yet, since the episode began",
        body: Body::Special(since),
    },
];

fn previous(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let x = c.value(call, 0)?;
    let first = c.remember(Remembered::Previous, &x, call)?;
    let comps = x
        .comps
        .iter()
        .enumerate()
        .map(|(i, comp)| Comp { node: c.dag.load(Source::History, first + i), unit: comp.unit });
    Ok(Value { comps: comps.collect(), ..x })
}

fn since(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let conditions = c.value(call, 0)?;
    let first = c.remember(Remembered::Since, &conditions, call)?;
    let times = history::since(&mut c.dag, &conditions.ids(), first);
    Ok(Value::vector(times, Unit::SECOND))
}

impl Checker<'_> {
    /// The first row of the memory that holds the argument `value` of `call`.
    fn remember(
        &mut self,
        kind: Remembered,
        value: &Value,
        call: &Call,
    ) -> Result<usize, ExprError> {
        let key = (kind, value.ids());
        if let Some(first) = self.remembered.get(&key) {
            return Ok(*first);
        }
        let text = self.named(&self.place.text[call.span_of(0)]);
        let history = self.scope.history;
        let first = history.keep(kind, &mut self.dag, &key.1, text, call.span.clone())?;
        self.remembered.insert(key, first);
        Ok(first)
    }
}
