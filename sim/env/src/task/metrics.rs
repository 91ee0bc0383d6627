//! `[[task.metric]]`: numbers of episodes that are logged and evaluated, never rewarded.

pub use super::expr::{Code, Program, Scope, Type, Unit};
use super::team::{AgentIndex, Team};
use super::{program, unique};
use crate::config::{ConfigError, MetricTerm, Over};
use ostler_engine::kernels;
use std::collections::HashSet;

/// The compiled metrics.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(super) terms: Vec<Metric>,
}

#[derive(Debug, Clone)]
pub(super) struct Metric {
    /// Its place in the configuration.
    pub index: usize,
    pub name: String,
    pub text: String,
    pub program: Program,
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
            let path = format!("task.metric[{t}]");
            let agents = team.of_term(term.agents.as_deref(), &path)?;
            if term.name.is_empty() {
                let path = format!("{path}.name");
                return Err(ConfigError::new(path, "the name is empty"));
            }
            let one = |agent: AgentIndex| {
                let of = format!("{path}.expr");
                checked(program(scope, team, agent, &term.expr, of)?, term, &path)
            };
            let mut push = |agent: AgentIndex, (program, unit): (Program, String)| {
                let own = team.fill(agent, &term.name);
                let name = match agent {
                    Some(agent) => team.prefixed(agent, &own),
                    None => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                all.terms.push(Metric {
                    index: t,
                    name,
                    text: team.fill(agent, &term.expr).into_owned(),
                    program,
                    unit,
                    over: term.over,
                });
                Ok::<(), ConfigError>(())
            };
            // As reward terms: of every agent where it speaks of one, else of the world.
            let first = one(Some(agents[0]))?;
            let named = team.agents_of(&[&term.name]) != [None];
            if !team.is_several() || !(named || first.0.of_agent()) {
                push(None, first)?;
                continue;
            }
            for agent in agents {
                push(Some(agent), one(Some(agent))?)?;
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

    /// The expression of one.
    pub(crate) fn code(&self, metric: usize) -> &Code {
        self.terms[metric].program.code()
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.terms.iter().map(|m| &m.program)
    }

    /// All, in order.
    pub fn rows(&self) -> Vec<MetricRow> {
        let row = |m: &Metric| MetricRow {
            name: m.name.clone(),
            expr: m.text.clone(),
            unit: m.unit.clone(),
            over: m.over,
        };
        self.terms.iter().map(row).collect()
    }
}

/// Refuses metrics that are not one number, or none of the kind that `over` takes.
fn checked(
    program: Program,
    term: &MetricTerm,
    path: &str,
) -> Result<(Program, String), ConfigError> {
    let refused = |message: String, help: &str| ConfigError {
        path: format!("{path}.expr"),
        span: Some(0..term.expr.len()),
        message,
        help: Some(help.to_string()),
    };
    let len = program.ty().len();
    if len != 1 {
        let why = format!("a metric is one number; this has {len}");
        return Err(refused(why, "sum(...), norm(...) or a component such as .x makes one"));
    }
    if term.over == Over::Any && *program.ty() != Type::Bool {
        let why = "over = \"any\" takes a condition, this is a number".to_string();
        return Err(refused(why, "compare it, such as `> 0`, or choose another `over`"));
    }
    let own = program.units()[0];
    let Some(text) = &term.unit else {
        return Ok((program, own.to_string()));
    };
    let unit = Unit::known(text, &format!("{path}.unit"))?;
    if !unit.fits(own) {
        let why = format!("this is in [{own}], the metric in [{unit}]");
        return Err(refused(why, "multiply by a constant to say how they compare"));
    }
    Ok((program, unit.to_string()))
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
