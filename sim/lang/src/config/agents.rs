//! `[agents]`: several agents in one world.

use super::ConfigError;
use ostler_base::names::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most agents of one world.
pub const MAX_AGENTS: usize = 64;

/// `[agents]`, a table of its own beside `[task]`: who acts in every world. Terms of the
/// task are then meant for every agent, with `{agent}` standing for its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// Names, 2 to 64, in order; letters, digits and `_`.
    pub names: Vec<String>,
    /// Who is moved by which policy.
    pub policies: Policies,
    /// The critic of an agent sees the observations of all agents (MAPPO); else its own
    /// (IPPO).
    pub centralized_critic: bool,
}

/// `agents.policies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "\"shared\", \"separate\" or a list with a policy's name for each agent")]
pub enum Policies {
    /// One for all, or one each.
    Word(PoliciesWord),
    /// A policy's name for each agent; agents of one name share it.
    List(Vec<String>),
}

/// The words that `agents.policies` can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoliciesWord {
    /// One policy for all agents, called `shared`.
    Shared,
    /// A policy for each agent, called as the agent.
    Separate,
}

impl Default for Policies {
    fn default() -> Self {
        Self::Word(PoliciesWord::Shared)
    }
}

fn is_word(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(fits)
}

impl AgentsConfig {
    /// Checks the keys that do not need the robot.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let count = self.names.len();
        if !(2..=MAX_AGENTS).contains(&count) {
            return Err(ConfigError::new(
                "agents.names",
                format!("{count} names; several agents are 2 to {MAX_AGENTS}"),
            )
            .help("a task of one agent has no [agents]"));
        }
        for (i, name) in self.names.iter().enumerate() {
            let path = format!("agents.names[{i}]");
            if !is_word(name) {
                return Err(ConfigError::new(
                    path,
                    format!("\"{name}\" cannot be an agent's name"),
                )
                .help("letters, digits and _"));
            }
            if self.names[..i].contains(name) {
                return Err(ConfigError::new(path, format!("the name \"{name}\" is used twice")));
            }
        }
        let Policies::List(list) = &self.policies else {
            return Ok(());
        };
        if list.len() != count {
            return Err(ConfigError::new(
                "agents.policies",
                format!("{} policies for {count} agents", list.len()),
            )
            .help("one name per agent; agents of one name share a policy"));
        }
        match list.iter().position(|name| !is_word(name)) {
            Some(i) => Err(ConfigError::new(
                format!("agents.policies[{i}]"),
                format!("\"{}\" cannot be a policy's name", list[i]),
            )
            .help("letters, digits and _")),
            None => Ok(()),
        }
    }

    /// Names of the policies, in order of appearance.
    pub fn policy_names(&self) -> Vec<String> {
        match &self.policies {
            Policies::Word(PoliciesWord::Shared) => vec!["shared".to_string()],
            Policies::Word(PoliciesWord::Separate) => self.names.clone(),
            Policies::List(list) => {
                let mut names: Vec<String> = Vec::new();
                for name in list {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                names
            }
        }
    }

    /// The policy of every agent, as an index into [`policy_names`](Self::policy_names).
    pub fn policy_of(&self) -> Vec<usize> {
        let all = self.policy_names();
        let index = |name: &String| all.iter().position(|n| n == name).unwrap_or(0);
        match &self.policies {
            Policies::Word(PoliciesWord::Shared) => vec![0; self.names.len()],
            Policies::Word(PoliciesWord::Separate) => (0..self.names.len()).collect(),
            Policies::List(list) => list.iter().map(index).collect(),
        }
    }

    /// The agents that a term's key `agents` means, in the order of `names`; all without
    /// the key.
    ///
    /// # Errors
    /// An unknown name, a name twice, none; `path` is the term's.
    pub fn of_term(
        &self,
        chosen: Option<&[String]>,
        path: &str,
    ) -> Result<Vec<usize>, ConfigError> {
        let Some(chosen) = chosen else {
            return Ok((0..self.names.len()).collect());
        };
        if chosen.is_empty() {
            return Err(ConfigError::new(format!("{path}.agents"), "the list is empty")
                .help("leave the key out for all agents"));
        }
        let mut found = Vec::new();
        for (i, name) in chosen.iter().enumerate() {
            let at = format!("{path}.agents[{i}]");
            let Some(index) = self.names.iter().position(|n| n == name) else {
                let names = self.names.iter().map(String::as_str);
                let help = match nearest(name, names) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("there are: {}", self.names.join(", ")),
                };
                return Err(ConfigError::new(at, format!("no agent called \"{name}\"")).help(help));
            };
            if found.contains(&index) {
                return Err(ConfigError::new(at, format!("\"{name}\" is named twice")));
            }
            found.push(index);
        }
        found.sort_unstable();
        Ok(found)
    }
}
