//! `[[task.reward]]` and `[[task.termination]]`: how a step is judged.

use super::read::unique;
use super::team::Team;
use super::term::{Kind, Row, Term};
use crate::config::{ConfigError, TaskConfig};
use ostler_lang::expr::{Inputs, Scope, Scratch};
use ostler_lang::{clip_range, number, open};
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
    /// Its agents get it.
    pub term: Term,
    /// Weight, times the control step where the task says so.
    pub weight: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Termination {
    pub term: Term,
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
            all.max_abs = open(limit, "task.rewards.max_abs")? as f32;
            if all.max_abs <= 0.0 {
                return Err(ConfigError::new(
                    "task.rewards.max_abs",
                    format!("{limit} is not positive"),
                )
                .help("leave it out for no limit"));
            }
        }
        all.clip = cfg.rewards.clip.map(|c| clip_range(c, "task.rewards.clip")).transpose()?;
        if cfg.reward.is_empty() {
            return Err(ConfigError::new("task.reward", "nothing is rewarded")
                .help("add [[task.reward]] with name = \"alive\" and expr = \"1\", for example"));
        }
        let mut seen = HashSet::new();
        for (t, term) in cfg.reward.iter().enumerate() {
            let path = format!("task.reward[{t}]");
            let weight = number(term.weight * per_step, &format!("{path}.weight"))?;
            let row = Row {
                kind: Kind::Reward,
                name: &term.name,
                expr: &term.expr,
                agents: term.agents.as_deref(),
                path,
            };
            let terms =
                row.terms(scope, team, &mut seen, |made| match made.program.ty().len() {
                    1 => Ok(()),
                    len => Err(made.refused(
                        &term.expr,
                        format!("a reward is one number; this has {len}"),
                        "sum(...), norm(...) or a component such as .x makes one",
                    )),
                })?;
            all.rewards.extend(terms.into_iter().map(|term| Reward { term, weight }));
        }
        let mut seen = HashSet::from(["time_out".to_string()]);
        for (t, term) in cfg.termination.iter().enumerate() {
            let (path, truncate) = (format!("task.termination[{t}]"), term.truncate);
            for agent in team.agents_of(&[&term.name, &term.expr]) {
                let own = team.fill(agent, &term.name);
                let name = match agent.and_then(|agent| team.names().get(agent)) {
                    Some(agent) if !own.is_empty() => format!("{own}/{agent}"),
                    _ => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                let key = format!("{path}.expr");
                let made = Term::compile(Kind::End, scope, (team, agent), &term.expr, key)?;
                made.is_condition(&term.expr, "a termination is true or false")?;
                let term = Term { name, ..made };
                all.terminations.push(Termination { term, truncate });
            }
        }
        Ok(all)
    }

    /// The reward terms that an agent gets, by their places.
    pub fn terms_of(&self, agent: usize) -> impl Iterator<Item = usize> {
        let terms = self.rewards.iter().enumerate();
        terms.filter(move |(_, r)| r.term.agents.contains(&agent)).map(|(i, _)| i)
    }

    /// Whether an agent's sum of these weighted terms is beyond the limit.
    pub fn is_absurd(&self, agent: usize, terms: &[f32]) -> bool {
        let sum = self.terms_of(agent).fold(0.0, |sum, k| sum + terms[k]);
        sum.abs() > self.max_abs
    }

    /// All terms.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        let ends = self.terminations.iter().map(|t| &t.term);
        self.rewards.iter().map(|r| &r.term).chain(ends)
    }

    /// Reward terms in order.
    pub fn reward_names(&self) -> Vec<String> {
        self.rewards.iter().map(|r| r.term.name.clone()).collect()
    }

    /// Causes in order, `time_out` first.
    pub fn termination_names(&self) -> Vec<String> {
        let own = self.terminations.iter().map(|t| t.term.name.clone());
        std::iter::once("time_out".to_string()).chain(own).collect()
    }

    /// Whether a term truncates.
    pub fn truncates(&self) -> bool {
        self.terminations.iter().any(|t| t.truncate)
    }

    /// The weighted terms of the first environment of `inputs`.
    pub fn weighted(&self, inputs: &Inputs<'_>, scratch: &mut Scratch, terms: &mut [f32]) {
        for (term, to) in self.rewards.iter().zip(terms) {
            *to = term.weight * term.term.program.eval(inputs, scratch)[0];
        }
    }
}
