//! `[[task.observation]]`: the networks' inputs.

mod rows;

use super::expr::{Code, Program, Scope};
use super::team::Team;
use super::{number, program, range, spread, unique};
use crate::config::{ConfigError, NoiseKind, ObservationGroup, ObservationTerm};
use crate::env::{Groups, ObsGroup, ObsRow};
use std::collections::HashSet;
use std::ops::Range;

/// The compiled observation terms.
///
/// The rows of an environment's agents lie one after the other, `[M][O]`: places below
/// are in them, as if they were one row.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Agent by agent: policy terms, then privileged ones, then those of other groups.
    pub(super) terms: Vec<Term>,
    /// Widths `O` of a row: the widest agent's.
    pub width: Groups<usize>,
    /// Observations of every agent `[M]`.
    pub agents: Vec<Seen>,
    /// Places that no agent sees: zeros.
    pub(super) padding: Groups<Vec<Range<usize>>>,
    /// Groups of other names: columns of the critics' rows, behind what critics see.
    pub groups: Vec<ObsGroup>,
}

/// Observations of an agent.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its own widths.
    pub width: Groups<usize>,
    /// Columns of its row that its critic sees, from the first on; none without privileged
    /// terms.
    pub critic: Option<usize>,
    /// Table for `ostler check`.
    pub table: Groups<Vec<ObsRow>>,
}

#[derive(Debug, Clone)]
pub(super) struct Term {
    /// Its place in the configuration.
    pub index: usize,
    /// The agent that has it.
    pub agent: usize,
    pub name: String,
    pub group: ObservationGroup,
    pub text: String,
    pub program: Program,
    /// First place in the policies' rows; none of a privileged term.
    pub policy_at: Option<usize>,
    /// First places in the critics' rows.
    pub critic_at: Vec<usize>,
    pub scale: Vec<f32>,
    pub clip: Option<[f32; 2]>,
    pub noise: f32,
    pub noise_kind: NoiseKind,
}

impl Term {
    /// Entries.
    pub fn len(&self) -> usize {
        self.scale.len()
    }

    /// The policy does not see it.
    pub fn is_privileged(&self) -> bool {
        self.group != ObservationGroup::Policy
    }

    fn row(&self, index: usize, name: String) -> ObsRow {
        ObsRow {
            index,
            len: self.len(),
            name,
            expr: self.text.clone(),
            unit: match self.program.ty() {
                super::expr::Type::Bool => "-".to_string(),
                super::expr::Type::Num { unit, .. } => unit.clone(),
            },
        }
    }
}

impl Observations {
    /// Checks names, expressions and sizes.
    pub fn compile(
        scope: &Scope<'_>,
        terms: &[ObservationTerm],
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let mut compiled = Vec::new();
        let mut agents = Vec::with_capacity(terms.len());
        for (t, term) in terms.iter().enumerate() {
            agents.push(team.of_term(term.agents.as_deref(), &format!("task.observation[{t}]"))?);
        }
        let mut groups = vec![ObservationGroup::Policy, ObservationGroup::Critic];
        for (t, term) in terms.iter().enumerate() {
            check_group(&term.group, t)?;
            if !groups.contains(&term.group) {
                groups.push(term.group.clone());
            }
        }
        for agent in 0..team.count() {
            for group in &groups {
                let mut seen = HashSet::new();
                for (t, term) in terms.iter().enumerate() {
                    if term.group == *group && agents[t].contains(&agent) {
                        compiled.push(compile(scope, term, t, team, agent, &mut seen)?);
                    }
                }
            }
            if !compiled
                .iter()
                .any(|t| t.agent == agent && !t.is_privileged())
            {
                return Err(ConfigError::new(
                    "task.observation",
                    format!("{} sees nothing", team.subject(agent)),
                )
                .help("add [[task.observation]] with name = \"state\" and expr = \"qpos\", for example"));
            }
        }
        Ok(Self::lay_out(compiled, &groups[2..], team))
    }

    /// Widths of an environment's rows, `M O`; 0 for a critic without its own.
    pub fn world(&self) -> [usize; 2] {
        [self.width.policy, self.width.critic.unwrap_or(0)].map(|w| w * self.agents.len())
    }

    /// Columns that critics see of their rows: the widest; none where critics see the
    /// policies' observations.
    pub fn critic_width(&self) -> Option<usize> {
        self.agents.iter().filter_map(|a| a.critic).max()
    }

    /// Entries of the policies' rows of an environment, without padding.
    pub fn entries(&self) -> usize {
        self.agents.iter().map(|a| a.width.policy).sum()
    }

    /// Where entry `i` of all that the policies see stands in their rows.
    pub fn place(&self, mut i: usize) -> Option<usize> {
        for (agent, seen) in self.agents.iter().enumerate() {
            if i < seen.width.policy {
                return Some(agent * self.width.policy + i);
            }
            i -= seen.width.policy;
        }
        None
    }

    /// The expression of a term.
    pub(crate) fn code(&self, term: usize) -> &Code {
        self.terms[term].program.code()
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.terms.iter().map(|t| &t.program)
    }

    /// Terms in order: whether it is none of the policy's, and its name.
    pub fn names(&self, team: &Team) -> Vec<(bool, String)> {
        let name = |t: &Term| (t.is_privileged(), team.prefixed(t.agent, &t.name));
        self.terms.iter().map(name).collect()
    }

    /// The term that entry `at` of the policies' rows, or the critics', belongs to.
    pub fn term_at(&self, at: usize, critic: bool) -> Option<usize> {
        let holds = |t: &Term, first: usize| (first..first + t.len()).contains(&at);
        self.terms.iter().position(|t| match critic {
            true => t.critic_at.iter().any(|&first| holds(t, first)),
            false => t.policy_at.is_some_and(|first| holds(t, first)),
        })
    }
}

/// A group's name stands in files and messages.
fn check_group(group: &ObservationGroup, term: usize) -> Result<(), ConfigError> {
    let ObservationGroup::Other(name) = group else {
        return Ok(());
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let path = format!("task.observation[{term}].group");
    let why = format!("\"{name}\" cannot be a group's name");
    Err(ConfigError::new(path, why).help("letters, digits and _, at most 64"))
}

/// One term for one agent; its places come later.
fn compile(
    scope: &Scope<'_>,
    term: &ObservationTerm,
    index: usize,
    team: &Team,
    agent: usize,
    seen: &mut HashSet<String>,
) -> Result<Term, ConfigError> {
    let path = format!("task.observation[{index}]");
    let name = team.fill(Some(agent), &term.name);
    unique(seen, &name, format!("{path}.name"))?;
    let program = program(scope, team, Some(agent), &term.expr, format!("{path}.expr"))?;
    let len = program.ty().len();
    let privileged = term.group != ObservationGroup::Policy;
    let noise = number(term.noise, &format!("{path}.noise"))?;
    if noise < 0.0 || (privileged && noise > 0.0) {
        return Err(ConfigError::new(
            format!("{path}.noise"),
            if privileged {
                "privileged observations have no noise, only the group \"policy\" has".to_string()
            } else {
                format!("{noise} is negative")
            },
        ));
    }
    Ok(Term {
        index,
        agent,
        name: name.into_owned(),
        group: term.group.clone(),
        text: team.fill(Some(agent), &term.expr).into_owned(),
        scale: spread(&term.scale, len, "components", &format!("{path}.scale"))?,
        clip: term
            .clip
            .map(|c| range(c, &format!("{path}.clip")))
            .transpose()?,
        program,
        policy_at: None,
        critic_at: Vec::new(),
        noise,
        noise_kind: term.noise_kind,
    })
}
