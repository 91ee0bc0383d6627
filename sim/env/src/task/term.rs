//! An expression of the task with what it is for: rewards, terminations, metrics, observations,
//! starts, their conditions, levels of a terrain, new commands, inputs of native functions.

use super::read::unique;
use super::team::{AgentIndex, Team};
use crate::config::ConfigError;
use ostler_lang::expr::{Code, Program, Scope, Type};
use std::collections::HashSet;

/// What an expression is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Reward,
    End,
    Metric,
    Seen,
    Start,
    Until,
    Climb,
    /// Draws a command anew.
    Resample,
    /// Of this native function.
    Input(usize),
}

/// A compiled expression, of an agent or of the world.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub kind: Kind,
    /// Its key in the configuration.
    pub path: String,
    /// As results are listed; empty where they are not.
    pub name: String,
    /// Whom it concerns.
    pub agents: Vec<usize>,
    /// As it is written, with the agent's name in it.
    pub text: String,
    pub program: Program,
}

impl Kind {
    /// The name of the printed function of the `index`-th of its kind.
    pub(super) fn function(self, index: usize) -> String {
        match self {
            Self::Reward => format!("term_reward_{index}"),
            Self::End => format!("term_end_{index}"),
            Self::Metric => format!("term_metric_{index}"),
            Self::Seen => format!("term_seen_{index}"),
            Self::Start => format!("term_start_{index}"),
            Self::Until => format!("term_until_{index}"),
            Self::Climb => format!("term_climb_{index}"),
            Self::Resample => format!("term_resample_{index}"),
            Self::Input(function) => format!("term_native_{function}_{index}"),
        }
    }
}

impl Term {
    /// Compiles the text at `path` for `agent`. It has no name yet.
    pub(super) fn compile(
        kind: Kind,
        scope: &Scope<'_>,
        (team, agent): (&Team, AgentIndex),
        text: &str,
        path: String,
    ) -> Result<Self, ConfigError> {
        let compiled = Program::compile(text, &team.scope(scope, agent));
        Ok(Self {
            kind,
            program: compiled.map_err(|e| e.at(path.clone()))?,
            path,
            name: String::new(),
            agents: agent.into_iter().collect(),
            text: team.fill(agent, text).into_owned(),
        })
    }

    pub(crate) fn code(&self) -> &Code {
        self.program.code()
    }

    /// Refuses it where it is not one condition. `wanted`: `a termination is true or false`.
    pub(super) fn is_condition(&self, written: &str, wanted: &str) -> Result<(), ConfigError> {
        let ty = self.program.ty();
        if *ty == Type::Bool {
            return Ok(());
        }
        let (what, help) = match (self.program.is_truth(), ty.len()) {
            (true, n) => (format!("{n} conditions"), "all(...) or any(...) makes one"),
            (false, 1) => ("a number".to_string(), "compare it: ... > 0.2"),
            (false, n) => (format!("{n} numbers"), "compare one, such as norm(...) > 0.2"),
        };
        Err(self.refused(written, format!("{wanted}; this is {what}"), help))
    }

    /// Refuses it for its text.
    pub(super) fn refused(&self, written: &str, message: String, help: &str) -> ConfigError {
        ConfigError {
            path: self.path.clone(),
            span: Some(0..written.len()),
            message,
            help: Some(help.to_string()),
        }
    }
}

/// A row of the configuration that may be of every agent.
pub(super) struct Row<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub expr: &'a str,
    pub agents: Option<&'a [String]>,
    /// Such as `task.reward[0]`.
    pub path: String,
}

impl Row<'_> {
    /// Its terms, which pass `check`: one of each of its agents where its name or its expression
    /// speaks of one, else one of the world. `seen` are the names so far.
    pub(super) fn terms(
        &self,
        scope: &Scope<'_>,
        team: &Team,
        seen: &mut HashSet<String>,
        check: impl Fn(&Term) -> Result<(), ConfigError>,
    ) -> Result<Vec<Term>, ConfigError> {
        let agents = team.of_term(self.agents, &self.path)?;
        if self.name.is_empty() {
            return Err(ConfigError::new(format!("{}.name", self.path), "the name is empty"));
        }
        let one = |agent: usize| {
            let (of, key) = ((team, Some(agent)), format!("{}.expr", self.path));
            let term = Term::compile(self.kind, scope, of, self.expr, key)?;
            check(&term)?;
            Ok(term)
        };
        let first = one(agents[0])?;
        let named = team.agents_of(&[self.name]) != [None];
        let of_each = team.is_several() && (named || first.program.of_agent());
        let mut terms = match of_each {
            true => {
                let others = agents[1..].iter().map(|&agent| one(agent));
                std::iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?
            }
            false => vec![Term { agents, text: self.expr.to_string(), ..first }],
        };
        for term in &mut terms {
            term.name = match of_each {
                true => {
                    let agent = term.agents[0];
                    team.prefixed(agent, &team.fill(Some(agent), self.name))
                }
                false => self.name.to_string(),
            };
            unique(seen, &term.name, format!("{}.name", self.path))?;
        }
        Ok(terms)
    }
}
