//! Conditions, choices and vectors from parts.

use crate::expr::checker::Checker;
use crate::expr::dag::{Dag, Id};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::Value;

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "if",
        params: &[one("condition", Kind::Bool), one("a", Kind::Value), one("b", Kind::Value)],
        gives: "as a and b",
        rule: Rule::Same,
        doc: "a where the condition holds, else b; the same as `condition ? a : b`",
        body: Body::Special(choose),
    },
    Function {
        name: "between",
        params: &[one("x", Kind::Value), one("lo", Kind::Value), one("hi", Kind::Value)],
        gives: "bool, as x",
        rule: Rule::Compare("-"),
        doc: "lo <= x <= hi; `not between(...)` also holds for NaN",
        body: Body::Special(between),
    },
    Function {
        name: "is_finite",
        params: &[one("x", Kind::Value)],
        gives: "bool, as x",
        rule: Rule::Fixed("-"),
        doc: "neither infinite nor NaN",
        body: Body::Special(is_finite),
    },
    Function {
        name: "all",
        params: &[one("conditions", Kind::Bool)],
        gives: "bool",
        rule: Rule::Fixed("-"),
        doc: "all components hold",
        body: Body::Special(|c, call| fold_bool(c, call, Op::And)),
    },
    Function {
        name: "any",
        params: &[one("conditions", Kind::Bool)],
        gives: "bool",
        rule: Rule::Fixed("-"),
        doc: "at least one component holds",
        body: Body::Special(|c, call| fold_bool(c, call, Op::Or)),
    },
    Function {
        name: "count",
        params: &[one("conditions", Kind::Bool)],
        gives: "1",
        rule: Rule::Fixed("-"),
        doc: "how many components hold",
        body: Body::Special(|c, call| {
            let ids = c.value(call, 0)?.ids();
            Ok(Value::scalar(c.dag.sum(&ids), Unit::NONE))
        }),
    },
    Function {
        name: "concat",
        params: &[one("a", Kind::Value), more(Kind::Value)],
        gives: "all components in order",
        rule: Rule::Each("every component keeps its own"),
        doc: "one vector from several; the same as `[a, b, c]`",
        body: Body::Special(concat),
    },
];

fn choose(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = [c.value(call, 0)?, c.value(call, 1)?, c.value(call, 2)?];
    c.choose(values, [0, 1, 2].map(|i| call.span_of(i)))
}

fn between(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = c.agreeing(call)?;
    let mut inside = c.map(call, &values, Unit::NONE, |d: &mut Dag, x: &[Id]| {
        let (above, below) = (d.two(Op::Le, x[1], x[0]), d.two(Op::Le, x[0], x[2]));
        d.two(Op::And, above, below)
    })?;
    inside.truth = true;
    Ok(inside)
}

fn is_finite(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let x = c.value(call, 0)?;
    let mut finite =
        c.map(call, &[x], Unit::NONE, |d: &mut Dag, x: &[Id]| d.one(Op::Finite, x[0]))?;
    finite.truth = true;
    Ok(finite)
}

fn fold_bool(c: &mut Checker<'_>, call: &Call, op: Op) -> Result<Value, ExprError> {
    let ids = c.value(call, 0)?.ids();
    Ok(Value::truth(vec![c.dag.fold(op, &ids)]))
}

fn concat(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = c.values(call)?;
    c.concat(values, call.span.clone())
}
