//! `[[task.metric]]`: numbers of episodes that are logged and evaluated, never rewarded.

use super::team::Team;
use super::term::{Kind, Row, Term};
use crate::config::{ConfigError, MetricTerm, Over};
use ostler_engine::kernels;
use ostler_lang::expr::{Scope, Type, Unit};
use std::collections::HashSet;

/// The compiled metrics.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(super) terms: Vec<Metric>,
}

#[derive(Debug, Clone)]
pub(super) struct Metric {
    pub term: Term,
    pub unit: String,
    pub over: Over,
}

/// A metric, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricRow {
    /// Its name, `AGENT/NAME` where it is an agent's.
    pub name: String,
    /// Its expression.
    pub expr: String,
    /// Its unit, `"-"` for none.
    pub unit: String,
    /// How the values of an episode become one.
    pub over: Over,
}

impl Metrics {
    /// Checks names, expressions and types.
    pub fn compile(
        scope: &Scope<'_>,
        terms: &[MetricTerm],
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let mut all = Self::default();
        let mut seen = HashSet::new();
        for (t, term) in terms.iter().enumerate() {
            let row = Row {
                kind: Kind::Metric,
                name: &term.name,
                expr: &term.expr,
                agents: term.agents.as_deref(),
                path: format!("task.metric[{t}]"),
            };
            let check = |made: &Term| unit(made, term, t).map(|_| ());
            for made in row.terms(scope, team, &mut seen, check)? {
                let unit = unit(&made, term, t)?;
                all.terms.push(Metric { term: made, unit, over: term.over });
            }
        }
        Ok(all)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// All terms.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().map(|m| &m.term)
    }

    /// All, in order.
    pub fn rows(&self) -> Vec<MetricRow> {
        let row = |m: &Metric| MetricRow {
            name: m.term.name.clone(),
            expr: m.term.text.clone(),
            unit: m.unit.clone(),
            over: m.over,
        };
        self.terms.iter().map(row).collect()
    }
}

/// The unit of a metric. Refuses those that are not one number, or none of the kind that `over`
/// takes.
fn unit(made: &Term, term: &MetricTerm, index: usize) -> Result<String, ConfigError> {
    let refused = |why: String, help: &str| Err(made.refused(&term.expr, why, help));
    let len = made.program.ty().len();
    if len != 1 {
        let why = format!("a metric is one number; this has {len}");
        return refused(why, "sum(...), norm(...) or a component such as .x makes one");
    }
    if term.over == Over::Any && *made.program.ty() != Type::Bool {
        let why = "over = \"any\" takes a condition, this is a number".to_string();
        return refused(why, "compare it, such as `> 0`, or choose another `over`");
    }
    let own = made.program.units()[0];
    let Some(text) = &term.unit else {
        return Ok(own.to_string());
    };
    let path = format!("task.metric[{index}].unit");
    let unit = Unit::known(text, &path)?;
    if !unit.fits(own) {
        let why = format!("`expr` is in [{own}], not in [{unit}]");
        let help = format!("unit = \"{own}\", or multiply `expr` by a constant");
        return Err(ConfigError::new(path, why).help(help));
    }
    Ok(unit.to_string())
}

/// The number by which kernels know it.
pub(super) fn number(over: Over) -> u32 {
    match over {
        Over::Mean => kernels::OVER_MEAN,
        Over::Last => kernels::OVER_LAST,
        Over::Max | Over::Any => kernels::OVER_MAX,
        Over::Min => kernels::OVER_MIN,
        Over::Sum => kernels::OVER_SUM,
    }
}
