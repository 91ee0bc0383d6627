//! Arguments of a call as functions take them.

use super::checker::{Checker, disagree, length_of};
use super::dag::{Dag, Id};
use super::error::ExprError;
use super::function::{Arg, Call};
use super::unit::Unit;
use super::value::{Comp, Value};

impl Checker<'_> {
    /// Argument `i` as a value.
    pub fn value(&self, call: &Call, i: usize) -> Result<Value, ExprError> {
        match call.args.get(i) {
            Some((Arg::Value(v), _)) => Ok(v.clone()),
            _ => Err(ExprError::new(call.span.clone(), "a value is missing here")
                .help(format!("write {}", call.function.signature()))),
        }
    }

    /// All arguments as values.
    pub fn values(&self, call: &Call) -> Result<Vec<Value>, ExprError> {
        (0..call.args.len()).map(|i| self.value(call, i)).collect()
    }

    /// All arguments, whose sizes fit and whose units agree.
    pub fn agreeing(&mut self, call: &Call) -> Result<Vec<Value>, ExprError> {
        let values = self.values(call)?;
        let sides: Vec<&Value> = values.iter().collect();
        let n = length_of(&sides, call.span.clone(), &format!("`{}`", call.function.name))?;
        for i in 0..n {
            self.join(call, values.iter().map(|v| v.at(i).unit))?;
        }
        Ok(values)
    }

    /// Refuses two bounds, arguments `[lo, hi]` of a call, that are numbers with nothing between.
    pub fn ordered(&self, call: &Call, [lo, hi]: [usize; 2]) -> Result<(), ExprError> {
        let (low, high) = (self.value(call, lo)?, self.value(call, hi)?);
        for i in 0..low.comps.len().max(high.comps.len()) {
            // Lengths that differ are refused elsewhere.
            let number = |v: &Value| {
                let comp = v.comps.get(if v.comps.len() == 1 { 0 } else { i })?;
                self.dag.value(comp.node)
            };
            if let (Some(a), Some(b)) = (number(&low), number(&high))
                && a > b
            {
                let why = format!("nothing is at least {a} and at most {b}");
                return Err(ExprError::new(call.span_of(lo), why)
                    .help(format!("the smaller bound comes first: {b}, {a}")));
            }
        }
        Ok(())
    }

    /// The one unit of several that must agree.
    fn join(&self, call: &Call, units: impl Iterator<Item = Unit>) -> Result<Unit, ExprError> {
        let mut joined = Unit::Any;
        for unit in units {
            if !joined.fits(unit) {
                let message = format!("`{}` of [{joined}] and [{unit}]", call.function.name);
                return Err(disagree(call.span.clone(), message));
            }
            joined = joined.join(unit);
        }
        Ok(joined)
    }

    /// The one unit of a vector's components.
    pub fn joined_unit(&self, call: &Call, v: &Value) -> Result<Unit, ExprError> {
        self.join(call, v.comps.iter().map(|c| c.unit))
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

    /// Component-wise operation on values of one unit.
    pub fn map_same(
        &mut self,
        call: &Call,
        values: &[Value],
        f: impl Fn(&mut Dag, &[Id]) -> Id,
    ) -> Result<Value, ExprError> {
        self.agreeing(call)?;
        self.zip(call, values, |d, x| {
            let ids: Vec<Id> = x.iter().map(|c| c.node).collect();
            let unit = x.iter().map(|c| c.unit).fold(Unit::Any, Unit::join);
            Ok(Comp { node: f(d, &ids), unit })
        })
    }

    /// Refuses vectors of different lengths, also a scalar with a vector.
    pub fn same_length(&self, call: &Call, a: &Value, b: &Value) -> Result<(), ExprError> {
        if a.len() == b.len() {
            return Ok(());
        }
        let message = format!("`{}` of vectors of {} and {}", call.function.name, a.len(), b.len());
        Err(ExprError::new(call.span.clone(), message).help("both need one length"))
    }

    /// Refuses vectors.
    pub fn scalar(&self, call: &Call, v: &Value, i: usize) -> Result<(), ExprError> {
        if v.len() == 1 {
            return Ok(());
        }
        let message = format!(
            "`{}` takes a single number here, this is {}",
            call.function.name,
            v.describe()
        );
        Err(ExprError::new(call.span_of(i), message)
            .help(format!("write {}", call.function.signature())))
    }
}
