//! Which term stands where in whose rows.
//!
//! An agent's row for the critic holds what the critic sees, then each further group, which
//! begins at the same column in all agents' rows.

use super::{Observations, Seen, Term};
use crate::config::ObservationGroup;
use crate::env::{Groups, ObsGroup, ObsRow};
use crate::task::team::Team;
use std::ops::Range;

/// Some of an agent's terms, one behind the other.
struct Run {
    terms: Vec<usize>,
    width: usize,
    table: Vec<ObsRow>,
}

impl Run {
    fn new(terms: &[Term], own: Vec<usize>, agent: usize, team: &Team) -> Self {
        let (mut width, mut table) = (0, Vec::new());
        for term in own.iter().map(|&i| &terms[i]) {
            let name = match term.agent == agent {
                true => term.name.clone(),
                false => team.prefixed(term.agent, &term.name),
            };
            table.push(term.row(width, name));
            width += term.len();
        }
        Self {
            terms: own,
            width,
            table,
        }
    }
}

/// Columns of a row that agents have in common: as wide as the widest of their runs.
struct Part {
    first: usize,
    width: usize,
    /// Of every agent.
    runs: Vec<Run>,
}

impl Observations {
    /// Finds the places of all terms; `groups` are those behind the critic's.
    pub(super) fn lay_out(mut terms: Vec<Term>, groups: &[ObservationGroup], team: &Team) -> Self {
        let is_critic = |t: &Term| t.group == ObservationGroup::Critic;
        let with_critic = team.is_centralized() || terms.iter().any(is_critic);
        let of = |agent: usize, group: &ObservationGroup| -> Vec<usize> {
            let own = terms.iter().enumerate();
            own.filter(|(_, t)| t.agent == agent && t.group == *group)
                .map(|(i, _)| i)
                .collect()
        };
        let part = |first: usize, own: &dyn Fn(usize) -> Vec<usize>| -> Part {
            let runs = (0..team.count()).map(|agent| Run::new(&terms, own(agent), agent, team));
            let runs: Vec<Run> = runs.collect();
            Part {
                first,
                width: runs.iter().map(|r| r.width).max().unwrap_or(0),
                runs,
            }
        };
        let policy = part(0, &|agent| of(agent, &ObservationGroup::Policy));
        // The agent's own policy terms first.
        let critic = with_critic.then(|| {
            part(0, &|agent| {
                let mut row = of(agent, &ObservationGroup::Policy);
                if team.is_centralized() {
                    for &other in team.others(agent) {
                        row.extend(of(other, &ObservationGroup::Policy));
                    }
                }
                row.extend(of(agent, &ObservationGroup::Critic));
                row
            })
        });
        let mut parts: Vec<Part> = critic.into_iter().collect();
        for group in groups {
            let first = parts.last().map_or(0, |p| p.first + p.width);
            parts.push(part(first, &|agent| of(agent, group)));
        }
        let row = parts.last().map(|p| p.first + p.width);
        let behind = &parts[usize::from(with_critic)..];
        let groups = groups.iter().zip(behind).map(|(group, part)| ObsGroup {
            name: group.clone().into(),
            first: part.first,
            width: part.width,
            table: part.runs.first().map_or_else(Vec::new, |r| r.table.clone()),
        });
        let groups: Vec<ObsGroup> = groups.collect();

        let agents = (0..team.count()).map(|agent| {
            let own = &policy.runs[agent];
            let critic = with_critic.then(|| &parts[0].runs[agent]);
            let critic_width = critic.map(|c| c.width);
            Seen {
                width: Groups {
                    policy: own.width,
                    // Groups stand at the same place in all rows.
                    critic: if groups.is_empty() { critic_width } else { row },
                },
                critic: critic_width,
                table: Groups {
                    policy: own.table.clone(),
                    critic: critic.map(|c| c.table.clone()),
                },
            }
        });
        let agents: Vec<Seen> = agents.collect();
        let width = Groups {
            policy: policy.width,
            critic: row,
        };
        let mut padding = Groups {
            policy: Vec::new(),
            critic: row.map(|_| Vec::new()),
        };
        place(&policy, policy.width, &mut padding.policy, |i, at| {
            terms[i].policy_at = Some(at);
        });
        if let (Some(row), Some(padding)) = (row, &mut padding.critic) {
            for part in &parts {
                place(part, row, padding, |i, at| terms[i].critic_at.push(at));
            }
        }
        Self {
            terms,
            width,
            agents,
            padding,
            groups,
        }
    }
}

/// Tells each term of a part its place, in rows of `row` columns that lie agent by agent, and
/// what is left over.
fn place(
    part: &Part,
    row: usize,
    padding: &mut Vec<Range<usize>>,
    mut tell: impl FnMut(usize, usize),
) {
    for (agent, run) in part.runs.iter().enumerate() {
        let first = agent * row + part.first;
        for (&term, entry) in run.terms.iter().zip(&run.table) {
            tell(term, first + entry.index);
        }
        if run.width < part.width {
            padding.push(first + run.width..first + part.width);
        }
    }
}
