//! Several agents: `{agent}`, `{each}`, `{other}` stand for their names, `each(...)` and
//! `others(...)` say something of every one.

use super::checker::Checker;
use super::error::ExprError;
use super::place::{AgentNames, PLACEHOLDERS};
use super::tree::NodeRef;
use super::unit::Unit;
use super::value::Value;
use std::ops::Range;

impl Checker<'_> {
    /// `text`, for people: with the names of agents where it is known whose.
    pub(super) fn agents_named(&self, text: String) -> String {
        let mut named = text;
        let Some(agents) = self.scope.agents else {
            return named;
        };
        let meant = [agents.agent, self.place.meant.other, self.place.meant.each];
        for (placeholder, agent) in PLACEHOLDERS.into_iter().zip(meant) {
            if let Some(name) = agent.and_then(|a| agents.names.get(a)) {
                named = named.replace(placeholder, name);
            }
        }
        named
    }

    /// The agent's name that one of [`PLACEHOLDERS`] stands for.
    pub(super) fn agent_meant(
        &mut self,
        placeholder: &str,
        span: Range<usize>,
    ) -> Result<String, ExprError> {
        let Some(agents) = self.scope.agents else {
            return Err(no_agents(&format!("`{placeholder}`"), span));
        };
        // A named expression that is looked at by itself may speak of any.
        let any = self.trying.map(|_| 0);
        let (agent, help) = match placeholder {
            "{agent}" => {
                self.of_agent = true;
                (agents.agent, "this term is the world's, not an agent's")
            }
            "{each}" => (self.place.meant.each.or(any), "it stands inside each(...)"),
            _ => (self.place.meant.other.or(any), "it stands inside others(...)"),
        };
        self.by_name |= placeholder != "{agent}";
        match agent.and_then(|a| agents.names.get(a)) {
            Some(name) => Ok(name.clone()),
            None => {
                Err(ExprError::new(span, format!("`{placeholder}` stands for nobody here"))
                    .help(help))
            }
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
            let error = no_agents(&format!("`{name}`"), span.clone());
            let list = self.scope.defined.list_names().next();
            return Err(match list.filter(|_| name == "each") {
                Some(list) => error.help(format!("write each({list}, expr) for a list of names")),
                None => error,
            });
        };
        if self.place.meant.each.is_some() || self.place.meant.other.is_some() {
            return Err(ExprError::new(
                span.clone(),
                "each(...) and others(...) cannot stand in one another",
            )
            .help("put them side by side, as in [each(pos({each})), others(pos({other}))]"));
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
        let before = std::mem::take(&mut self.by_name);
        for agent in all {
            self.place.meant = match each {
                true => AgentNames { each: Some(agent), other: None },
                false => AgentNames { each: None, other: Some(agent) },
            };
            let value = self.check(of);
            self.place.meant = AgentNames::default();
            values.push(value?);
        }
        if !std::mem::replace(&mut self.by_name, before) {
            let (who, name) = if each { ("agent", "{each}") } else { ("other agent", "{other}") };
            let why = format!(
                "`{name}(...)` of what is the same for every {who}",
                name = if each { "each" } else { "others" }
            );
            return Err(ExprError::new(span.clone(), why).help(format!(
                "{name} stands for the {who}'s name in it, as in pos({name}); `action` and what \
                 belongs to it are this agent's own: an other's are ctrl(\"{name}_*\")"
            )));
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
    ExprError::new(span, format!("{who} is for tasks of several agents; this one has no [agents]"))
        .help("add [agents] with names = [\"red\", \"blue\"], for example")
}
