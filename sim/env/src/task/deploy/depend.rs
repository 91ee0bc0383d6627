//! Whether a value depends on what a robot cannot measure.
//!
//! Where a body is and how fast it moves is known but for the base's position and velocity. A
//! distance between two bodies of one robot does not depend on them: they cancel. So values
//! are followed as linear functions of these six numbers of every base; whatever else is done
//! with them makes a value depend on them for good.

use super::measured::Missing;
pub(crate) use ostler_lang::expr::{Code, Op, Source, Step};
use std::collections::{BTreeMap, BTreeSet};

/// A number of a base that is not measured: its body, whether it is a velocity, its axis.
pub(crate) type Unknown = (usize, bool, usize);

/// What a value depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Dependence {
    /// Its bits, where it is a constant.
    constant: Option<f32>,
    /// Coefficients of unknown numbers.
    linear: BTreeMap<Unknown, f32>,
    /// What it depends on in another way.
    other: BTreeSet<Missing>,
}

impl Dependence {
    /// On nothing that is missing.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// On one unknown number, by a factor of 1.
    pub(crate) fn unknown(unknown: Unknown) -> Self {
        Self { linear: BTreeMap::from([(unknown, 1.0)]), ..Self::default() }
    }

    /// On something that is missing.
    pub(crate) fn missing(missing: Missing) -> Self {
        Self::missing_all(BTreeSet::from([missing]))
    }

    /// On all of these.
    pub(crate) fn missing_all(other: BTreeSet<Missing>) -> Self {
        Self { other, ..Self::default() }
    }

    /// The same, and on all of these.
    pub(crate) fn and(mut self, other: BTreeSet<Missing>) -> Self {
        self.other.extend(other);
        self
    }

    /// All that is missing for it.
    pub(crate) fn all(&self) -> BTreeSet<Missing> {
        let unknown = |(body, velocity, _): &Unknown| match velocity {
            true => Missing::Velocity(*body),
            false => Missing::Position(*body),
        };
        let mut all = self.other.clone();
        all.extend(self.linear.keys().map(unknown));
        all
    }

    fn times(&self, factor: f32) -> Self {
        let scaled = |(&u, &c): (&Unknown, &f32)| (u, c * factor);
        Self {
            constant: None,
            linear: self.linear.iter().map(scaled).collect(),
            other: self.other.clone(),
        }
    }

    fn plus(&self, that: &Self) -> Self {
        let mut sum = self.clone();
        sum.constant = None;
        for (&unknown, &c) in &that.linear {
            *sum.linear.entry(unknown).or_insert(0.0) += c;
        }
        sum.linear.retain(|_, c| *c != 0.0);
        sum.other.extend(that.other.iter().cloned());
        sum
    }

    /// Of a function that is not linear.
    fn mixed(operands: &[&Self]) -> Self {
        Self { other: operands.iter().flat_map(|o| o.all()).collect(), ..Self::default() }
    }

    fn of(op: Op, x: &[&Self]) -> Self {
        match (op, x) {
            (Op::Neg, [a]) => a.times(-1.0),
            (Op::Add, [a, b]) => a.plus(b),
            (Op::Sub, [a, b]) => a.plus(&b.times(-1.0)),
            (Op::Mul, [a, b]) if a.constant.is_some() => b.times(a.constant.unwrap_or(1.0)),
            (Op::Mul, [a, b]) if b.constant.is_some() => a.times(b.constant.unwrap_or(1.0)),
            (Op::Div, [a, b]) if b.constant.is_some_and(|c| c != 0.0) => {
                a.times(1.0 / b.constant.unwrap_or(1.0))
            }
            (Op::Select, [p, a, b]) if a == b && p.all().is_empty() => (*a).clone(),
            _ if op.relief().is_some() => {
                let ground = Missing::Other("the height of the ground".into());
                Self::mixed(&[x, &[&Self::missing(ground)]].concat())
            }
            _ => Self::mixed(x),
        }
    }

    /// Of every output of `code`, whose inputs depend on what `load` says.
    pub(crate) fn of_code(code: &Code, mut load: impl FnMut(Source, usize) -> Self) -> Vec<Self> {
        let mut registers = vec![Self::none(); code.registers];
        for (step, to) in &code.steps {
            let value = match *step {
                Step::Const(bits) => Self { constant: Some(f32::from_bits(bits)), ..Self::none() },
                Step::Load(source, row) => load(source, row as usize),
                Step::Copy(from) => registers[from as usize].clone(),
                Step::Op(op, x) => {
                    let operands: Vec<&Self> =
                        x[..op.arity()].iter().map(|r| &registers[*r as usize]).collect();
                    Self::of(op, &operands)
                }
            };
            registers[*to as usize] = value;
        }
        registers.truncate(code.outputs);
        registers
    }
}

/// The code with 0 in place of products with a 0 that is written in it, without what only they
/// needed: what a robot lacks may be no number, and 0 times that is none.
pub(crate) fn settled(code: &Code) -> Code {
    let mut is_zero = vec![false; code.registers];
    let mut steps = code.steps.clone();
    for (step, to) in &mut steps {
        let zero = match *step {
            Step::Const(bits) => f32::from_bits(bits) == 0.0,
            Step::Copy(from) => is_zero[from as usize],
            Step::Op(Op::Mul, [a, b, _]) => is_zero[a as usize] || is_zero[b as usize],
            Step::Load(..) | Step::Op(..) => false,
        };
        if zero {
            *step = Step::Const(0);
        }
        is_zero[*to as usize] = zero;
    }
    let mut needed: Vec<bool> = (0..code.registers).map(|r| r < code.outputs).collect();
    let mut kept = Vec::with_capacity(steps.len());
    for (step, to) in steps.into_iter().rev() {
        if !std::mem::take(&mut needed[to as usize]) {
            continue;
        }
        match step {
            Step::Const(_) | Step::Load(..) => {}
            Step::Copy(from) => needed[from as usize] = true,
            Step::Op(op, x) => x[..op.arity()].iter().for_each(|r| needed[*r as usize] = true),
        }
        kept.push((step, to));
    }
    kept.reverse();
    Code { steps: kept, ..*code }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of a graph whose loads of row `k` are unknown `k`, but for row 9, which is
    /// measured.
    fn outputs(steps: Vec<(Step, u16)>, registers: usize) -> Dependence {
        let code = Code { steps, registers, outputs: 1 };
        let load = |_, row| match row {
            9 => Dependence::none(),
            row => Dependence::unknown((1, false, row)),
        };
        Dependence::of_code(&settled(&code), load).remove(0)
    }

    const A: Step = Step::Load(Source::Step, 0);
    const MEASURED: Step = Step::Load(Source::Step, 9);

    #[test]
    fn what_cancels_is_not_needed_and_what_does_not_is_named() {
        let difference = |back: Step| {
            vec![
                (A, 0),
                (MEASURED, 1),
                (Step::Op(Op::Add, [0, 1, 0]), 1),
                (back, 2),
                (Step::Op(Op::Sub, [1, 2, 0]), 0),
            ]
        };
        assert!(outputs(difference(A), 3).all().is_empty());
        let other = outputs(difference(Step::Load(Source::Step, 1)), 3).all();
        assert_eq!(other, BTreeSet::from([Missing::Position(1)]));
    }

    #[test]
    fn a_function_of_it_stays_one() {
        let square = vec![(A, 0), (Step::Op(Op::Mul, [0, 0, 0]), 0)];
        let needs = outputs(square.clone(), 1);
        assert_eq!(needs.all(), BTreeSet::from([Missing::Position(1)]));
        // Even if the same is taken away again.
        let mut both = square;
        both.extend([(A, 1), (Step::Op(Op::Sub, [0, 1, 0]), 0)]);
        assert!(!outputs(both, 2).all().is_empty());
    }

    #[test]
    fn by_a_factor_of_nothing_it_does_not_matter() {
        let zero = Step::Const(0.0f32.to_bits());
        let none = vec![(A, 0), (zero, 1), (Step::Op(Op::Mul, [0, 1, 0]), 0)];
        assert!(outputs(none.clone(), 2).all().is_empty());
        // It is not even read: where it is no number, 0 times it would be none.
        let left = settled(&Code { steps: none, registers: 2, outputs: 1 });
        assert_eq!(left.steps, [(Step::Const(0), 0)]);
    }
}
