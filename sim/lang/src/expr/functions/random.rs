//! Random numbers of an episode's start.

use crate::draw::{Distribution, Draw, DrawConfig};
use crate::expr::checker::{Checker, length_of};
use crate::expr::dag::Dag;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Param, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};
use std::f64::consts::TAU;

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "uniform",
        params: &[one("lo", Kind::Value), one("hi", Kind::Value)],
        gives: "as lo and hi",
        rule: Rule::Same,
        doc: "drawn evenly from lo to hi, each component by itself",
        body: Body::Special(|c, call| {
            drawn(c, call, UNIT, |d, [lo, hi], u| {
                let width = d.sub(hi, lo);
                let part = d.mul(width, u);
                d.add(lo, part)
            })
        }),
    },
    Function {
        name: "log_uniform",
        params: &[one("lo", Kind::Value), one("hi", Kind::Value)],
        gives: "as lo and hi",
        rule: Rule::Same,
        doc: "the same, with an even logarithm; both above 0",
        body: Body::Special(|c, call| {
            drawn(c, call, UNIT, |d, [lo, hi], u| {
                let ratio = d.div(hi, lo);
                let log = d.one(Op::Ln, ratio);
                let part = d.mul(log, u);
                let factor = d.one(Op::Exp, part);
                d.mul(lo, factor)
            })
        }),
    },
    Function {
        name: "normal",
        params: &[one("mean", Kind::Value), one("std", Kind::Value)],
        gives: "as mean and std",
        rule: Rule::Same,
        doc: "drawn from the normal distribution with this standard deviation, each component by itself",
        body: Body::Special(|c, call| {
            drawn(c, call, Draw::about_zero(1.0), |d, [mean, std], z| {
                let part = d.mul(std, z);
                d.add(mean, part)
            })
        }),
    },
    Function {
        name: "bernoulli",
        params: &[one("p", Kind::Value)],
        gives: "bool, as p",
        rule: Rule::Fixed("-"),
        doc: "holds with probability p, each component by itself",
        body: Body::Special(|c, call| {
            let p = c.value(call, 0)?;
            c.number(&p, call.span_of(0), "`bernoulli`")?;
            let unit = p.shared_unit();
            if !unit.is_plain() {
                let why = format!("`bernoulli` takes a probability, this is in [{unit}]");
                return Err(ExprError::new(call.span_of(0), why).help("0 to 1"));
            }
            let u = c.draw("bernoulli", &call.span, vec![UNIT; p.len()])?;
            let both = u.into_iter().zip(p.ids());
            Ok(Value::truth(both.map(|(u, p)| c.dag.two(Op::Lt, u, p)).collect()))
        }),
    },
    Function {
        name: "choice",
        params: &[one("a", Kind::Value), one("b", Kind::Value), more(Kind::Value)],
        gives: "as the arguments",
        rule: Rule::Same,
        doc: "one of the arguments, all alike",
        body: Body::Special(choice),
    },
    Function {
        name: "random_quat",
        params: &[],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "an orientation, drawn from all alike",
        body: Body::Special(random_quat),
    },
];

/// Functions of the task language whose arguments are numbers that are known before.
pub(crate) const DISTRIBUTIONS: &[Function] = &[
    Function {
        name: "truncated_normal",
        params: RANGED,
        gives: "as the arguments",
        rule: Rule::Same,
        doc: "drawn from the part of the normal distribution from lo to hi, each component by itself; mean and std are those before the cut; the arguments are constants",
        body: Body::Special(|c, call| drawn_of_numbers(c, call, Distribution::TruncatedNormal)),
    },
    Function {
        name: "beta",
        params: RANGED,
        gives: "as the arguments",
        rule: Rule::Same,
        doc: "drawn from the beta distribution over lo to hi with this mean and standard deviation, each component by itself; the arguments are constants",
        body: Body::Special(|c, call| drawn_of_numbers(c, call, Distribution::Beta)),
    },
];

/// Parameters of a function in the order in which [`drawn_of_numbers`] takes them.
const RANGED: &[Param] = &[
    one("mean", Kind::Value),
    one("std", Kind::Value),
    one("lo", Kind::Value),
    one("hi", Kind::Value),
];

/// Evenly from 0 to 1.
const UNIT: Draw = Draw::uniform([0.0, 1.0]);

/// Arguments that are numbers of one unit, and how many components they have.
fn numbers(c: &mut Checker<'_>, call: &Call) -> Result<(Vec<Value>, usize), ExprError> {
    let values = c.agreeing(call)?;
    let who = format!("`{}`", call.function.name);
    for (i, value) in values.iter().enumerate() {
        c.number(value, call.span_of(i), &who)?;
    }
    let sides: Vec<&Value> = values.iter().collect();
    let n = length_of(&sides, call.span.clone(), &who)?;
    Ok((values, n))
}

/// Numbers of a distribution with these constants as its mean, standard deviation, least and
/// greatest number, in this order.
fn drawn_of_numbers(
    c: &mut Checker<'_>,
    call: &Call,
    distribution: Distribution,
) -> Result<Value, ExprError> {
    let (values, n) = numbers(c, call)?;
    let (mut draws, mut units) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let (mut given, mut unit) = ([0.0; 4], Unit::Any);
        for (a, x) in given.iter_mut().enumerate() {
            let comp = values[a].at(i);
            let Some(known) = c.dag.value(comp.node) else {
                let why = format!("`{}` takes constants", call.function.name);
                return Err(ExprError::new(call.span_of(a), why).help(
                    "a number; stretch and shift what is drawn, such as `a + b * beta(...)`",
                ));
            };
            (*x, unit) = (f64::from(known), unit.join(comp.unit));
        }
        let [mean, std, low, high] = given;
        let config = DrawConfig {
            distribution,
            range: Some([low, high]),
            mean: Some(mean),
            std: Some(std),
            ..DrawConfig::default()
        };
        draws.push(config.compile(str::to_string).map_err(|e| {
            let error = ExprError::new(call.span.clone(), format!("`{}`: {}", e.path, e.message));
            error.help(e.help.unwrap_or_default())
        })?);
        units.push(unit);
    }
    let drawn = c.draw(call.function.name, &call.span, draws)?.into_iter().zip(units);
    Ok(Value::new(drawn.map(|(node, unit)| Comp { node, unit }).collect()))
}

/// Numbers from two arguments and a random number for each component.
fn drawn(
    c: &mut Checker<'_>,
    call: &Call,
    standard: Draw,
    f: fn(&mut Dag, [u32; 2], u32) -> u32,
) -> Result<Value, ExprError> {
    let (values, n) = numbers(c, call)?;
    let random = c.draw(call.function.name, &call.span, vec![standard; n])?;
    let comps = random.into_iter().enumerate().map(|(i, x)| {
        let [a, b] = [values[0].at(i), values[1].at(i)];
        Comp { node: f(&mut c.dag, [a.node, b.node], x), unit: a.unit.join(b.unit) }
    });
    Ok(Value::new(comps.collect()))
}

fn choice(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let values = c.agreeing(call)?;
    let truth = values[0].truth;
    if let Some(i) = values.iter().position(|v| v.truth != truth) {
        let why = format!("`choice` between {} and {}", values[0].describe(), values[i].describe());
        return Err(ExprError::new(call.span_of(i), why).help("all numbers, or all conditions"));
    }
    let sides: Vec<&Value> = values.iter().collect();
    let n = length_of(&sides, call.span.clone(), "`choice`")?;
    let u = c.draw("choice", &call.span, vec![UNIT])?[0];
    let below: Vec<_> = (1..values.len())
        .map(|k| {
            let share = c.dag.constant(k as f64 / values.len() as f64);
            c.dag.two(Op::Lt, u, share)
        })
        .collect();
    let comps = (0..n).map(|i| {
        let of: Vec<Comp> = values.iter().map(|v| v.at(i)).collect();
        let last = of[of.len() - 1].node;
        let chosen = below.iter().zip(&of).rev();
        Comp {
            node: chosen.fold(last, |rest, (&below, comp)| c.dag.select(below, comp.node, rest)),
            unit: of.iter().map(|comp| comp.unit).fold(Unit::Any, Unit::join),
        }
    });
    Ok(Value { comps: comps.collect(), truth, quat: n == 4 && values.iter().all(|v| v.quat) })
}

/// From three uniform numbers. Source: Shoemake, "Uniform random rotations", Graphics Gems III,
/// 1992.
fn random_quat(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let u = c.draw("random_quat", &call.span, vec![UNIT; 3])?;
    let (one, turn) = (c.dag.constant(1.0), c.dag.constant(TAU));
    let rest = c.dag.sub(one, u[0]);
    let lengths = [rest, u[0]].map(|x| c.dag.one(Op::Sqrt, x));
    let mut ids = Vec::with_capacity(4);
    for (length, u) in lengths.into_iter().zip([u[1], u[2]]) {
        let angle = c.dag.mul(turn, u);
        for op in [Op::Sin, Op::Cos] {
            let part = c.dag.one(op, angle);
            ids.push(c.dag.mul(length, part));
        }
    }
    Ok(Value { quat: true, ..Value::vector(ids, Unit::NONE) })
}
