//! `[[task.observation]]`: the networks' inputs.

mod rows;
mod sight;

use super::read::{spread, unique};
use super::team::Team;
use super::term::{Kind, Term};
use crate::config::{ConfigError, GroupOptions, ObservationGroup, ObservationTerm};
use crate::spaces::{Groups, ObsGroup, ObsRow};
use ostler_base::names::nearest;
use ostler_lang::clip_range;
use ostler_lang::expr::Scope;
pub(super) use sight::Sight;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The compiled observation terms.
///
/// The rows of an environment's agents lie one after the other, `[M][O]`: places below
/// are in them, as if they were one row.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Agent by agent: policy terms, then privileged ones, then those of other groups.
    pub(super) terms: Vec<Observed>,
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
pub(super) struct Observed {
    pub term: Term,
    /// The agent that has it.
    pub agent: usize,
    pub group: ObservationGroup,
    /// How the policies' rows have it; none of a privileged term.
    pub policy: Option<Sight>,
    /// How the critics' rows have it.
    pub critic: Option<Sight>,
    /// The task says how critics see it.
    pub copied: bool,
    /// In the policies' rows.
    pub policy_at: Option<Spot>,
    /// In the critics' rows.
    pub critic_at: Vec<Spot>,
    pub scale: Vec<f32>,
    pub clip: Option<[f32; 2]>,
}

/// Where a term stands in a row: its values of some control steps, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// First place.
    pub first: usize,
    /// Control steps.
    pub frames: usize,
    /// Places between one control step and the next.
    pub stride: usize,
}

impl Spot {
    /// First place of the present value.
    pub(crate) fn newest(&self) -> usize {
        self.first + (self.frames - 1) * self.stride
    }
}

impl Observed {
    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.scale.len()
    }

    /// The policy does not see it.
    pub(crate) fn is_privileged(&self) -> bool {
        self.group != ObservationGroup::Policy
    }

    /// How a row of the policies, or of the critics, has it.
    fn sight(&self, critic: bool) -> Option<&Sight> {
        match critic {
            true => self.critic.as_ref(),
            false => self.policy.as_ref(),
        }
    }

    fn row(&self, spot: Spot, critic: bool, name: String) -> ObsRow {
        ObsRow {
            index: spot.first,
            len: self.len(),
            frames: spot.frames,
            stride: spot.stride,
            seen: self.sight(critic).map_or_else(String::new, Sight::text),
            name,
            expr: self.term.text.clone(),
            unit: match self.term.program.ty() {
                ostler_lang::expr::Type::Bool => "-".to_string(),
                ostler_lang::expr::Type::Num { unit, .. } => unit.clone(),
            },
        }
    }
}

impl Observations {
    /// Checks names, expressions and sizes.
    pub fn compile(
        scope: &Scope<'_>,
        terms: &[ObservationTerm],
        options: &BTreeMap<String, GroupOptions>,
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
        known_groups(&groups, options)?;
        for agent in 0..team.count() {
            for group in &groups {
                let mut seen = HashSet::new();
                for (t, term) in terms.iter().enumerate() {
                    if term.group == *group && agents[t].contains(&agent) {
                        compiled.push(compile(scope, term, t, options, team, agent, &mut seen)?);
                    }
                }
            }
            if !compiled.iter().any(|t| t.agent == agent && !t.is_privileged()) {
                return Err(ConfigError::new(
                    "task.observation",
                    format!("{} sees nothing", team.subject(agent)),
                )
                .help("add [[task.observation]] with name = \"state\" and expr = \"qpos\", for example"));
            }
        }
        let kept = |t: &Observed| {
            let own = t.policy.iter().chain(&t.critic);
            own.map(|s| s.kept(t.len())).sum::<usize>()
        };
        sight::bounded(compiled.iter().map(kept).sum(), "task.observation")?;
        Ok(Self::lay_out(compiled, &groups[2..], options, team))
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

    /// All expressions.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().map(|t| &t.term)
    }

    /// Terms in order: whether it is none of the policy's, and its name.
    pub fn names(&self, team: &Team) -> Vec<(bool, String)> {
        let name = |t: &Observed| (t.is_privileged(), team.prefixed(t.agent, &t.term.name));
        self.terms.iter().map(name).collect()
    }

    /// The term that entry `at` of the policies' rows, or the critics', belongs to.
    pub fn term_at(&self, at: usize, critic: bool) -> Option<usize> {
        let holds = |t: &Observed, spot: &Spot| {
            let mut frames = (0..spot.frames).map(|f| spot.first + f * spot.stride);
            frames.any(|first| (first..first + t.len()).contains(&at))
        };
        self.terms.iter().position(|t| match critic {
            true => t.critic_at.iter().any(|spot| holds(t, spot)),
            false => t.policy_at.iter().any(|spot| holds(t, spot)),
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

/// Options are those of groups that there are.
fn known_groups(
    groups: &[ObservationGroup],
    options: &BTreeMap<String, GroupOptions>,
) -> Result<(), ConfigError> {
    let names: Vec<String> = groups.iter().cloned().map(String::from).collect();
    if let Some(name) = options.keys().find(|n| !names.contains(n)) {
        let path = format!("task.observations.{name}");
        let help = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("groups are: {}", names.join(", ")),
        };
        return Err(ConfigError::new(path, "there is no such group").help(help));
    }
    Ok(())
}

/// One term for one agent; its places come later.
fn compile(
    scope: &Scope<'_>,
    term: &ObservationTerm,
    index: usize,
    options: &BTreeMap<String, GroupOptions>,
    team: &Team,
    agent: usize,
    seen: &mut HashSet<String>,
) -> Result<Observed, ConfigError> {
    let path = format!("task.observation[{index}]");
    let name = team.fill(Some(agent), &term.name);
    unique(seen, &name, format!("{path}.name"))?;
    let (who, key) = ((team, Some(agent)), format!("{path}.expr"));
    let made = Term::compile(Kind::Seen, scope, who, &term.expr, key)?;
    let len = made.program.ty().len();
    let of = |group: ObservationGroup| options.get(&String::from(group));
    let own = Sight::own(term, len, of(term.group.clone()), &path)?;
    let (policy, critic) = if term.group == ObservationGroup::Policy {
        let copy = Sight::copied(term.critic.as_ref(), len, of(ObservationGroup::Critic), &path)?;
        (Some(own), copy)
    } else {
        if term.critic.is_some() {
            let message = "says how critics see a term of the group \"policy\"";
            return Err(ConfigError::new(format!("{path}.critic"), message)
                .help("write noise, bias, delay and history beside `expr`"));
        }
        (None, Some(own))
    };
    Ok(Observed {
        term: Term { name: name.into_owned(), ..made },
        agent,
        group: term.group.clone(),
        scale: spread(&term.scale, len, "components", &format!("{path}.scale"))?,
        clip: term.clip.map(|c| clip_range(c, &format!("{path}.clip"))).transpose()?,
        policy,
        critic,
        copied: term.critic.is_some(),
        policy_at: None,
        critic_at: Vec::new(),
    })
}
