//! Operators with two sides, choices and vectors from parts.

use super::checker::{Checker, MAX_COMPONENTS, disagree, length_of};
use super::error::ExprError;
use super::ops::Op;
use super::tree::Binary;
use super::unit::Unit;
use super::value::{Comp, Value};
use std::ops::Range;

impl Checker<'_> {
    /// `a op b`.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        op_span: &Range<usize>,
        [a, b]: [Value; 2],
        sides: &[Range<usize>; 2],
    ) -> Result<Value, ExprError> {
        let whole = sides[0].start..sides[1].end;
        let sign = &self.place.text[op_span.clone()];
        let n = length_of(&[&a, &b], whole.clone(), &format!("`{sign}`"))?;
        let quat = a.quat || b.quat;
        match op {
            Binary::And | Binary::Or => {
                for (value, side) in [&a, &b].into_iter().zip(sides) {
                    self.condition(value, side.clone(), &format!("`{sign}`"))?;
                }
                let op = if op == Binary::And { Op::And } else { Op::Or };
                let ids = (0..n).map(|i| self.dag.two(op, a.at(i).node, b.at(i).node));
                return Ok(Value::truth(ids.collect()));
            }
            Binary::Pow => return self.power(&a, &b, n, sides),
            Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Eq | Binary::Ne => {
                let ordered = !matches!(op, Binary::Eq | Binary::Ne);
                if a.truth != b.truth || (a.truth && ordered) {
                    let side = usize::from(!a.truth);
                    return Err(ExprError::new(
                        sides[side].clone(),
                        format!(
                            "`{sign}` compares numbers, this is {}",
                            if side == 0 { &a } else { &b }.describe()
                        ),
                    )
                    .help(
                        "a condition needs no comparison: write it alone, or with `not` in front",
                    ));
                }
            }
            _ => {}
        }
        let mut comps = Vec::with_capacity(n);
        let mut truth = false;
        for i in 0..n {
            let (x, y) = (a.at(i), b.at(i));
            let additive = |verb: &str, [l, r]: [Unit; 2], link: &str| {
                if x.unit.fits(y.unit) {
                    return Ok(x.unit.join(y.unit));
                }
                let place = if n > 1 { format!(" in component {i}") } else { String::new() };
                Err(disagree(whole.clone(), format!("{verb} [{l}] {link} [{r}]{place}")))
            };
            let units = [x.unit, y.unit];
            let d = &mut self.dag;
            let (node, unit) = match op {
                Binary::Add => (d.add(x.node, y.node), additive("adds", units, "to")?),
                Binary::Sub => {
                    let unit = additive("subtracts", [y.unit, x.unit], "from")?;
                    (d.sub(x.node, y.node), unit)
                }
                Binary::Mul => (d.mul(x.node, y.node), x.unit.times(y.unit)),
                Binary::Div if d.value(y.node) == Some(0.0) => {
                    return Err(ExprError::new(whole.clone(), "divides by zero")
                        .help("the result is never a number that can be used"));
                }
                Binary::Div => (d.div(x.node, y.node), x.unit.over(y.unit)),
                _ => {
                    additive("compares", units, "with")?;
                    truth = true;
                    let node = match op {
                        Binary::Lt => d.two(Op::Lt, x.node, y.node),
                        Binary::Le => d.two(Op::Le, x.node, y.node),
                        Binary::Gt => d.two(Op::Lt, y.node, x.node),
                        Binary::Ge => d.two(Op::Le, y.node, x.node),
                        Binary::Eq => d.two(Op::Eq, x.node, y.node),
                        _ => {
                            let same = d.two(Op::Eq, x.node, y.node);
                            d.one(Op::Not, same)
                        }
                    };
                    (node, Unit::NONE)
                }
            };
            comps.push(Comp { node, unit });
        }
        Ok(Value { comps, truth, quat: quat && !truth && n == 4 })
    }

    fn power(
        &mut self,
        a: &Value,
        b: &Value,
        n: usize,
        sides: &[Range<usize>; 2],
    ) -> Result<Value, ExprError> {
        let mut comps = Vec::with_capacity(n);
        for i in 0..n {
            let (x, y) = (a.at(i), b.at(i));
            if !y.unit.is_plain() {
                return Err(ExprError::new(
                    sides[1].clone(),
                    format!("an exponent in [{}]", y.unit),
                )
                .help("exponents are pure numbers; divide by a constant of that unit"));
            }
            let constant = self.dag.value(y.node);
            if constant.is_none() && !x.unit.is_plain() {
                return Err(ExprError::new(
                    sides[0].start..sides[1].end,
                    format!("raises [{}] to a power that is not a constant", x.unit),
                )
                .help("divide the base by a constant of that unit"));
            }
            comps.push(match constant {
                Some(p) => {
                    Comp { node: self.dag.power(x.node, p), unit: x.unit.power(f64::from(p)) }
                }
                None => Comp {
                    node: self.dag.two(Op::Pow, x.node, y.node),
                    unit: x.unit.mix(Unit::NONE),
                },
            });
        }
        Ok(Value { quat: (a.quat || b.quat) && n == 4, ..Value::new(comps) })
    }

    /// `cond ? yes : no`, whose condition is known to be one.
    pub fn choose(
        &mut self,
        [cond, yes, no]: [Value; 3],
        spans: [Range<usize>; 3],
    ) -> Result<Value, ExprError> {
        let whole = spans[0].start..spans[2].end;
        let n = length_of(&[&cond, &yes, &no], whole, "`if`")?;
        let mut comps = Vec::with_capacity(n);
        for i in 0..n {
            let (c, x, y) = (cond.at(i), yes.at(i), no.at(i));
            if !x.unit.fits(y.unit) {
                let both = spans[1].start..spans[2].end;
                return Err(disagree(
                    both,
                    format!("chooses between [{}] and [{}]", x.unit, y.unit),
                ));
            }
            comps.push(Comp {
                node: self.dag.select(c.node, x.node, y.node),
                unit: x.unit.join(y.unit),
            });
        }
        Ok(Value { truth: yes.truth && no.truth, quat: yes.quat && no.quat && n == 4, comps })
    }

    /// One vector from several.
    pub fn concat(&mut self, values: Vec<Value>, span: Range<usize>) -> Result<Value, ExprError> {
        let truth = values.iter().all(|v| v.truth);
        let comps: Vec<Comp> = values.into_iter().flat_map(|v| v.comps).collect();
        if comps.len() > MAX_COMPONENTS {
            return Err(ExprError::new(
                span,
                format!("this vector has {} components", comps.len()),
            )
            .help(format!("at most {MAX_COMPONENTS}")));
        }
        Ok(Value { truth, ..Value::new(comps) })
    }
}
