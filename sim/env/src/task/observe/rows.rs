//! Which term stands where in whose rows.
//!
//! An agent's row for the critic holds what the critic sees, then each further group, which
//! begins at the same column in all agents' rows.

use super::{Observations, Observed, Seen, Spot};
use crate::config::{GroupOptions, ObservationGroup, Stack};
use crate::spaces::{Groups, ObsGroup, ObsRow};
use crate::task::team::Team;
use std::collections::BTreeMap;
use std::ops::Range;

/// Some of an agent's terms, one behind the other.
struct Run {
    terms: Vec<usize>,
    spots: Vec<Spot>,
    width: usize,
    table: Vec<ObsRow>,
}

impl Run {
    /// `critic`: in the critics' rows.
    fn new(
        terms: &[Observed],
        own: Vec<usize>,
        critic: bool,
        stack: Stack,
        agent: usize,
        team: &Team,
    ) -> Self {
        let frames = |t: &Observed| t.sight(critic).map_or(1, |s| s.frames);
        let all = || own.iter().map(|&i| &terms[i]);
        let frame: usize = all().map(Observed::len).sum();
        let (mut width, mut table, mut spots) = (0, Vec::new(), Vec::new());
        for term in all() {
            let name = match term.agent == agent {
                true => term.term.name.clone(),
                false => team.prefixed(term.agent, &term.term.name),
            };
            let spot = Spot {
                first: width,
                frames: frames(term),
                stride: match stack {
                    Stack::Term => term.len(),
                    Stack::Time => frame,
                },
            };
            table.push(term.row(spot, critic, name));
            spots.push(spot);
            width += match stack {
                Stack::Term => term.len() * spot.frames,
                Stack::Time => term.len(),
            };
        }
        if stack == Stack::Time {
            width *= all().map(frames).max().unwrap_or(1);
        }
        Self { terms: own, spots, width, table }
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
    pub(super) fn lay_out(
        mut terms: Vec<Observed>,
        groups: &[ObservationGroup],
        options: &BTreeMap<String, GroupOptions>,
        team: &Team,
    ) -> Self {
        let is_critic = |t: &Observed| t.group == ObservationGroup::Critic || t.copied;
        let critics = String::from(ObservationGroup::Critic);
        let with_critic =
            team.is_centralized() || options.contains_key(&critics) || terms.iter().any(is_critic);
        let of = |agent: usize, group: &ObservationGroup| -> Vec<usize> {
            let own = terms.iter().enumerate();
            own.filter(|(_, t)| t.agent == agent && t.group == *group).map(|(i, _)| i).collect()
        };
        let part = |first: usize, group: &ObservationGroup, own: &dyn Fn(usize) -> Vec<usize>| {
            let critic = *group != ObservationGroup::Policy;
            let options = options.get(&String::from(group.clone()));
            let stack = options.map_or(Stack::Term, |o| o.stack);
            let run = |agent| Run::new(&terms, own(agent), critic, stack, agent, team);
            let runs: Vec<Run> = (0..team.count()).map(run).collect();
            Part { first, width: runs.iter().map(|r| r.width).max().unwrap_or(0), runs }
        };
        // Those of the policy that its critic sees, too.
        let copied = |agent: usize| {
            let own = of(agent, &ObservationGroup::Policy).into_iter();
            own.filter(|&i| terms[i].critic.is_some())
        };
        let policy =
            part(0, &ObservationGroup::Policy, &|agent| of(agent, &ObservationGroup::Policy));
        // The agent's own policy terms first.
        let critic = with_critic.then(|| {
            part(0, &ObservationGroup::Critic, &|agent| {
                let mut row: Vec<usize> = copied(agent).collect();
                if team.is_centralized() {
                    for &other in team.others(agent) {
                        row.extend(copied(other));
                    }
                }
                row.extend(of(agent, &ObservationGroup::Critic));
                row
            })
        });
        let mut parts: Vec<Part> = critic.into_iter().collect();
        for group in groups {
            let first = parts.last().map_or(0, |p| p.first + p.width);
            parts.push(part(first, group, &|agent| of(agent, group)));
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
        let width = Groups { policy: policy.width, critic: row };
        let mut padding = Groups { policy: Vec::new(), critic: row.map(|_| Vec::new()) };
        place(&policy, policy.width, &mut padding.policy, |i, at| {
            terms[i].policy_at = Some(at);
        });
        if let (Some(row), Some(padding)) = (row, &mut padding.critic) {
            for part in &parts {
                place(part, row, padding, |i, at| terms[i].critic_at.push(at));
            }
        }
        Self { terms, width, agents, padding, groups }
    }
}

/// Tells each term of a part its place, in rows of `row` columns that lie agent by agent, and
/// what is left over.
fn place(
    part: &Part,
    row: usize,
    padding: &mut Vec<Range<usize>>,
    mut tell: impl FnMut(usize, Spot),
) {
    for (agent, run) in part.runs.iter().enumerate() {
        let first = agent * row + part.first;
        for (&term, spot) in run.terms.iter().zip(&run.spots) {
            let first = first + spot.first;
            tell(term, Spot { first, ..*spot });
        }
        if run.width < part.width {
            padding.push(first + run.width..first + part.width);
        }
    }
}
