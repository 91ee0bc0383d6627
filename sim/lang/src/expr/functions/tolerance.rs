//! `tolerance`: rewards of dm_control's form.

use crate::expr::checker::Checker;
use crate::expr::dag::{Dag, Id};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, one, optional};
use crate::expr::unit::Unit;
use crate::expr::value::Value;
use ostler_base::names::nearest;
use std::f64::consts::PI;

/// The table.
pub(crate) const TABLE: &[Function] = &[Function {
    name: "tolerance",
    params: &[
        one("x", Kind::Value),
        one("lo", Kind::Value),
        one("hi", Kind::Value),
        optional("margin", Kind::Value),
        optional("shape", Kind::Word),
        optional("value_at_margin", Kind::Value),
    ],
    gives: "as x",
    rule: Rule::Compare("-"),
    doc: "1 between lo and hi, falling off to value_at_margin (0.1) at a distance of margin (to 0 without one), as in dm_control; shapes are gaussian (the default), linear, hyperbolic, long_tail, cosine, tanh_squared, quadratic, reciprocal",
    body: Body::Special(tolerance),
}];

/// dm_control's sigmoids.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Gaussian,
    Linear,
    Hyperbolic,
    LongTail,
    Cosine,
    TanhSquared,
    Quadratic,
    Reciprocal,
}

const SHAPES: [(&str, Shape); 8] = [
    ("gaussian", Shape::Gaussian),
    ("linear", Shape::Linear),
    ("hyperbolic", Shape::Hyperbolic),
    ("long_tail", Shape::LongTail),
    ("cosine", Shape::Cosine),
    ("tanh_squared", Shape::TanhSquared),
    ("quadratic", Shape::Quadratic),
    ("reciprocal", Shape::Reciprocal),
];

/// Source: dm_control's `rewards.tolerance` with its default, a Gaussian with value 0.1 at the
/// margin.
fn tolerance(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let numbers = Call {
        function: call.function,
        span: call.span.clone(),
        args: call.args[..call.args.len().min(4)].to_vec(),
    };
    let values = c.agreeing(&numbers)?;
    c.ordered(call, [1, 2])?;
    if let Some(margin) = values.get(3)
        && let Some(x) = margin.ids().iter().filter_map(|&i| c.dag.value(i)).next()
        && x < 0.0
    {
        let why = format!("the margin {x} is negative");
        return Err(ExprError::new(call.span_of(3), why));
    }
    let shape = shape(call)?;
    let at_margin = value_at_margin(c, call, shape)?;
    c.map(&numbers, &values, Unit::NONE, |d: &mut Dag, x: &[Id]| {
        let (zero, one) = (d.constant(0.0), d.constant(1.0));
        let (below, above) = (d.sub(x[1], x[0]), d.sub(x[0], x[2]));
        let far = d.two(Op::Max, below, above);
        let outside = d.two(Op::Lt, zero, far);
        let Some(&margin) = x.get(3) else {
            let (above, below) = (d.two(Op::Le, x[1], x[0]), d.two(Op::Le, x[0], x[2]));
            return d.two(Op::And, above, below);
        };
        let ratio = d.div(far, margin);
        let less = falling(d, shape, at_margin, ratio);
        d.select(outside, less, one)
    })
}

fn shape(call: &Call) -> Result<Shape, ExprError> {
    let Some(word) = call.word(4) else {
        return Ok(Shape::Gaussian);
    };
    let names = SHAPES.map(|s| s.0);
    let found = SHAPES.iter().find(|s| s.0 == word).map(|s| s.1);
    found.ok_or_else(|| {
        let error = ExprError::new(call.span_of(4), format!("no shape is called `{word}`"));
        error.help(match nearest(word, names) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names.join(", ")),
        })
    })
}

fn value_at_margin(c: &Checker<'_>, call: &Call, shape: Shape) -> Result<f64, ExprError> {
    if call.args.len() < 6 {
        return Ok(0.1);
    }
    let value = c.value(call, 5)?;
    let constant = match value.ids()[..] {
        [id] => c.dag.value(id),
        _ => None,
    };
    let zero_too = matches!(shape, Shape::Cosine | Shape::Linear | Shape::Quadratic);
    let fits = |v: &f32| (*v > 0.0 || (zero_too && *v == 0.0)) && *v < 1.0;
    match constant.filter(fits) {
        // The number that was written, not the float next to it.
        Some(v) => Ok(v.to_string().parse().unwrap_or(f64::from(v))),
        None => Err(ExprError::new(
            call.span_of(5),
            "the value at the margin is a constant between 0 and 1",
        )
        .help("such as 0.1")),
    }
}

/// From 1 at 0 to `v` at 1. Source: `_sigmoids` of dm_control's `utils/rewards.py`.
fn falling(d: &mut Dag, shape: Shape, v: f64, x: Id) -> Id {
    let (zero, one) = (d.constant(0.0), d.constant(1.0));
    let scale = match shape {
        Shape::Gaussian => {
            let (square, log) = (d.mul(x, x), d.constant(v.ln()));
            let power = d.mul(log, square);
            return d.one(Op::Exp, power);
        }
        Shape::Linear => 1.0 - v,
        Shape::Hyperbolic => (1.0 / v).acosh(),
        Shape::LongTail => (1.0 / v - 1.0).sqrt(),
        Shape::Cosine => (2.0 * v - 1.0).acos() / PI,
        Shape::TanhSquared => (1.0 - v).sqrt().atanh(),
        Shape::Quadratic => (1.0 - v).sqrt(),
        Shape::Reciprocal => 1.0 / v - 1.0,
    };
    let scale = d.constant(scale);
    let y = d.mul(x, scale);
    // 0 from where the shape has reached it.
    let within = |d: &mut Dag, value: Id| {
        let size = d.one(Op::Abs, y);
        let inside = d.two(Op::Lt, size, one);
        d.select(inside, value, zero)
    };
    match shape {
        Shape::Gaussian => y,
        Shape::Linear => {
            let value = d.sub(one, y);
            within(d, value)
        }
        Shape::Hyperbolic => {
            let (up, minus) = (d.one(Op::Exp, y), d.one(Op::Neg, y));
            let down = d.one(Op::Exp, minus);
            let (sum, two) = (d.add(up, down), d.constant(2.0));
            d.div(two, sum)
        }
        Shape::LongTail => {
            let square = d.mul(y, y);
            let sum = d.add(square, one);
            d.div(one, sum)
        }
        Shape::Cosine => {
            let pi = d.constant(PI);
            let angle = d.mul(pi, y);
            let cosine = d.one(Op::Cos, angle);
            let (sum, two) = (d.add(one, cosine), d.constant(2.0));
            let value = d.div(sum, two);
            within(d, value)
        }
        Shape::TanhSquared => {
            let tanh = d.one(Op::Tanh, y);
            let square = d.mul(tanh, tanh);
            d.sub(one, square)
        }
        Shape::Quadratic => {
            let square = d.mul(y, y);
            let value = d.sub(one, square);
            within(d, value)
        }
        Shape::Reciprocal => {
            let size = d.one(Op::Abs, y);
            let sum = d.add(size, one);
            d.div(one, sum)
        }
    }
}
