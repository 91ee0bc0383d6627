//! `[agents]`: for agent terms are meant, and whose name stands in their texts.

use crate::config::{AgentsConfig, ConfigError, TaskConfig};
use ostler_lang::expr::{Agents, Scope};
use std::borrow::Cow;
use std::ops::Range;

/// Placeholder of the agent's name in the texts of terms.
const AGENT: &str = "{agent}";

/// The agents of every environment; one without a name for tasks without `[agents]`.
#[derive(Debug, Clone)]
pub struct Team {
    config: Option<AgentsConfig>,
    /// The policy of every agent.
    pub policy: Vec<usize>,
    /// Names of the policies.
    pub policy_names: Vec<String>,
    /// Of every agent: all others, those that share its policy first.
    others: Vec<Vec<usize>>,
    /// Of every agent: which of all outputs are its own.
    pub(super) outputs: Vec<Range<usize>>,
}

/// Who a term is evaluated for: an agent, or the world.
pub type AgentIndex = Option<usize>;

impl Team {
    /// Of this task.
    pub fn new(cfg: &TaskConfig) -> Result<Self, ConfigError> {
        let Some(agents) = &cfg.agents else {
            return Ok(Self {
                config: None,
                policy: vec![0],
                policy_names: Vec::new(),
                others: vec![Vec::new()],
                outputs: Vec::new(),
            });
        };
        agents.validate()?;
        let policy = agents.policy_of();
        let count = policy.len();
        let others = |agent: usize| {
            let after = (1..count).map(|k| (agent + k) % count);
            let mut all: Vec<usize> = after.filter(|&o| policy[o] == policy[agent]).collect();
            all.extend((0..count).filter(|&o| policy[o] != policy[agent]));
            all
        };
        Ok(Self {
            others: (0..count).map(others).collect(),
            policy_names: agents.policy_names(),
            config: Some(agents.clone()),
            policy,
            outputs: Vec::new(),
        })
    }

    /// Agents of an environment, at least 1.
    pub fn count(&self) -> usize {
        self.policy.len()
    }

    /// Whether the task has `[agents]`.
    pub fn is_several(&self) -> bool {
        self.config.is_some()
    }

    /// Names of the agents; none without `[agents]`.
    pub fn names(&self) -> &[String] {
        self.config.as_ref().map_or(&[], |c| &c.names)
    }

    /// The critic of an agent sees all agents' observations.
    pub fn is_centralized(&self) -> bool {
        self.config.as_ref().is_some_and(|c| c.centralized_critic)
    }

    /// All agents but this one, in the order of `others(...)`.
    pub fn others(&self, agent: usize) -> &[usize] {
        &self.others[agent]
    }

    /// `name`, as one agent's: `red/name`.
    pub fn prefixed(&self, agent: usize, name: &str) -> String {
        match self.names().get(agent) {
            Some(own) => format!("{own}/{name}"),
            None => name.to_string(),
        }
    }

    /// For messages: `agent "red" sees`, `the policy sees`.
    pub fn subject(&self, agent: usize) -> String {
        match self.names().get(agent) {
            Some(own) => format!("agent \"{own}\""),
            None => "the policy".to_string(),
        }
    }

    /// The agents that a term of the key `agents = chosen` is meant for.
    pub fn of_term(
        &self,
        chosen: Option<&[String]>,
        path: &str,
    ) -> Result<Vec<usize>, ConfigError> {
        match (&self.config, chosen) {
            (Some(config), _) => config.of_term(chosen, path),
            (None, None) => Ok(vec![0]),
            (None, Some(_)) => Err(ConfigError::new(
                format!("{path}.agents"),
                "is for tasks of several agents; this one has no [agents]",
            )
            .help("add [agents] with names = [...], or leave the key out")),
        }
    }

    /// For agent a term with these texts is evaluated: every agent if one of them mentions
    /// `{agent}`, else the world.
    pub fn agents_of(&self, texts: &[&str]) -> Vec<AgentIndex> {
        if self.is_several() && texts.iter().any(|t| t.contains(AGENT)) {
            return (0..self.count()).map(Some).collect();
        }
        vec![None]
    }

    /// `text` with the agent's name in it.
    pub fn fill<'t>(&self, agent: AgentIndex, text: &'t str) -> Cow<'t, str> {
        match agent.and_then(|agent| self.names().get(agent)) {
            Some(name) if text.contains(AGENT) => Cow::Owned(text.replace(AGENT, name)),
            _ => Cow::Borrowed(text),
        }
    }

    /// An error about the text that [`fill`](Self::fill) made of `text`: its bytes become
    /// those of `text`.
    pub fn blame(&self, agent: AgentIndex, text: &str, error: ConfigError) -> ConfigError {
        let name = agent.and_then(|agent| self.names().get(agent));
        let (Some(name), Some(span)) = (name, error.span.clone()) else {
            return error;
        };
        // A place within a name is all of it.
        let back = |at: usize, end: bool| {
            let (mut from, mut to) = (0, 0);
            for piece in text.split(AGENT) {
                if at <= to + piece.len() {
                    return from + at - to;
                }
                from += piece.len();
                to += piece.len();
                if at < to + name.len() {
                    return if end { from + AGENT.len() } else { from };
                }
                from += AGENT.len();
                to += name.len();
            }
            text.len()
        };
        ConfigError { span: Some(back(span.start, false)..back(span.end, true)), ..error }
    }

    /// Names for an expression that is evaluated for `agent`.
    pub fn scope<'a>(&'a self, world: &Scope<'a>, agent: AgentIndex) -> Scope<'a> {
        if !self.is_several() {
            return world.clone();
        }
        let own = agent.and_then(|agent| self.outputs.get(agent).cloned());
        Scope {
            action_width: own.as_ref().map_or(world.action_width, |o| o.len()),
            agents: Some(Agents {
                names: self.names(),
                agent,
                others: agent.map_or(&[], |agent| &self.others[agent]),
                action_first: own.map_or(0, |o| o.start),
            }),
            ..world.clone()
        }
    }
}
