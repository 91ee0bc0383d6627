//! Functions of numbers and vectors.

use crate::expr::checker::Checker;
use crate::expr::dag::{Dag, Id};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::Value;
use std::f64::consts::{PI, TAU};

/// A function of one number, component by component.
macro_rules! elementwise {
    ($name:literal, $rule:expr, $doc:literal, $body:expr) => {
        Function {
            name: $name,
            params: &[one("x", Kind::Value)],
            gives: "as x",
            rule: $rule,
            doc: $doc,
            body: Body::Map($body),
        }
    };
}

/// A function of all components of a vector.
macro_rules! reduction {
    ($name:literal, $rule:expr, $doc:literal, $body:expr) => {
        Function {
            name: $name,
            params: &[one("v", Kind::Value)],
            gives: "1",
            rule: $rule,
            doc: $doc,
            body: Body::Fold($body),
        }
    };
}

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "pi",
        params: &[],
        gives: "1",
        rule: Rule::Fixed("any"),
        doc: "3.14159...",
        body: Body::Special(|c, _| Ok(Value::scalar(c.dag.constant(PI), Unit::Any))),
    },
    Function {
        name: "inf",
        params: &[],
        gives: "1",
        rule: Rule::Fixed("any"),
        doc: "infinity: min(x, inf) is x",
        body: Body::Special(|c, _| Ok(Value::scalar(c.dag.constant(f64::INFINITY), Unit::Any))),
    },
    reduction!("sum", Rule::Shared, "sum of the components", |d, x| d.sum(x)),
    reduction!("mean", Rule::Shared, "mean of the components", |d, x| {
        let (sum, n) = (d.sum(x), d.constant(x.len() as f64));
        d.div(sum, n)
    }),
    reduction!("prod", Rule::Product, "product of the components", |d, x| d.fold(Op::Mul, x)),
    Function {
        name: "min",
        params: &[one("v", Kind::Value), more(Kind::Value)],
        gives: "1, or as the arguments",
        rule: Rule::Same,
        doc: "smallest component of one vector; with several arguments, smallest component by component",
        body: Body::Special(|c, call| extreme(c, call, Op::Min)),
    },
    Function {
        name: "max",
        params: &[one("v", Kind::Value), more(Kind::Value)],
        gives: "1, or as the arguments",
        rule: Rule::Same,
        doc: "largest component of one vector; with several arguments, largest component by component",
        body: Body::Special(|c, call| extreme(c, call, Op::Max)),
    },
    elementwise!("abs", Rule::Keep, "size without sign", |d, x| d.one(Op::Abs, x[0])),
    elementwise!("sqrt", Rule::Power(0.5), "square root; NaN below zero", |d, x| d
        .one(Op::Sqrt, x[0])),
    elementwise!("square", Rule::Power(2.0), "x^2", |d, x| d.mul(x[0], x[0])),
    elementwise!("exp", Rule::Plain, "e^x", |d, x| d.one(Op::Exp, x[0])),
    elementwise!("log", Rule::Plain, "natural logarithm", |d, x| d.one(Op::Ln, x[0])),
    elementwise!("sin", Rule::Plain, "sine", |d, x| d.one(Op::Sin, x[0])),
    elementwise!("cos", Rule::Plain, "cosine", |d, x| d.one(Op::Cos, x[0])),
    elementwise!("tan", Rule::Plain, "tangent", |d, x| d.one(Op::Tan, x[0])),
    elementwise!("asin", Rule::Angle, "angle with this sine, -pi/2 to pi/2", |d, x| d
        .one(Op::Asin, x[0])),
    elementwise!("acos", Rule::Angle, "angle with this cosine, 0 to pi", |d, x| d
        .one(Op::Acos, x[0])),
    Function {
        name: "atan2",
        params: &[one("y", Kind::Value), one("x", Kind::Value)],
        gives: "as y and x",
        rule: Rule::Compare("rad"),
        doc: "angle of the point (x, y), -pi to pi",
        body: Body::Special(atan2),
    },
    elementwise!("tanh", Rule::Plain, "hyperbolic tangent", |d, x| d.one(Op::Tanh, x[0])),
    elementwise!("sigmoid", Rule::Plain, "1 / (1 + exp(-x))", |d, x| {
        let (one, minus) = (d.constant(1.0), d.one(Op::Neg, x[0]));
        let exp = d.one(Op::Exp, minus);
        let sum = d.add(one, exp);
        d.div(one, sum)
    }),
    elementwise!("floor", Rule::Keep, "largest whole number not above x", |d, x| d
        .one(Op::Floor, x[0])),
    elementwise!("round", Rule::Keep, "nearest whole number, halves to the even one", |d, x| d
        .one(Op::Round, x[0])),
    elementwise!("sign", Rule::Fixed("-"), "-1, 0 or 1", |d, x| d.one(Op::Sign, x[0])),
    Function {
        name: "clip",
        params: &[one("x", Kind::Value), one("lo", Kind::Value), one("hi", Kind::Value)],
        gives: "as x",
        rule: Rule::Same,
        doc: "x, but at least lo and at most hi",
        body: Body::Special(clip),
    },
    elementwise!("wrap_angle", Rule::Keep, "the same angle [rad] from -pi to below pi", wrap_angle),
    reduction!("norm", Rule::Shared, "length: root of the sum of squares", |d, x| {
        let sum = d.dot(x, x);
        d.one(Op::Sqrt, sum)
    }),
    Function {
        name: "norm2",
        params: &[one("v", Kind::Value)],
        gives: "1",
        rule: Rule::Power(2.0),
        doc: "squared length: sum of squares",
        body: Body::Fold(|d, x| d.dot(x, x)),
    },
    Function {
        name: "dot",
        params: &[one("a", Kind::Value), one("b", Kind::Value)],
        gives: "1",
        rule: Rule::Product,
        doc: "sum of products of two equally long vectors",
        body: Body::Special(dot),
    },
    Function {
        name: "cross",
        params: &[one("a", Kind::Vec3), one("b", Kind::Vec3)],
        gives: "3",
        rule: Rule::Product,
        doc: "cross product",
        body: Body::Special(cross),
    },
    Function {
        name: "normalize",
        params: &[one("v", Kind::Value)],
        gives: "as v",
        rule: Rule::Fixed("-"),
        doc: "v divided by its length; zero stays zero",
        body: Body::Special(normalize),
    },
    Function {
        name: "rotate",
        params: &[one("q", Kind::Quat), one("v", Kind::Vec3)],
        gives: "3",
        rule: Rule::Fixed("that of v"),
        doc: "v turned by the quaternion: from the body's frame to the world's if q is quat(body)",
        body: Body::Special(|c, call| rotate(c, call, false)),
    },
    Function {
        name: "rotate_inv",
        params: &[one("q", Kind::Quat), one("v", Kind::Vec3)],
        gives: "3",
        rule: Rule::Fixed("that of v"),
        doc: "v turned back: from the world's frame to the body's if q is quat(body)",
        body: Body::Special(|c, call| rotate(c, call, true)),
    },
    Function {
        name: "exp_kernel",
        params: &[one("error", Kind::Value), one("std", Kind::Value)],
        gives: "1",
        rule: Rule::Compare("-"),
        doc: "exp(-norm2(error) / std^2): 1 without error, 0.37 at a distance of std",
        body: Body::Special(exp_kernel),
    },
    reduction!(
        "var",
        Rule::Power(2.0),
        "variance of the components: mean squared distance from their mean, as numpy's",
        variance
    ),
    reduction!(
        "std",
        Rule::Shared,
        "standard deviation of the components: root of their variance",
        |d, x| {
            let square = variance(d, x);
            d.one(Op::Sqrt, square)
        }
    ),
    reduction!(
        "argmax",
        Rule::Fixed("-"),
        "index of the largest component, from 0; of the first of several",
        |d, x| extreme_index(d, x, false)
    ),
    reduction!(
        "argmin",
        Rule::Fixed("-"),
        "index of the smallest component, from 0; of the first of several",
        |d, x| extreme_index(d, x, true)
    ),
];

fn extreme(c: &mut Checker<'_>, call: &Call, op: Op) -> Result<Value, ExprError> {
    let values = c.agreeing(call)?;
    if let [v] = &values[..] {
        let unit = c.joined_unit(call, v)?;
        let ids = v.ids();
        return Ok(Value::scalar(c.dag.fold(op, &ids), unit));
    }
    c.map_same(call, &values, |d: &mut Dag, x: &[Id]| d.fold(op, x))
}

fn clip(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    c.ordered(call, [1, 2])?;
    let within: fn(&mut Dag, &[Id]) -> Id = |d, x| {
        let low = d.two(Op::Max, x[0], x[1]);
        d.two(Op::Min, low, x[2])
    };
    c.map_rule(call, &within)
}

fn atan2(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = c.agreeing(call)?;
    c.map(call, &values, Unit::RAD, |d: &mut Dag, x: &[Id]| d.two(Op::Atan2, x[0], x[1]))
}

/// x - 2 pi floor((x + pi) / (2 pi))
fn wrap_angle(d: &mut Dag, x: &[Id]) -> Id {
    let (pi, tau) = (d.constant(PI), d.constant(TAU));
    let shifted = d.add(x[0], pi);
    let turns = d.div(shifted, tau);
    let whole = d.one(Op::Floor, turns);
    let back = d.mul(tau, whole);
    d.sub(x[0], back)
}

fn dot(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let (a, b) = (c.value(call, 0)?, c.value(call, 1)?);
    c.same_length(call, &a, &b)?;
    let unit = a.shared_unit().times(b.shared_unit());
    let sum = c.dag.dot(&a.ids(), &b.ids());
    Ok(Value::scalar(sum, unit))
}

fn cross(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let (a, b) = (c.value(call, 0)?, c.value(call, 1)?);
    let unit = a.shared_unit().times(b.shared_unit());
    let ids = c.dag.cross(a.array(), b.array());
    Ok(Value::vector(ids, unit))
}

fn normalize(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let v = c.value(call, 0)?;
    let ids = v.ids();
    let sum = c.dag.dot(&ids, &ids);
    let norm = c.dag.one(Op::Sqrt, sum);
    let tiny = c.dag.constant(1e-12);
    let length = c.dag.two(Op::Max, norm, tiny);
    let unit: Vec<Id> = ids.iter().map(|&x| c.dag.div(x, length)).collect();
    Ok(Value { quat: v.quat, ..Value::vector(unit, Unit::NONE) })
}

fn rotate(c: &mut Checker<'_>, call: &Call, inverse: bool) -> Result<Value, ExprError> {
    let (q, v) = (c.value(call, 0)?, c.value(call, 1)?);
    let unit = v.shared_unit();
    let ids = c.dag.rotate(q.array(), v.array(), inverse);
    Ok(Value::vector(ids, unit))
}

fn exp_kernel(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = c.agreeing(call)?;
    c.scalar(call, &values[1], 1)?;
    let error = values[0].ids();
    let norm2 = c.dag.dot(&error, &error);
    let std = values[1].ids()[0];
    if c.dag.value(std) == Some(0.0) {
        return Err(ExprError::new(call.span_of(1), "a standard deviation of 0").help(
            "exp_kernel is 0.37 at an error of `std`: give it the error that is still good",
        ));
    }
    let std2 = c.dag.mul(std, std);
    let ratio = c.dag.div(norm2, std2);
    let minus = c.dag.one(Op::Neg, ratio);
    Ok(Value::scalar(c.dag.one(Op::Exp, minus), Unit::NONE))
}

fn variance(d: &mut Dag, x: &[Id]) -> Id {
    let (sum, n) = (d.sum(x), d.constant(x.len() as f64));
    let mean = d.div(sum, n);
    let away: Vec<Id> = x.iter().map(|&x| d.sub(x, mean)).collect();
    let squares = d.dot(&away, &away);
    d.div(squares, n)
}

fn extreme_index(d: &mut Dag, x: &[Id], least: bool) -> Id {
    let (mut best, mut index) = (x[0], d.constant(0.0));
    for (i, &next) in x.iter().enumerate().skip(1) {
        let sides = if least { [next, best] } else { [best, next] };
        let better = d.two(Op::Lt, sides[0], sides[1]);
        let own = d.constant(i as f64);
        best = d.select(better, next, best);
        index = d.select(better, own, index);
    }
    index
}
