//! Several agents: `{agent}`, `{each}`, `{other}` stand for their names, `each(...)` and
//! `others(...)` say something of every one.

use super::ExprError;
use super::check::{Checker, Value};
use super::tree::NodeRef;
use super::unit::Unit;
use std::borrow::Cow;
use std::ops::Range;

/// Placeholder of an agent's name.
pub const PLACEHOLDERS: [&str; 3] = ["{agent}", "{other}", "{each}"];

/// Which agents `{each}` and `{other}` stand for now.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentNames {
    each: Option<usize>,
    other: Option<usize>,
}

impl Checker<'_> {
    /// `text` with the names of agents in place of what stands for them. `span` is where
    /// it was written.
    pub(super) fn fill<'t>(
        &mut self,
        text: &'t str,
        span: &Range<usize>,
    ) -> Result<Cow<'t, str>, ExprError> {
        let mut filled = Cow::Borrowed(text);
        for placeholder in PLACEHOLDERS {
            if !filled.contains(placeholder) {
                continue;
            }
            let at = self.text[span.clone()].find(placeholder);
            let own = at.map_or_else(
                || span.clone(),
                |at| span.start + at..span.start + at + placeholder.len(),
            );
            let name = self.stands_for(placeholder, own)?;
            filled = Cow::Owned(filled.replace(placeholder, name));
        }
        Ok(filled)
    }

    /// `text`, for people: with the names of agents where it is known whose.
    pub(super) fn named(&self, text: &str) -> String {
        let mut named = text.to_string();
        let Some(agents) = self.scope.agents else {
            return named;
        };
        let meant = [agents.agent, self.meant.other, self.meant.each];
        for (placeholder, agent) in PLACEHOLDERS.into_iter().zip(meant) {
            if let Some(name) = agent.and_then(|a| agents.names.get(a)) {
                named = named.replace(placeholder, name);
            }
        }
        named
    }

    fn stands_for(&mut self, placeholder: &str, span: Range<usize>) -> Result<&str, ExprError> {
        let Some(agents) = self.scope.agents else {
            return Err(no_agents(&format!("`{placeholder}`"), span));
        };
        let (agent, help) = match placeholder {
            "{agent}" => {
                self.of_agent = true;
                (agents.agent, "this term is the world's, not an agent's")
            }
            "{each}" => (self.meant.each, "it stands inside each(...)"),
            _ => (self.meant.other, "it stands inside others(...)"),
        };
        match agent.and_then(|a| agents.names.get(a)) {
            Some(name) => Ok(name),
            None => Err(
                ExprError::new(span, format!("`{placeholder}` stands for nobody here")).help(help),
            ),
        }
    }

    /// `each(expr)` and `others(expr)`: its values for these agents, one after the other.
    pub(super) fn over_agents(
        &mut self,
        name: &str,
        of: NodeRef,
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let Some(agents) = self.scope.agents else {
            return Err(no_agents(&format!("`{name}`"), span.clone()));
        };
        if self.meant.each.is_some() || self.meant.other.is_some() {
            return Err(ExprError::new(
                span.clone(),
                "each(...) and others(...) cannot stand in one another",
            )
            .help("put them side by side, as in [each(a), others(b)]"));
        }
        let each = name == "each";
        let all: Vec<usize> = match each {
            true => (0..agents.names.len()).collect(),
            false => {
                self.this_agent("`others`", span)?;
                agents.others.to_vec()
            }
        };
        let mut values = Vec::with_capacity(all.len());
        for agent in all {
            self.meant = match each {
                true => AgentNames {
                    each: Some(agent),
                    other: None,
                },
                false => AgentNames {
                    each: None,
                    other: Some(agent),
                },
            };
            let value = self.check(of);
            self.meant = AgentNames::default();
            values.push(value?);
        }
        self.concat(values, span.clone())
    }

    /// The agent that this is evaluated for; `who` asks.
    fn this_agent(&mut self, who: &str, span: &Range<usize>) -> Result<usize, ExprError> {
        let Some(agents) = self.scope.agents else {
            return Err(no_agents(who, span.clone()));
        };
        self.of_agent = true;
        agents.agent.ok_or_else(|| {
            ExprError::new(span.clone(), format!("{who} has no meaning here")).help(
                "this term is the world's, not an agent's; each(...) says something of every agent",
            )
        })
    }

    /// `agent_index`.
    pub(super) fn agent_index(&mut self, span: &Range<usize>) -> Result<Value, ExprError> {
        let index = self.this_agent("`agent_index`", span)?;
        Ok(Value::scalar(self.dag.constant(index as f64), Unit::NONE))
    }

    /// `agent_id`.
    pub(super) fn agent_id(&mut self, span: &Range<usize>) -> Result<Value, ExprError> {
        let index = self.this_agent("`agent_id`", span)?;
        let count = self.scope.agents.map_or(0, |a| a.names.len());
        let one_hot = (0..count).map(|i| f64::from(u8::from(i == index)));
        let ids: Vec<_> = one_hot.map(|x| self.dag.constant(x)).collect();
        Ok(Value::vector(ids, Unit::NONE))
    }
}

fn no_agents(who: &str, span: Range<usize>) -> ExprError {
    ExprError::new(
        span,
        format!("{who} is for tasks of several agents; this one has no [agents]"),
    )
    .help("add [agents] with names = [\"red\", \"blue\"], for example")
}
