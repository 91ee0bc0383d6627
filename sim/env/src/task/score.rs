//! `[[task.reward]]` and `[[task.termination]]`: how a step is judged.

pub use super::expr::{Code, Inputs, Program, Scope, Scratch, Type};
use super::team::{AgentIndex, Team};
use super::{number, program, range, unique};
use crate::config::{ConfigError, RewardTerm, TaskConfig};
use std::collections::HashSet;

/// The compiled reward and termination terms.
#[derive(Debug, Clone)]
pub struct Score {
    pub(super) rewards: Vec<Reward>,
    pub(super) terminations: Vec<Termination>,
    pub(super) clip: Option<[f32; 2]>,
    /// A sum beyond it, before clipping, breaks the environment.
    pub(super) max_abs: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Reward {
    /// Its place in the configuration.
    pub index: usize,
    /// Who gets it.
    pub agents: Vec<usize>,
    pub name: String,
    pub text: String,
    pub program: Program,
    /// Weight, times the control step where the task says so.
    pub weight: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Termination {
    /// Its place in the configuration.
    pub index: usize,
    pub name: String,
    pub text: String,
    pub program: Program,
    pub truncate: bool,
}

impl Score {
    /// Checks names, expressions and types.
    pub fn compile(
        scope: &Scope<'_>,
        cfg: &TaskConfig,
        step_dt: f64,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let per_step = if cfg.rewards.scale_by_dt { step_dt } else { 1.0 };
        let mut all = Self {
            rewards: Vec::new(),
            terminations: Vec::new(),
            clip: None,
            max_abs: f32::INFINITY,
        };
        if let Some(limit) = cfg.rewards.max_abs {
            all.max_abs = number(limit, "task.rewards.max_abs")?;
            if all.max_abs <= 0.0 {
                return Err(ConfigError::new(
                    "task.rewards.max_abs",
                    format!("{limit} is not positive"),
                )
                .help("leave it out for no limit"));
            }
        }
        all.clip = cfg.rewards.clip.map(|c| range(c, "task.rewards.clip")).transpose()?;
        if cfg.reward.is_empty() {
            return Err(ConfigError::new("task.reward", "nothing is rewarded")
                .help("add [[task.reward]] with name = \"alive\" and expr = \"1\", for example"));
        }
        let mut seen: HashSet<String> = HashSet::new();
        for (t, term) in cfg.reward.iter().enumerate() {
            let path = format!("task.reward[{t}]");
            let weight = number(term.weight * per_step, &format!("{path}.weight"))?;
            let agents = team.of_term(term.agents.as_deref(), &path)?;
            if term.name.is_empty() {
                return Err(ConfigError::new(format!("{path}.name"), "the name is empty"));
            }
            let one = |agent: usize| {
                let of = format!("{path}.expr");
                reward(program(scope, team, Some(agent), &term.expr, of)?, term, &path)
            };
            let mut push = |agent: AgentIndex, agents: Vec<usize>, program: Program| {
                let own = team.fill(agent, &term.name);
                let name = match agent {
                    Some(agent) => team.prefixed(agent, &own),
                    None => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                all.rewards.push(Reward {
                    index: t,
                    agents,
                    name,
                    text: team.fill(agent, &term.expr).into_owned(),
                    program,
                    weight,
                });
                Ok::<(), ConfigError>(())
            };
            let first = one(agents[0])?;
            let named = team.agents_of(&[&term.name]) != [None];
            if !team.is_several() || !(named || first.of_agent()) {
                push(None, agents, first)?;
                continue;
            }
            for agent in agents {
                push(Some(agent), vec![agent], one(agent)?)?;
            }
        }
        let mut seen = HashSet::from(["time_out".to_string()]);
        for (t, term) in cfg.termination.iter().enumerate() {
            let path = format!("task.termination[{t}]");
            for agent in team.agents_of(&[&term.name, &term.expr]) {
                let own = team.fill(agent, &term.name);
                let name = match agent.and_then(|agent| team.names().get(agent)) {
                    Some(agent) if !own.is_empty() => format!("{own}/{agent}"),
                    _ => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                let program = program(scope, team, agent, &term.expr, format!("{path}.expr"))?;
                if *program.ty() != Type::Bool {
                    return Err(ConfigError {
                        path: format!("{path}.expr"),
                        span: Some(0..term.expr.len()),
                        message: "a termination is true or false; this is a number".to_string(),
                        help: Some("compare it: ... > 0.2".to_string()),
                    });
                }
                all.terminations.push(Termination {
                    index: t,
                    name,
                    text: team.fill(agent, &term.expr).into_owned(),
                    program,
                    truncate: term.truncate,
                });
            }
        }
        Ok(all)
    }

    /// The reward terms that an agent gets, by their places.
    pub fn terms_of(&self, agent: usize) -> impl Iterator<Item = usize> {
        let terms = self.rewards.iter().enumerate();
        terms.filter(move |(_, r)| r.agents.contains(&agent)).map(|(i, _)| i)
    }

    /// Whether an agent's sum of these weighted terms is beyond the limit.
    pub fn is_absurd(&self, agent: usize, terms: &[f32]) -> bool {
        let sum = self.terms_of(agent).fold(0.0, |sum, k| sum + terms[k]);
        sum.abs() > self.max_abs
    }

    /// The expression of a reward term.
    pub(crate) fn reward(&self, term: usize) -> &Code {
        self.rewards[term].program.code()
    }

    /// The expression of a termination term.
    pub(crate) fn termination(&self, term: usize) -> &Code {
        self.terminations[term].program.code()
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let ends = self.terminations.iter().map(|t| &t.program);
        self.rewards.iter().map(|r| &r.program).chain(ends)
    }

    /// Reward terms in order.
    pub fn reward_names(&self) -> Vec<String> {
        self.rewards.iter().map(|r| r.name.clone()).collect()
    }

    /// Causes in order, `time_out` first.
    pub fn termination_names(&self) -> Vec<String> {
        let own = self.terminations.iter().map(|t| t.name.clone());
        std::iter::once("time_out".to_string()).chain(own).collect()
    }

    /// Whether a term truncates.
    pub fn truncates(&self) -> bool {
        self.terminations.iter().any(|t| t.truncate)
    }

    /// The weighted terms of the first environment of `inputs`.
    pub fn weighted(&self, inputs: &Inputs<'_>, scratch: &mut Scratch, terms: &mut [f32]) {
        for (term, to) in self.rewards.iter().zip(terms) {
            *to = term.weight * term.program.eval(inputs, scratch)[0];
        }
    }
}

/// Refuses terms that are not one number.
fn reward(program: Program, term: &RewardTerm, path: &str) -> Result<Program, ConfigError> {
    if program.ty().len() == 1 {
        return Ok(program);
    }
    Err(ConfigError {
        path: format!("{path}.expr"),
        span: Some(0..term.expr.len()),
        message: format!("a reward is one number; this has {}", program.ty().len()),
        help: Some("sum(...), norm(...) or a component such as .x makes one".to_string()),
    })
}
